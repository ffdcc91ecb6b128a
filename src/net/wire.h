// One connection of the bootstrap: queues bytes to send and receives frames. Never blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/enumeration.h"
#include "base/system.h"

namespace tutti {

enum class FrameKind : std::uint32_t {
  join = 1,
  welcome = 2,
  contribute = 3,
  gathered = 4,
  failure = 5,
  bye = 6,
  listens = 7,
  unreachable = 8,
  settled = 9,
  confirm = 10,
  gone = 11,
  excuse = 12,
  first = join,
  last = excuse
};

struct Frame {
  FrameKind kind{};
  Bytes body;
};

/// Header and body, ready to be queued; several wires can share it.
std::shared_ptr<const Bytes> frame(FrameKind kind, const Bytes& body);

/// Uses memory only for the part of the current frame that has arrived, and never more than the given bound. Every
/// error means that the connection can no longer be used: remote (closed, or a frame out of bounds or of an unknown
/// kind), system.
class Wire {
 public:
  Wire(System& system, Socket socket) : system_(&system), socket_(std::move(socket)) {}

  void queue(std::shared_ptr<const Bytes> bytes) { out_.push_back(std::move(bytes)); }
  void queue(Bytes bytes) { queue(std::make_shared<const Bytes>(std::move(bytes))); }

  /// Sends as much of the queue as possible. True: nothing is left.
  Result<bool> flush();

  /// Exactly `bytes` raw bytes, once they have arrived.
  Result<std::optional<Bytes>> take(std::size_t bytes);
  /// The next frame, once it has arrived.
  Result<std::optional<Frame>> take_frame(std::size_t body_bytes_max);

  /// The part that has arrived of what `take` waits for.
  std::span<const std::byte> begun() const { return in_; }

  /// Discards incoming bytes. False: the other end has closed.
  bool drain();

  const Socket& socket() const { return socket_; }
  /// The bare socket, for continuing the connection by other means. Bytes received so far belong to the last frame.
  Socket take_socket() && { return std::move(socket_); }
  PollItem interest() const { return {.handle = socket_.handle(), .want_read = true, .want_write = !out_.empty()}; }

 private:
  System* system_;
  Socket socket_;
  std::deque<std::shared_ptr<const Bytes>> out_;
  std::size_t sent_ = 0;  ///< bytes of the first entry of out_
  Bytes in_;
  std::optional<FrameKind> kind_;  ///< of the frame whose body is being read
  std::uint64_t body_bytes_ = 0;
};

}  // namespace tutti
