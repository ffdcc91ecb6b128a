// Which bytes of a message travel on which of the sockets to a peer. The message's length alone decides, so no header
// is needed. A word ends each socket's share, its trailer: both ends know it without being told, so bytes that do not
// belong to the message are noticed before anybody relies on it.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace tutti {

inline constexpr std::size_t trailer_bytes = sizeof(std::uint64_t);

/// TCP delivers what was written to a descriptor, whoever wrote it. If another part of a program writes to a
/// connection, because it uses the number of a descriptor that it has closed, everything behind those bytes is shifted
/// and would be taken for data. Against mistakes, not against attackers: anybody can compute these words.
class Trailers {
 public:
  /// Of the messages from rank `from` to rank `to` on a channel.
  Trailers(int from, int to, int channel)
      : stream_(
            mix(static_cast<std::uint64_t>(static_cast<std::uint32_t>(from)) << 32 | static_cast<std::uint32_t>(to)) +
            static_cast<std::uint64_t>(channel)) {}

  /// For message `number` of the stream, on the socket with this index.
  std::uint64_t of(std::uint64_t number, std::size_t socket) const { return mix(stream_ + (number << 8) + socket); }

 private:
  /// The finaliser of SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
  static std::uint64_t mix(std::uint64_t x) {
    x += 0x9e37'79b9'7f4a'7c15;
    x = (x ^ x >> 30) * 0xbf58'476d'1ce4'e5b9;
    x = (x ^ x >> 27) * 0x94d0'49bb'1331'11eb;
    return x ^ x >> 31;
  }

  std::uint64_t stream_;
};

/// Whether an error says that bytes of a connection are not its sender's, rather than that it has ended.
inline bool is_shifted(const Error& error) {
  return error.sys_errno == EBADMSG;
}

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
