// The inboxes of a channel, and how a call begins if nobody has compared the ranks' calls, because ranks are in other
// launches: each rank sends the signature of its call to all others, and ends the call if one differs, before it has
// written anything.
//
// A rank stores flagged words into the inboxes of all its peers; their flag identifies the call. The first one is the
// signature, whatever the call is. An inbox has two halves, used in turn. A rank that stores into a half again has
// received something of the previous call from every peer, so its peer had ended the call before that.
#pragma once

#include <cstddef>

#include "kernels/block.h"
#include "kernels/entries.h"
#include "kernels/waiting.h"

namespace tutti::device {

/// Flags have 32 bits and are never 0: after this many calls an inbox is cleared and flags start again.
inline constexpr std::uint64_t inbox_period = std::uint64_t{1} << 30;

struct InboxShared {
  std::byte* there[ranks_max];  ///< inboxes, by peer
  const std::byte* here[ranks_max];
  std::uint64_t uses;
  WaitShared waits;
  BarrierLinks links;
};

template <Block B>
class Inboxes {
 public:
  TUTTI_DEVICE Inboxes(B& b, InboxShared& s, const Call& call, const BlockPart& part)
      : b_(b),
        s_(s),
        call_(call),
        rank_(part.rank),
        channel_(part.channel),
        links_(part.links),
        ranks_(static_cast<int>(call.ranks)),
        self_(static_cast<int>(rank_.rank)) {}

  /// By all threads, before anything else. `links`: of the channel, perhaps a copy. False: gave up.
  TUTTI_DEVICE bool look_up(const Link* links) {
    for (int peer = b_.thread(); peer < ranks_; peer += b_.threads()) {
      s_.there[peer] = links[link_of(peer)].inbox_there;
      s_.here[peer] = links[peer].inbox_here;
      // the counter in a rank's link to itself has no other use
      if (peer == self_) s_.uses = links[peer].inbox_uses;
    }
    b_.sync(Barrier::operands);
    uses_ = s_.uses;
    flag_ = static_cast<std::uint32_t>(uses_ % inbox_period) + 1;
    return !has_cleared() || clear();
  }
  /// Whether look_up() has cleared the inboxes, for which the ranks' blocks of the channel met twice.
  TUTTI_DEVICE bool has_cleared() const { return uses_ != 0 && uses_ % inbox_period == 0; }

  /// A thread per peer.
  TUTTI_DEVICE void send_signature() { send_all(0, call_.signature); }
  TUTTI_DEVICE void send_all(std::uint64_t word, std::uint64_t data) {
    for (int peer = b_.thread(); peer < ranks_; peer += b_.threads())
      if (peer != self_) send(peer, word, data);
  }
  /// By one thread.
  TUTTI_DEVICE void send(int peer, std::uint64_t word, std::uint64_t data) {
    store(peer, word, static_cast<std::uint32_t>(data), static_cast<std::uint32_t>(data >> 32));
  }

  /// By one thread: the data of a word from a peer; gives up if it does not come.
  TUTTI_DEVICE std::uint64_t receive(int peer, std::uint64_t word) {
    FlaggedWord got{};
    const std::uint32_t state = wait_until(b_, call_, [&] {
      got = load(peer, word);
      return is_complete(got);
    });
    if (state != ErrorRecord::none) give_up(peer, state);
    return data_of(got);
  }

  /// Waits for the signatures of all peers, and until `more(peer)` is true; unless a signature differs. A thread per
  /// peer, for all threads. False: gave up, and reported why.
  template <class More>
  TUTTI_DEVICE bool same_call(More more) {
    for (int peer = b_.thread(); peer < ranks_ && state_ == ErrorRecord::none; peer += b_.threads()) {
      if (peer == self_) continue;
      FlaggedWord got{};
      const std::uint32_t state = wait_until(b_, call_, [&] {
        got = load(peer, 0);
        const bool all = more(peer);  // looked for at the same time
        return is_complete(got) && (all || data_of(got) != call_.signature);
      });
      theirs_ = data_of(got);
      if (state != ErrorRecord::none)
        give_up(peer, state);
      else if (theirs_ != call_.signature)
        give_up(peer, ErrorRecord::differs);
    }
    return none_gave_up();
  }
  TUTTI_DEVICE bool same_call() {
    return same_call([](int) { return true; });
  }

  /// A thread per peer, for all threads: each peer sends what its transfer expects, and the other way round, by its
  /// words 1 and 2. False: gave up, and reported why.
  TUTTI_DEVICE bool same_bytes(const Transfer* transfers) {
    for (int peer = b_.thread(); peer < ranks_ && state_ == ErrorRecord::none; peer += b_.threads()) {
      if (peer == self_) continue;
      theirs_ = receive(peer, 1);
      own_ = transfers[peer].all_received;
      if (gave_up() || theirs_ != own_) {
        if (!gave_up()) give_up(peer, ErrorRecord::counts);
        continue;
      }
      sends_ = true;
      theirs_ = receive(peer, 2);
      own_ = transfers[peer].all_sent;
      if (!gave_up() && theirs_ != own_) give_up(peer, ErrorRecord::counts);
      if (!gave_up()) sends_ = false;
    }
    return none_gave_up();
  }

  /// By all threads. Otherwise reports why.
  TUTTI_DEVICE bool none_gave_up() {
    if (!b_.sync_any(gave_up())) return true;
    report();
    return false;
  }

  /// By all threads, when the rank has received all that it needs from the inboxes.
  TUTTI_DEVICE void close() {
    if (b_.thread() == 0) links_[self_].inbox_uses = uses_ + 1;
  }

  // ---- Words of this call; number 0 is the signature ----

  TUTTI_DEVICE void store(int peer, std::uint64_t word, std::uint32_t data0, std::uint32_t data1) {
    b_.store_flagged(s_.there[peer] + half() + word * 16, {data0, flag_, data1, flag_});
  }
  TUTTI_DEVICE FlaggedWord load(int peer, std::uint64_t word) {
    return b_.load_flagged(s_.here[peer] + half() + word * 16);
  }
  TUTTI_DEVICE std::uint64_t data_of(const FlaggedWord& got) const {
    return got.data0 | std::uint64_t{got.data1} << 32;
  }
  TUTTI_DEVICE bool is_complete(const FlaggedWord& got) const {
    return got.flag0 == flag_ && (B::fault == Fault::one_flag_checked || got.flag1 == flag_);
  }

  // ---- Of one thread: why it gave up, and the rank that it waited for ----

  TUTTI_DEVICE bool gave_up() const { return state_ != ErrorRecord::none; }
  TUTTI_DEVICE void give_up(int peer, std::uint32_t state) {
    missing_ = peer;
    state_ = state;
  }

  /// Reports to the host the first rank for which some thread gave up; rather one that makes another call. By all
  /// threads.
  TUTTI_DEVICE void report() {
    const bool differs = b_.sync_any(is_difference());
    for (int peer = 0; peer < ranks_; ++peer) {
      const bool mine = missing_ == peer && (!differs || is_difference());
      if (!b_.sync_any(mine)) continue;
      const bool late = b_.sync_any(mine && state_ == ErrorRecord::late);
      const bool reports = differs ? mine : b_.thread() == 0;  // one thread compares the calls of one peer
      if (!reports) return;
      ErrorRecord& record = rank_.errors[channel_];
      if (is_free(b_, record)) {
        record.peer = static_cast<std::uint32_t>(peer);
        record.verb = static_cast<std::uint32_t>(sends_ ? Verb::acquire : Verb::peek);
        record.message = 0;
        record.own = state_ == ErrorRecord::counts ? own_ : call_.signature;
        record.theirs = theirs_;
        const std::uint32_t state = differs ? state_ : late ? ErrorRecord::late : ErrorRecord::aborted;
        b_.store_release(&record.state, state);
      }
      b_.store_relaxed(call_.abort, std::uint32_t{AbortWord::all_ends});
      return;
    }
  }

 private:
  TUTTI_DEVICE bool is_difference() const { return state_ == ErrorRecord::differs || state_ == ErrorRecord::counts; }

  TUTTI_DEVICE int link_of(int peer) const {
    if constexpr (B::fault == Fault::wrong_link)
      if (ranks_ > 2 && peer == (self_ + 1) % ranks_) return (self_ + 2) % ranks_;
    return peer;
  }

  TUTTI_DEVICE std::uint64_t half() const {
    if constexpr (B::fault == Fault::one_inbox) return 0;
    return uses_ % 2 * call_.inbox_bytes;
  }

  /// Clears all flags that peers may have left, while no rank stores any. False: gave up.
  TUTTI_DEVICE bool clear() {
    if constexpr (B::fault == Fault::inbox_not_cleared) return true;
    fetch(b_, s_.links, links_, ranks_);
    if (!barrier(b_, s_.waits, s_.links, call_, rank_, static_cast<int>(channel_), 0)) return false;
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer == self_) continue;
      std::byte* const inbox = links_[peer].inbox_here;
      for (std::uint64_t at = static_cast<std::uint64_t>(b_.thread()) * 16; at < 2 * call_.inbox_bytes;
           at += static_cast<std::uint64_t>(b_.threads()) * 16)
        b_.store_flagged(inbox + at, {});
    }
    return barrier(b_, s_.waits, s_.links, call_, rank_, static_cast<int>(channel_), 1);
  }

  B& b_;
  InboxShared& s_;
  const Call& call_;
  const RankCall& rank_;
  std::uint32_t channel_;
  Link* links_;
  int ranks_;
  int self_;
  std::uint64_t uses_ = 0;
  std::uint32_t flag_ = 0;
  std::uint32_t state_ = ErrorRecord::none;
  int missing_ = -1;
  std::uint64_t theirs_ = 0;  // the signature of the rank that was waited for, or how many bytes it sends
  std::uint64_t own_ = 0;     // and how many this rank expects;
  bool sends_ = false;        // or the other way round
};

}  // namespace tutti::device
