// The body of a small all-reduce: every rank stores its input into the inboxes of all others, each four bytes with a
// flag that identifies the call, and reduces what it receives in rank order. It uses no window and no meeting of the
// ranks: one transfer to a peer, which is all that a small call has time for.
//
// Where ranks are in other launches, nobody has compared their calls. Then each rank's first word is its call's
// signature; a rank that gets another signature than its own ends, and reports both, before it has written anything.
//
// An inbox has two halves, used in turn. A rank that stores into a half again has received everything of the previous
// call, so its peer had ended the call before that. This holds because each rank receives from every rank it sends to.
#pragma once

#include <cstddef>

#include "kernels/block.h"
#include "kernels/entries.h"
#include "kernels/extent.h"
#include "kernels/ops.h"
#include "kernels/pass.h"
#include "kernels/waiting.h"

namespace tutti::device {

template <>
struct Shared<Body::one_shot> {
  std::byte* there[ranks_max];  ///< inboxes, by peer
  const std::byte* here[ranks_max];
  std::uint64_t uses;
  WaitShared waits;
  MeetingLinks links;
};

/// Flags have 32 bits and are never 0: after this many calls an inbox is cleared and flags start again.
inline constexpr std::uint64_t one_shot_period = std::uint64_t{1} << 30;

/// Elements that travel in one flagged word.
template <class T>
struct OneShotWord {
  static constexpr int size = static_cast<int>(8 / sizeof(T));
  T at[size];
};

template <class T, Block B>
class OneShot {
 public:
  TUTTI_DEVICE OneShot(B& b, Shared<Body::one_shot>& s, const Call& call, const BlockPart& part)
      : b_(b),
        s_(s),
        call_(call),
        rank_(part.rank),
        channel_(part.channel),
        links_(part.links),
        ranks_(static_cast<int>(call.ranks)),
        self_(static_cast<int>(rank_.rank)) {}

  TUTTI_DEVICE void run() {
    if (channel_ >= call_.cut.tiles) return;  // equal on all ranks; a channel has one tile
    extent_ = extent_of(call_.cut, 0, channel_);
    const std::uint64_t words = (extent_.count + Word::size - 1) / Word::size;
    const auto threads = static_cast<std::uint64_t>(b_.threads());
    const auto thread = static_cast<std::uint64_t>(b_.thread());
    Word first{};  // loaded while the links are looked up
    if (thread < words) first = own(thread);
    look_up();
    flag_ = static_cast<std::uint32_t>(uses_ % one_shot_period) + 1;
    if (uses_ != 0 && uses_ % one_shot_period == 0 && !clear()) return;
    if (checks()) send_signature();
    for (std::uint64_t word = thread; word < words; word += threads) send(word, word == thread ? first : own(word));
    if (checks() && !same_call()) return;
    for (std::uint64_t word = thread; word < words && state_ == ErrorRecord::none; word += threads)
      combine(word, word == thread ? first : own(word));
    if (!b_.sync_any(state_ != ErrorRecord::none)) {
      if (b_.thread() == 0) links_[self_].inbox_uses = uses_ + 1;
    } else {
      report();
    }
  }

 private:
  using Word = OneShotWord<T>;
  using A = Accumulate<T>;
  static constexpr int batch = 8;  // ranks that are waited for together

  /// A thread per peer, for all threads.
  TUTTI_DEVICE void look_up() {
    for (int peer = b_.thread(); peer < ranks_; peer += b_.threads()) {
      s_.there[peer] = links_[link_of(peer)].inbox_there;
      s_.here[peer] = links_[peer].inbox_here;
      // the counter in a rank's link to itself has no other use
      if (peer == self_) s_.uses = links_[peer].inbox_uses;
    }
    b_.sync(Barrier::operands);
    uses_ = s_.uses;
  }

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
    if (!meet(b_, s_.waits, s_.links, call_, rank_, static_cast<int>(channel_), 0)) return false;
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer == self_) continue;
      std::byte* const inbox = links_[peer].inbox_here;
      for (std::uint64_t at = static_cast<std::uint64_t>(b_.thread()) * 16; at < 2 * call_.inbox_bytes;
           at += static_cast<std::uint64_t>(b_.threads()) * 16)
        b_.store_flagged(inbox + at, {});
    }
    return meet(b_, s_.waits, s_.links, call_, rank_, static_cast<int>(channel_), 1);
  }

  TUTTI_DEVICE bool checks() const { return call_.meet != 0; }

  /// A thread per peer.
  TUTTI_DEVICE void send_signature() {
    const auto low = static_cast<std::uint32_t>(call_.signature),
               high = static_cast<std::uint32_t>(call_.signature >> 32);
    for (int peer = b_.thread(); peer < ranks_; peer += b_.threads())
      if (peer != self_) b_.store_flagged(s_.there[peer] + half(), {low, flag_, high, flag_});
  }

  /// A thread per peer, for all threads. False: gave up.
  TUTTI_DEVICE bool same_call() {
    for (int peer = b_.thread(); peer < ranks_ && state_ == ErrorRecord::none; peer += b_.threads()) {
      if (peer == self_) continue;
      FlaggedWord got{};
      state_ = wait_until(b_, call_, [&] {
        got = b_.load_flagged(s_.here[peer] + half());
        return is_complete(got);
      });
      theirs_ = got.data0 | std::uint64_t{got.data1} << 32;
      if (state_ == ErrorRecord::none && theirs_ != call_.signature) state_ = ErrorRecord::differs;
      if (state_ != ErrorRecord::none) missing_ = peer;
    }
    if (!b_.sync_any(state_ != ErrorRecord::none)) return true;
    report();
    return false;
  }

  /// Where in a half of an inbox a word is: the signature comes first.
  static TUTTI_DEVICE std::uint64_t offset_of(std::uint64_t word) { return (word + 1) * 16; }

  /// This rank's elements of a word; zeros if there are none.
  TUTTI_DEVICE Word own(std::uint64_t word) {
    Word elements{};
    const std::byte* const at = rank_.input + (extent_.begin + word * Word::size) * sizeof(T);
    if (reinterpret_cast<std::size_t>(at) % 8 == 0 && (word + 1) * Word::size <= extent_.count) {
      elements = bits_of<Word>(b_.template load<8>(at));
    } else {
      TUTTI_UNROLL
      for (int i = 0; i < Word::size; ++i)
        if (word * Word::size + static_cast<std::uint64_t>(i) < extent_.count)
          elements.at[i] = bits_of<T>(b_.template load<static_cast<int>(sizeof(T))>(at + i * sizeof(T)));
    }
    if (call_.scaled != 0) {
      const T factor = bits_of<T>(call_.buffers[self_].scalar);
      TUTTI_UNROLL
      for (int i = 0; i < Word::size; ++i) elements.at[i] = scale(elements.at[i], factor);
    }
    return elements;
  }

  TUTTI_DEVICE void send(std::uint64_t word, const Word& mine) {
    struct Halves {
      std::uint32_t data[2];
    };
    const auto halves = bits_of<Halves>(mine);
    const std::uint64_t at = half() + offset_of(word);
    for (int i = 1; i < ranks_; ++i) {
      const int peer = self_ + i < ranks_ ? self_ + i : self_ + i - ranks_;
      b_.store_flagged(s_.there[peer] + at, {halves.data[0], flag_, halves.data[1], flag_});
    }
  }

  TUTTI_DEVICE bool is_complete(const FlaggedWord& got) const {
    return got.flag0 == flag_ && (B::fault == Fault::one_flag_checked || got.flag1 == flag_);
  }
  TUTTI_DEVICE bool is_sent(int rank) const { return rank < ranks_ && rank != self_; }

  /// Receives from ranks [first, first + batch). Polls all of them at once, as one poll takes as long as all. False:
  /// gave up.
  TUTTI_DEVICE bool receive(int first, std::uint64_t word, FlaggedWord (&got)[batch]) {
    const std::uint64_t at = half() + offset_of(word);
    state_ = wait_until(b_, call_, [&] {
      TUTTI_UNROLL
      for (int i = 0; i < batch; ++i)
        if (is_sent(first + i)) got[i] = b_.load_flagged(s_.here[first + i] + at);
      bool all = true;
      TUTTI_UNROLL
      for (int i = 0; i < batch; ++i) all = all && (!is_sent(first + i) || is_complete(got[i]));
      return all;
    });
    if (state_ == ErrorRecord::none) return true;
    TUTTI_UNROLL
    for (int i = batch - 1; i >= 0; --i)
      if (is_sent(first + i) && !is_complete(got[i])) missing_ = first + i;
    return false;
  }

  TUTTI_DEVICE void combine(std::uint64_t word, const Word& mine) {
    switch (call_.op) {
      case ReduceOp::prod: return combine_as<Prod>(word, mine);
      case ReduceOp::max: return combine_as<Max>(word, mine);
      case ReduceOp::min: return combine_as<Min>(word, mine);
      default: return combine_as<Sum>(word, mine);
    }
  }

  template <class Op>
  TUTTI_DEVICE void combine_as(std::uint64_t word, const Word& mine) {
    A result[Word::size]{};
    TUTTI_ROLL
    for (int first = 0; first < ranks_; first += batch) {
      FlaggedWord got[batch]{};
      if (!receive(first, word, got)) return;
      TUTTI_UNROLL
      for (int i = 0; i < batch; ++i) {
        if (first + i >= ranks_) continue;
        const std::uint32_t halves[2] = {got[i].data0, got[i].data1};
        const Word operand = first + i == self_ ? mine : bits_of<Word>(halves);
        TUTTI_UNROLL
        for (int j = 0; j < Word::size; ++j)
          result[j] = first + i == 0 ? widen(operand.at[j]) : Op{}(result[j], widen(operand.at[j]));
      }
    }
    Word rounded{};
    TUTTI_UNROLL
    for (int i = 0; i < Word::size; ++i)
      rounded.at[i] = narrow<T>(call_.average != 0 ? divide(result[i], ranks_) : result[i]);
    put(word, rounded);
  }

  TUTTI_DEVICE void put(std::uint64_t word, const Word& elements) {
    std::byte* const at = rank_.output + (extent_.begin + word * Word::size) * sizeof(T);
    if (reinterpret_cast<std::size_t>(at) % 8 == 0 && (word + 1) * Word::size <= extent_.count) {
      b_.template store<8>(at, bits_of<Pack<8>>(elements));
      return;
    }
    TUTTI_UNROLL
    for (int i = 0; i < Word::size; ++i)
      if (word * Word::size + static_cast<std::uint64_t>(i) < extent_.count)
        b_.template store<static_cast<int>(sizeof(T))>(at + i * sizeof(T),
                                                       bits_of<Pack<static_cast<int>(sizeof(T))>>(elements.at[i]));
  }

  /// Reports to the host the first rank that some thread waits for; rather one that makes another call. By all threads.
  TUTTI_DEVICE void report() {
    const bool differs = b_.sync_any(state_ == ErrorRecord::differs);
    for (int peer = 0; peer < ranks_; ++peer) {
      const bool mine = missing_ == peer && (!differs || state_ == ErrorRecord::differs);
      if (!b_.sync_any(mine)) continue;
      const bool late = b_.sync_any(mine && state_ == ErrorRecord::late);
      const bool reports = differs ? mine : b_.thread() == 0;  // one thread compares the calls of one peer
      if (!reports) return;
      ErrorRecord& record = rank_.errors[channel_];
      record.peer = static_cast<std::uint32_t>(peer);
      record.verb = static_cast<std::uint32_t>(Verb::peek);
      record.own = call_.signature;
      record.theirs = theirs_;
      const std::uint32_t state = differs ? ErrorRecord::differs : late ? ErrorRecord::late : ErrorRecord::aborted;
      b_.store_release(&record.state, state);
      b_.store_relaxed(call_.abort, std::uint32_t{1});
      return;
    }
  }

  B& b_;
  Shared<Body::one_shot>& s_;
  const Call& call_;
  const RankCall& rank_;
  std::uint32_t channel_;
  Link* links_;
  int ranks_;
  int self_;
  Extent extent_{};
  std::uint64_t uses_ = 0;
  std::uint32_t flag_ = 0;
  std::uint32_t state_ = ErrorRecord::none;  // why this thread gave up,
  int missing_ = -1;                         // and the rank that it waited for,
  std::uint64_t theirs_ = 0;                 // which has this signature
};

template <class T, Block B>
TUTTI_DEVICE void one_shot(B& b, Shared<Body::one_shot>& s, const Call& call) {
  OneShot<T, B>(b, s, call, part_of(b, call)).run();
}

}  // namespace tutti::device
