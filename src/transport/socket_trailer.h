// The word that ends each message on each socket: both ends know it without being told, so bytes that do not belong to
// the message are noticed before anybody relies on it.
#pragma once

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

}  // namespace tutti
