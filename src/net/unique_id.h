// The 128 bytes that name a communicator to be, and the secret in them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/system.h"

namespace tutti {

using Secret = std::array<std::byte, 32>;

struct UniqueId {
  SocketAddress root;                  ///< where the bootstrap root listens: a numeric address
  std::vector<std::string> also = {};  ///< further addresses of the same root and port, worse ones later
  Secret secret{};                     ///< the credential: never logged

  /// Where to call at the n-th try: the best address first, then the others, then all over again.
  SocketAddress candidate(std::size_t nth) const;
  /// "192.0.2.2 or fd00::2, port 4711"
  std::string where() const;

  /// 128 bytes with a version and a checksum. They hold 15 IPv4 or 4 IPv6 addresses; those that do not fit are left
  /// out.
  std::array<char, 128> encode() const;
  /// Errors: invalid_argument (not an id, other version).
  static Result<UniqueId> decode(const char* bytes);
  /// A few hex digits that tell ids apart in logs without giving the secret away.
  std::string fingerprint() const;
};

/// 32 bytes from the system's random source. Errors: system.
Result<Secret> fresh_secret();

/// From what a user typed, at least 16 characters. Errors: invalid_argument (shorter), system.
Result<Secret> secret_from_text(std::string_view text);

}  // namespace tutti
