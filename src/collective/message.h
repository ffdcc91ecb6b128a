// A message with a tag under way, and the count of those of a communicator.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/error.h"
#include "call/request.h"

namespace tutti {

/// What a receiver knows of a message.
struct MessageEnvelope {
  static constexpr int any = -1;  ///< of a receive: every source; every tag
  Rank source = 0;
  int tag = 0;
  std::size_t bytes = 0;
  DataType type = DataType::uint8;

  /// Of a receive: whether it takes messages of this rank with this tag.
  bool takes(Rank from, int with) const { return (source == any || source == from) && (tag == any || tag == with); }
};

/// A send or a receive under way. Its fields are the mailbox's, under its lock, until `state` is something else than
/// pending.
struct Message {
  enum class State : std::uint8_t { pending, done, failed, cancelled };

  bool send = true;
  std::byte* data = nullptr;  ///< only read by a send
  MessageEnvelope envelope;   ///< of a receive what it takes, then what it got; `bytes` its space until then
  Rank to = 0;                ///< of a send
  std::atomic<State> state = State::pending;
  std::optional<Error> error = {};  ///< of this message alone
  bool begun = false;               ///< it can no longer be cancelled
};

/// How many messages are pending, and what has moved so far: packets, slots and pieces.
class MessageCounts {
 public:
  void begin() { pending_.fetch_add(1, std::memory_order_acq_rel); }
  void end(Message& message, Message::State state) {
    note_move();
    message.state.store(state, std::memory_order_release);
    pending_.fetch_sub(1, std::memory_order_acq_rel);
  }
  /// It is done, unless it has an error.
  void end(Message& message) { end(message, message.error ? Message::State::failed : Message::State::done); }
  void note_move() { ++moves_; }

  bool pending() const { return pending_.load(std::memory_order_acquire) > 0; }  ///< any thread
  std::uint64_t moves() const { return moves_; }

 private:
  std::uint64_t moves_ = 0;
  std::atomic<int> pending_ = 0;
};

}  // namespace tutti
