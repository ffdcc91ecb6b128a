// The 128 bytes that name a communicator to be, and the secret in them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/system.h"

namespace tutti {

using Secret = std::array<std::byte, 32>;

struct UniqueId {
  static constexpr std::size_t host_bytes_max = 63;

  SocketAddress root;  ///< where the bootstrap root listens: a numeric address
  Secret secret{};     ///< the credential: never logged

  /// 128 bytes with a version and a checksum. Requires a host of at most `host_bytes_max` bytes.
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
