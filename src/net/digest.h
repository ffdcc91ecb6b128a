// Hashes and message authentication codes, by OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/error.h"

namespace tutti {

/// Initialises libcrypto now; otherwise the first digest would.
void prepare_digests();

using Digest = std::array<std::byte, 32>;

/// Errors: system (OpenSSL has no memory, or lacks the algorithm).
Result<Digest> sha256(std::span<const std::byte> bytes);
Result<Digest> hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> bytes);
/// Covers what the bytes are used for, so that they cannot pass for others. `more` follows them.
Result<Digest> hmac_of(std::span<const std::byte> key, std::string_view use, std::span<const std::byte> bytes,
                       std::span<const std::byte> more = {});

/// Takes the same time wherever the first difference is.
bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b);

/// Overwrites a secret; the compiler does not remove the stores.
void wipe(std::span<std::byte> bytes);

}  // namespace tutti
