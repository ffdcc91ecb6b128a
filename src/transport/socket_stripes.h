// Which bytes of a message travel on which of the sockets to a peer. The message's length alone decides, so no header
// is needed. Each socket's share is followed by its trailer (see socket_trailer.h).
#pragma once

#include <algorithm>
#include <cstddef>

#include "transport/socket_trailer.h"

namespace tutti {

/// A message of up to one piece travels on the first socket; piece k of a longer one travels on socket k mod sockets.
struct Stripes {
  static constexpr std::size_t piece_bytes_default = 128 * 1024;

  std::size_t bytes = 0;  ///< of the message, as sent; at least one
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

  /// Number of sockets that have a share; they are the first ones.
  std::size_t carriers() const { return striped() ? std::min(sockets, (bytes + piece_bytes - 1) / piece_bytes) : 1; }

  /// Bytes that `socket` carries for the message: its share and the trailer, or nothing.
  std::size_t carried(std::size_t socket) const {
    const std::size_t bytes_here = share(socket);
    return bytes_here == 0 ? 0 : bytes_here + trailer_bytes;
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
