// Calls with a count per rank, between ranks in several launches: each rank copies its blocks into slots of their
// receivers, and takes what arrives out of its own slots, whichever is possible first. There is no plan.
//
// A rank knows only its own counts. With its first words it tells each peer how many bytes follow, and how many it
// expects; if the peer differs, both calls end before they have written anything.
#pragma once

#include <cstddef>

#include "kernels/block.h"
#include "kernels/entries.h"
#include "kernels/inboxes.h"
#include "kernels/moving.h"
#include "kernels/pass.h"
#include "kernels/waiting.h"

namespace tutti::device {

struct ExchangeShared {
  Transfer transfers[ranks_max];
  std::uint64_t next_tile[2 * ranks_max];  ///< by 2 · peer, to be sent; by 2 · peer + 1, to be received
  std::uint8_t ready[2 * ranks_max];       ///< whether it can be moved now
  InboxShared inboxes;
};

template <Block B>
class Exchange {
 public:
  TUTTI_DEVICE Exchange(B& b, ExchangeShared& s, HeldLinks& links, Operands (&operands)[2], const Call& call,
                        const BlockPart& part)
      : b_(b),
        s_(s),
        held_(links),
        call_(call),
        part_(part),
        rank_(part.rank),
        ranks_(static_cast<int>(call.ranks)),
        self_(static_cast<int>(rank_.rank)),
        copier_(b, operands),
        watch_(b, call) {}

  TUTTI_DEVICE void run() {
    bring();
    if (!open()) return;
    copy_own();
    while (true) {
      const PollResult polled = poll();
      if (!polled.pending) return;
      if (polled.gave_up) return report();
      if (polled.ready) move();
    }
  }

 private:
  TUTTI_DEVICE void bring() {
    held_.load(b_, part_.links, call_.ranks);
    const Transfer* const all = call_.transfers + static_cast<std::size_t>(&rank_ - call_.local) * call_.ranks;
    for (int peer = b_.thread(); peer < ranks_; peer += b_.threads()) {
      s_.transfers[peer] = all[peer];
      s_.next_tile[2 * peer] = s_.next_tile[2 * peer + 1] = part_.channel;
    }
    b_.sync(Barrier::actions);
  }

  /// All ranks make the same call, and expect what their peers send. False: gave up.
  TUTTI_DEVICE bool open() {
    Inboxes<B> inboxes(b_, s_.inboxes, call_, BlockPart{rank_, part_.channel, part_.links});
    if (!inboxes.look_up(held_.of)) return false;
    inboxes.send_signature();
    for (int peer = b_.thread(); peer < ranks_; peer += b_.threads())
      if (peer != self_) {
        inboxes.send(peer, 1, s_.transfers[peer].all_sent);
        inboxes.send(peer, 2, s_.transfers[peer].all_received);
      }
    if (!inboxes.same_call() || !inboxes.same_bytes(s_.transfers)) return false;
    inboxes.close();
    return true;
  }

  TUTTI_DEVICE Tile tile_of(std::uint64_t bytes, std::uint64_t tile) const {
    return device::tile_of(bytes, tile, tile_bytes(bytes, call_.channels, call_.slot_bytes));
  }

  TUTTI_DEVICE std::uint64_t bytes_of(int item) const {
    const Transfer& transfer = s_.transfers[item / 2];
    return item % 2 == 0 ? transfer.sent : transfer.received;
  }

  TUTTI_DEVICE bool is_pending(int item) const {
    return item / 2 != self_ && tile_of(bytes_of(item), s_.next_tile[item]).bytes != 0;
  }

  TUTTI_DEVICE bool can_move(int item) {
    const Link& link = held_.of[item / 2];
    if (item % 2 != 0) return reached(b_, link.committed_here, link.released + 1);
    return link.committed + 1 <= call_.slots || reached(b_, link.released_here, link.committed + 1 - call_.slots);
  }

  /// What is left to be moved, and what of it can be moved now.
  TUTTI_DEVICE PollResult poll() {
    bool pending = false, ready = false;
    for (int item = b_.thread(); item < 2 * ranks_; item += b_.threads()) {
      const bool left = is_pending(item);
      const bool now = left && can_move(item);
      s_.ready[item] = now ? 1 : 0;
      pending = pending || left;
      ready = ready || now;
    }
    return vote(b_, watch_, pending, ready);
  }

  /// Moves a tile of everything that is ready. Each rank begins with another peer, so that not all store to one.
  TUTTI_DEVICE void move() {
    for (int i = 0; i < 2 * ranks_; ++i)
      if (const int item = (2 * (self_ + 1) + i) % (2 * ranks_); s_.ready[item] != 0) copy_tile(item);
    publish(b_);
    for (int item = b_.thread(); item < 2 * ranks_; item += b_.threads()) {
      if (s_.ready[item] == 0) continue;
      s_.next_tile[item] += call_.channels;
      const int peer = item / 2;
      const Link& link = held_.of[peer];
      if (item % 2 == 0)
        raise(b_, link.committed_there, one_more(peer, &Link::committed));
      else
        raise(b_, link.released_there, one_more(peer, &Link::released));
    }
  }

  TUTTI_DEVICE std::uint64_t one_more(int peer, std::uint64_t Link::*counter) {
    return held_.one_more(part_.links, static_cast<std::uint32_t>(peer), counter);
  }

  TUTTI_DEVICE void copy_tile(int item) {
    const Link& link = held_.of[item / 2];
    const Transfer& transfer = s_.transfers[item / 2];
    const Tile tile = tile_of(bytes_of(item), s_.next_tile[item]);
    if (item % 2 == 0)
      copier_.copy(rank_.input + transfer.from + tile.begin,
                   link.slots_there + link.committed % call_.slots * call_.slot_bytes, tile.bytes);
    else
      copier_.copy(link.slots_here + link.released % call_.slots * call_.slot_bytes,
                   rank_.output + transfer.to + tile.begin, tile.bytes);
  }

  /// A rank's block for itself; in place it is there already.
  TUTTI_DEVICE void copy_own() {
    const Transfer& own = s_.transfers[self_];
    const std::byte* const from = rank_.input + own.from;
    std::byte* const to = rank_.output + own.to;
    if (from == to) return;
    for (std::uint64_t tile = part_.channel;; tile += call_.channels) {
      const Tile part = tile_of(own.sent, tile);
      if (part.bytes == 0) return;
      copier_.copy(from + part.begin, to + part.begin, part.bytes);
    }
  }

  /// Reports the first peer that was waited for, and stops all other blocks of the launch. By all threads.
  TUTTI_DEVICE void report() {
    if (b_.thread() != 0) return;
    for (int item = 0; item < 2 * ranks_; ++item) {
      if (!is_pending(item)) continue;
      ErrorRecord& record = rank_.errors[part_.channel];
      if (!is_free(b_, record)) break;
      record.peer = static_cast<std::uint32_t>(item / 2);
      record.tile = static_cast<std::uint32_t>(s_.next_tile[item]);
      record.verb = static_cast<std::uint32_t>(item % 2 == 0 ? Verb::acquire : Verb::peek);
      record.message = 0;
      b_.store_release(&record.state, watch_.why());
      break;
    }
    b_.store_relaxed(call_.abort, std::uint32_t{AbortWord::all_ends});
  }

  B& b_;
  ExchangeShared& s_;
  HeldLinks& held_;
  const Call& call_;
  const BlockPart part_;
  const RankCall& rank_;
  int ranks_;
  int self_;
  Copier<B> copier_;
  IdleWatch<B> watch_;  // of thread 0
};

}  // namespace tutti::device
