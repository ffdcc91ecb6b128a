// Which bytes of a message travel on which of the sockets to a peer. The message's length alone decides, so no header
// is needed.
#pragma once

#include <algorithm>
#include <cstddef>

namespace tutti {

/// A message of up to one piece travels on the first socket; piece k of a longer one travels on socket k mod sockets.
struct Stripes {
  static constexpr std::size_t piece_bytes_default = 128 * 1024;

  std::size_t bytes = 0;  ///< of the message, as sent
  std::size_t sockets = 1;
  std::size_t piece_bytes = piece_bytes_default;

  bool striped() const { return sockets > 1 && bytes > piece_bytes; }

  /// Bytes that travel on `socket`.
  std::size_t share(std::size_t socket) const {
    if (!striped()) return socket == 0 ? bytes : 0;
    const std::size_t full = bytes / piece_bytes;
    const std::size_t last = full % sockets == socket ? bytes % piece_bytes : 0;
    return (full + sockets - 1 - socket) / sockets * piece_bytes + last;
  }

  /// The position in the message of byte `done` of the socket's share.
  std::size_t position(std::size_t socket, std::size_t done) const {
    if (!striped()) return done;
    return (socket + done / piece_bytes * sockets) * piece_bytes + done % piece_bytes;
  }

  /// How many bytes of the share are contiguous in the message from there on.
  std::size_t run(std::size_t socket, std::size_t done) const {
    const std::size_t left = share(socket) - done;
    return striped() ? std::min(left, piece_bytes - done % piece_bytes) : left;
  }
};

}  // namespace tutti
