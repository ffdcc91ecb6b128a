// The 128 bytes that identify a communicator and contain its secret.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/system.h"
#include "net/digest.h"

namespace tutti {

using SecretBytes = std::array<std::byte, 32>;

/// Each copy is wiped as it ends, so none remains on the stack or in memory that was freed.
struct Secret : SecretBytes {
  Secret() : SecretBytes{} {}
  explicit Secret(const SecretBytes& bytes) : SecretBytes(bytes) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret() { wipe(*this); }
};

/// The 128 bytes of an id, with its secret among them; wiped as that.
struct EncodedId : std::array<char, 128> {
  EncodedId() : array{} {}
  EncodedId(const EncodedId&) = default;
  EncodedId& operator=(const EncodedId&) = default;
  ~EncodedId() { wipe(std::as_writable_bytes(std::span(*this))); }
};

struct UniqueId {
  SocketAddress root;                  ///< address of the bootstrap root: numeric
  std::vector<std::string> also = {};  ///< further addresses of the same root and port, best first
  Secret secret{};                     ///< the credential: never logged
  /// The root may not listen yet, as with an address that all ranks know beforehand. Otherwise the id was made by the
  /// root, which listens as long as the id is of use. Not part of the 128 bytes.
  bool root_may_come_later = false;

  /// The address for the n-th try: the best one first, then the others in turn, then from the start again.
  SocketAddress candidate(std::size_t nth) const;
  /// "192.0.2.2 or fd00::2, port 4711"
  std::string where() const;

  /// 128 bytes with a version and a checksum. They have space for 15 IPv4 or 4 IPv6 addresses; further ones are left
  /// out.
  EncodedId encode() const;
  /// Errors: invalid_argument (not an id, or of another version).
  static Result<UniqueId> decode(const char* bytes);
  /// A few hex digits that distinguish ids in logs without revealing the secret.
  std::string fingerprint() const;
};

/// 32 bytes from the system's random source. Errors: system.
Result<Secret> fresh_secret();

/// Derived from a user's text of at least 16 characters. Errors: invalid_argument (shorter), system.
Result<Secret> secret_from_text(std::string_view text);

}  // namespace tutti
