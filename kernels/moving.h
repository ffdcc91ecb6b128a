// What bodies without a plan share that move messages through slots: the tiles of a message, copies by all threads of a
// block, and the limits of waiting.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/block.h"
#include "kernels/entries.h"
#include "kernels/pass.h"
#include "kernels/waiting.h"

namespace tutti::device {

/// A part of a message, in bytes.
struct Tile {
  std::uint64_t begin, bytes;
};

/// The size of the tiles of a message of so many bytes, which so many channels move: at most `most`, a multiple of 128.
TUTTI_DEVICE std::uint64_t tile_bytes(std::uint64_t bytes, std::uint64_t channels, std::uint64_t most) {
  constexpr std::uint64_t least = 16 * 1024, line = 128;
  const std::uint64_t each = ((bytes + channels - 1) / channels + line - 1) / line * line;
  const std::uint64_t more = each > least ? each : least;
  return more < most ? more : most;
}

/// A tile of a message of so many bytes; nothing behind its end.
TUTTI_DEVICE Tile tile_of(std::uint64_t bytes, std::uint64_t tile, std::uint64_t each) {
  const std::uint64_t begin = tile * each;
  if (begin >= bytes) return {0, 0};
  return {begin, each < bytes - begin ? each : bytes - begin};
}

/// Copies by all threads of a block, one after another.
template <Block B>
class Copier {
 public:
  TUTTI_DEVICE Copier(B& b, Operands (&operands)[2]) : b_(b), operands_(operands) {}

  TUTTI_DEVICE void copy(const std::byte* from, std::byte* to, std::uint64_t bytes) {
    Operands& o = operands_[turn_ ^= 1];
    if (b_.thread() == 0) {
      o.sources[0] = from;
      o.destinations[0] = to;
    }
    b_.sync(Barrier::operands);
    copy_pass(b_, o, {}, bytes);
  }

 private:
  B& b_;
  Operands (&operands_)[2];
  int turn_ = 0;
};

/// Of one thread: how long nothing could go on.
template <Block B>
class IdleWatch {
 public:
  TUTTI_DEVICE IdleWatch(B& b, const Call& call) : b_(b), call_(call) {}

  TUTTI_DEVICE void restart() { looks_ = 0; }
  /// Why the thread gave up.
  TUTTI_DEVICE std::uint32_t why() const { return why_; }

  /// Nothing can go on now, either. True: it has been so for too long, or the call is aborted.
  TUTTI_DEVICE bool is_over() {
    constexpr std::uint32_t looks = 256;
    b_.pause();
    if (++looks_ % looks != 0) return false;
    if (looks_ == looks) since_ = 0;
    why_ = end_of_wait(b_, call_, since_);
    return why_ != ErrorRecord::none;
  }

 private:
  B& b_;
  const Call& call_;
  std::uint32_t looks_ = 0;
  std::uint64_t since_ = 0;
  std::uint32_t why_ = ErrorRecord::none;
};

/// What a body finds that looks at all that it still has to move. Equal for all threads of the block.
struct PollResult {
  bool pending, ready, gave_up;
};

/// `left`: whether this thread has something to move; `now`: and whether it can be moved now.
template <Block B>
TUTTI_DEVICE PollResult vote(B& b, IdleWatch<B>& watch, bool left, bool now) {
  const bool pending = b.sync_any(left);
  const bool ready = b.sync_any(now);
  if (ready || !pending) {
    watch.restart();
    return {pending, ready, false};
  }
  return {pending, false, b.sync_any(b.thread() == 0 && watch.is_over())};
}

}  // namespace tutti::device
