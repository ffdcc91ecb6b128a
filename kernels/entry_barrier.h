// How the ranks of a plan in different launches begin: each learns that all make the same call, and, where the call may
// go through windows, that all have begun and where their buffers are.
//
// begin() tells the other ranks everything at once; end() waits for what they tell. Between the two a block can do what
// needs nobody.
#pragma once

#include <cstddef>

#include "kernels/block.h"
#include "kernels/entries.h"
#include "kernels/inboxes.h"
#include "kernels/waiting.h"

namespace tutti::device {

struct EntryBarrierShared {
  std::uint64_t offers[2 * ranks_max];  ///< of the ranks' inputs and outputs, in turn
  PeerBuffers windows[ranks_max];       ///< of ranks in other launches, if all have offered them
  InboxShared inboxes;
};

/// A rank's plan through windows.
TUTTI_DEVICE const ByWindows& by_windows_of(const Call& call, const RankCall& rank) {
  return call.by_windows[&rank - call.local];
}

template <Block B>
class EntryBarrier {
 public:
  TUTTI_DEVICE EntryBarrier(B& b, EntryBarrierShared& s, HeldLinks& links, const Call& call, const BlockPart& part)
      : b_(b),
        s_(s),
        held_(links),
        call_(call),
        rank_(part.rank),
        links_(part.links),
        inboxes_(b, s.inboxes, call, part) {}

  /// False: gave up.
  TUTTI_DEVICE bool begin() {
    if (is_left_out()) return true;
    if (!inboxes_.look_up(held_.of)) return false;
    if (inboxes_.has_cleared()) bring_links();  // ranks have met for that
    if (orders()) arrive();
    inboxes_.send_signature();
    if (call_.choose != 0) {
      inboxes_.send_all(1, by_windows().input);
      inboxes_.send_all(2, by_windows().output);
    }
    return true;
  }

  /// False: gave up, and reported why. Otherwise `by_windows` says whether all ranks have offered their buffers, if it
  /// was true before.
  TUTTI_DEVICE bool end(bool& by_windows) {
    if (is_left_out()) {
      by_windows = false;
      return true;
    }
    if (!inboxes_.same_call([&](int peer) { return has_begun(static_cast<std::uint32_t>(peer)); })) return false;
    inboxes_.close();
    if (orders()) by_windows = find_windows(by_windows);
    return true;
  }

 private:
  TUTTI_DEVICE const ByWindows& by_windows() const { return by_windows_of(call_, rank_); }
  /// Whether accesses to memory of other ranks follow.
  TUTTI_DEVICE bool orders() const { return call_.windows != 0 || call_.choose != 0; }
  TUTTI_DEVICE bool is_left_out() const { return B::fault == Fault::no_entry_barrier && orders(); }

  TUTTI_DEVICE void bring_links() {
    b_.sync(Barrier::counters);
    held_.load(b_, links_, call_.ranks);
    b_.sync(Barrier::counters);
  }

  /// This rank's block of the channel has begun. A thread per peer, but not those that send the words, as these would
  /// wait for the order of memory.
  TUTTI_DEVICE void arrive() {
    for (std::uint32_t peer = thread_from(b_, 1); peer < call_.ranks; peer += static_cast<std::uint32_t>(b_.threads()))
      if (peer != rank_.rank) raise(b_, held_.of[peer].flag_there, held_.one_more(links_, peer, &Link::raised));
  }

  /// Whether the peer has begun and told what it offers. Looks for everything at once, as one look takes as long as
  /// all.
  TUTTI_DEVICE bool has_begun(std::uint32_t peer) {
    if (!orders()) return true;
    FlaggedWord input{};
    FlaggedWord output{};
    if (call_.choose != 0) {
      input = inboxes_.load(static_cast<int>(peer), 1);
      output = inboxes_.load(static_cast<int>(peer), 2);
    }
    if (!reached(b_, held_.of[peer].flag_here, held_.of[peer].taken + 1)) return false;
    if (call_.choose == 0) return true;
    if (!inboxes_.is_complete(input) || !inboxes_.is_complete(output)) return false;
    s_.offers[2 * peer] = inboxes_.data_of(input);
    s_.offers[2 * peer + 1] = inboxes_.data_of(output);
    return true;
  }

  /// Whether all ranks offer their buffers; each learns the same. A thread per peer: the one that has seen the peer's
  /// flag, which orders the words of the table before those of the peer.
  TUTTI_DEVICE bool find_windows(bool wanted) {
    bool offered = wanted && by_windows().input != Offer::none && by_windows().output != Offer::none;
    for (std::uint32_t peer = thread_from(b_, 0); peer < call_.ranks;
         peer += static_cast<std::uint32_t>(b_.threads())) {
      if (peer == rank_.rank) continue;
      held_.one_more(links_, peer, &Link::taken);
      if (!wanted) continue;
      const std::uint64_t input = s_.offers[2 * peer];
      const std::uint64_t output = s_.offers[2 * peer + 1];
      if constexpr (B::fault != Fault::windows_alone)
        offered = offered && input != Offer::none && output != Offer::none;
      if (offered) s_.windows[peer] = {window_at(peer, input), window_at(peer, output), 0};
    }
    return !b_.sync_any(!offered);
  }

  /// Where a peer's buffer is for this GPU.
  TUTTI_DEVICE std::byte* window_at(std::uint32_t peer, std::uint64_t offer) const {
    if (offer == Offer::none || offer == Offer::absent) return rank_.output;  // not used
    return by_windows().mapped[peer * Offer::places + Offer::place(offer)] + Offer::offset(offer);
  }

  B& b_;
  EntryBarrierShared& s_;
  HeldLinks& held_;
  const Call& call_;
  const RankCall& rank_;
  Link* links_;
  Inboxes<B> inboxes_;
};

}  // namespace tutti::device
