// Sends and receives between ranks in several launches. Messages of a pair of ranks and direction (a queue) go one
// after another, those of different queues at the same time, whichever can go on.
//
// A message is cut into tiles, which go through slots. Both ranks know the tiles from the message's size, so each of
// their blocks knows its own. Each slot also says the size and type of its message; if the receiver expects others, it
// ends both calls. A sender waits for free slots alone, so messages that fit the slots wait for no receiver.
#pragma once

#include <cstddef>

#include "kernels/block.h"
#include "kernels/entries.h"
#include "kernels/moving.h"
#include "kernels/pass.h"
#include "kernels/waiting.h"

namespace tutti::device {

struct MessagesShared {  // by queue
  Message current[2 * ranks_max];
  std::uint64_t number[2 * ranks_max];  ///< of the current message, among all of the queue that there ever were
  std::uint64_t tile[2 * ranks_max];    ///< of the current message, to be moved next
  std::uint32_t next[2 * ranks_max];    ///< index of the current message
  std::uint32_t end[2 * ranks_max];     ///< behind the index of the last one
  std::uint8_t ready[2 * ranks_max];    ///< whether a tile can be moved now
};

template <Block B>
class Messages {
 public:
  TUTTI_DEVICE Messages(B& b, MessagesShared& s, HeldLinks& links, Operands (&operands)[2], const Call& call,
                        const BlockPart& part)
      : b_(b),
        s_(s),
        held_(links),
        call_(call),
        part_(part),
        queues_(2 * static_cast<int>(call.ranks)),
        self_(part.rank.rank),
        copier_(b, operands),
        watch_(b, call) {}

  TUTTI_DEVICE void run() {
    // An earlier kernel may have left a message where the next one is expected.
    if (!bring()) {
      b_.sync(Barrier::actions);
      return report(ErrorRecord::aborted);
    }
    while (true) {
      const PollResult polled = poll();
      if (!polled.pending) return keep_numbers();
      if (b_.sync_any(differing_ >= 0)) return report_difference();
      if (polled.gave_up) return report(watch_.why());
      if (polled.ready) move();
    }
  }

 private:
  TUTTI_DEVICE const Message* messages() const {
    return call_.messages != nullptr ? call_.messages : call_.few_messages;
  }

  /// False: the communicator has failed.
  TUTTI_DEVICE bool bring() {
    held_.load(b_, part_.links, call_.ranks);
    for (int queue = b_.thread(); queue < queues_; queue += b_.threads()) s_.next[queue] = s_.end[queue] = 0;
    const bool failed = b_.sync_any(thread_from(b_, 1) == 0 && b_.load_relaxed(call_.abort) == AbortWord::all_ends);
    const Message* const all = messages();
    const std::uint32_t count = call_.message_count;
    for (auto i = static_cast<std::uint32_t>(b_.thread()); i < count; i += static_cast<std::uint32_t>(b_.threads())) {
      const std::uint32_t queue = all[i].queue();
      if (i == 0 || all[i - 1].queue() != queue) s_.next[queue] = i;
      if (i + 1 == count || all[i + 1].queue() != queue) s_.end[queue] = i + 1;
    }
    b_.sync(Barrier::actions);
    for (int queue = b_.thread(); queue < queues_; queue += b_.threads()) {
      s_.number[queue] = held_.of[queue / 2].*counter_of(queue);
      begin(queue);
    }
    return !failed;
  }

  /// Every block counts all messages of a pair, also those of which it has no tile.
  TUTTI_DEVICE static std::uint64_t Link::*counter_of(int queue) {
    return queue % 2 == 0 ? &Link::raised : &Link::taken;
  }
  TUTTI_DEVICE void keep_numbers() {
    for (int queue = b_.thread(); queue < queues_; queue += b_.threads())
      part_.links[queue / 2].*counter_of(queue) = s_.number[queue];
  }

  /// By the queue's thread: from message `next` on, the first one of which this block has a tile.
  TUTTI_DEVICE void begin(int queue) {
    for (; is_pending(queue); next(queue)) {
      s_.current[queue] = messages()[s_.next[queue]];
      s_.tile[queue] = first_tile(queue);
      if (has_tile(queue)) return;
    }
  }

  TUTTI_DEVICE void next(int queue) {
    ++s_.next[queue];
    ++s_.number[queue];
  }

  /// Tiles go to the blocks in turn. The block that begins differs by pair and message, so that short ones do not meet
  /// in one block.
  TUTTI_DEVICE std::uint64_t first_tile(int queue) const {
    const std::uint64_t begins = self_ + static_cast<std::uint64_t>(queue / 2) + s_.number[queue];
    return (part_.channel + call_.channels - begins % call_.channels) % call_.channels;
  }
  TUTTI_DEVICE std::uint64_t tile_bytes_of(int queue) const {
    return tile_bytes(s_.current[queue].bytes, call_.channels, call_.slot_bytes - message_header_bytes);
  }
  /// An empty message has a tile, too.
  TUTTI_DEVICE bool has_tile(int queue) const {
    return s_.tile[queue] == 0 || s_.tile[queue] * tile_bytes_of(queue) < s_.current[queue].bytes;
  }
  TUTTI_DEVICE bool is_pending(int queue) const { return s_.next[queue] < s_.end[queue]; }

  TUTTI_DEVICE bool can_move(int queue) {
    const Link& link = held_.of[queue / 2];
    if (queue % 2 != 0) return reached(b_, link.committed_here, link.released + 1);
    if constexpr (B::fault == Fault::one_slot_too_many)
      return link.committed <= call_.slots || reached(b_, link.released_here, link.committed - call_.slots);
    return link.committed + 1 <= call_.slots || reached(b_, link.released_here, link.committed + 1 - call_.slots);
  }

  TUTTI_DEVICE std::byte* slot_of(int queue) const {
    const Link& link = held_.of[queue / 2];
    if (queue % 2 == 0) return link.slots_there + link.committed % call_.slots * call_.slot_bytes;
    return const_cast<std::byte*>(link.slots_here) + link.released % call_.slots * call_.slot_bytes;
  }

  TUTTI_DEVICE Pack<16> header_of(int queue) const { return {{s_.current[queue].bytes, s_.current[queue].type}}; }

  /// By the queue's thread, of a message that has come: whether it is the one that this rank expects.
  TUTTI_DEVICE bool is_expected(int queue) {
    theirs_ = b_.template load<16>(slot_of(queue));
    const Pack<16> own = header_of(queue);
    if (theirs_.words[0] == own.words[0] && theirs_.words[1] == own.words[1]) return true;
    differing_ = queue;
    return false;
  }

  TUTTI_DEVICE PollResult poll() {
    bool pending = false, ready = false;
    for (int queue = b_.thread(); queue < queues_ && differing_ < 0; queue += b_.threads()) {
      const bool left = is_pending(queue);
      const bool now = left && can_move(queue) && (queue % 2 == 0 || is_expected(queue));
      s_.ready[queue] = now ? 1 : 0;
      pending = pending || left;
      ready = ready || now;
    }
    return vote(b_, watch_, pending, ready);
  }

  /// Moves a tile of every queue that is ready. Each rank begins with another peer, so that not all store to one.
  TUTTI_DEVICE void move() {
    for (int i = 0; i < queues_; ++i)
      if (const int queue = (2 * static_cast<int>(self_ + 1) + i) % queues_; s_.ready[queue] != 0) copy_tile(queue);
    publish(b_);
    for (int queue = b_.thread(); queue < queues_; queue += b_.threads()) {
      if (s_.ready[queue] == 0) continue;
      const auto peer = static_cast<std::uint32_t>(queue / 2);
      const Link& link = held_.of[peer];
      if (queue % 2 == 0)
        raise(b_, link.committed_there, held_.one_more(part_.links, peer, &Link::committed));
      else
        raise(b_, link.released_there, held_.one_more(part_.links, peer, &Link::released));
      s_.tile[queue] += call_.channels;
      if (has_tile(queue)) continue;
      next(queue);
      begin(queue);
    }
  }

  TUTTI_DEVICE void copy_tile(int queue) {
    const Message& message = s_.current[queue];
    std::byte* const slot = slot_of(queue);
    const Tile tile = tile_of(message.bytes, s_.tile[queue], tile_bytes_of(queue));
    std::byte* const here = message.data + tile.begin;
    std::byte* const there = slot + message_header_bytes;
    if (queue % 2 == 0 && b_.thread() == 0) b_.template store<16>(slot, header_of(queue));
    copier_.copy(queue % 2 == 0 ? here : there, queue % 2 == 0 ? there : here, tile.bytes);
  }

  /// The first message that its receiver does not expect.
  TUTTI_DEVICE void report_difference() {
    for (int queue = 1; queue < queues_; queue += 2) {
      if (!b_.sync_any(differing_ == queue)) continue;
      if (differing_ != queue) return;
      if (ErrorRecord& record = part_.rank.errors[part_.channel]; is_free(b_, record)) {
        begin(record, queue);
        record.own = s_.current[queue].bytes;
        record.theirs = theirs_.words[0];
        const std::uint64_t type = theirs_.words[1] < UINT16_MAX ? theirs_.words[1] : UINT16_MAX;
        record.types = s_.current[queue].type | static_cast<std::uint32_t>(type << 16);
        b_.store_release(&record.state, std::uint32_t{ErrorRecord::counts});
      }
      b_.store_relaxed(call_.abort, std::uint32_t{AbortWord::all_ends});
      return;
    }
  }

  /// The first peer that was waited for; stops all other blocks of the launch. By all threads.
  TUTTI_DEVICE void report(std::uint32_t why) {
    if (b_.thread() != 0) return;
    for (int queue = 0; queue < queues_; ++queue) {
      if (!is_pending(queue)) continue;
      if (ErrorRecord& record = part_.rank.errors[part_.channel]; is_free(b_, record)) {
        begin(record, queue);
        b_.store_release(&record.state, why);
      }
      break;
    }
    b_.store_relaxed(call_.abort, std::uint32_t{AbortWord::all_ends});
  }

  TUTTI_DEVICE void begin(ErrorRecord& record, int queue) const {
    record.peer = static_cast<std::uint32_t>(queue / 2);
    record.tile = static_cast<std::uint32_t>(s_.tile[queue]);
    record.verb = static_cast<std::uint32_t>(queue % 2 == 0 ? Verb::acquire : Verb::peek);
    record.message = 1;
  }

  B& b_;
  MessagesShared& s_;
  HeldLinks& held_;
  const Call& call_;
  const BlockPart part_;
  int queues_;
  std::uint32_t self_;
  Copier<B> copier_;
  IdleWatch<B> watch_;  // of thread 0
  int differing_ = -1;  // of one thread: the queue whose message is not expected,
  Pack<16> theirs_{};   // and what it is
};

}  // namespace tutti::device
