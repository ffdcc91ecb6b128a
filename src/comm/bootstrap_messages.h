// What ranks and root tell each other once the handshake is through. Everything read is checked here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "comm/bootstrap.h"

namespace tutti::bootstrap {

inline constexpr std::size_t settings_text_bytes_max = 1024;
inline constexpr std::size_t process_text_bytes_max = 256;
inline constexpr std::size_t words_bytes_max = 4096;
inline constexpr std::int64_t limit_ms_max = std::int64_t{1} << 40;  ///< so that sums of times do not overflow

/// The longest body of each kind, for the reader's bound.
inline constexpr std::size_t join_bytes_max = 2048;
inline constexpr std::size_t failure_bytes_max = words_bytes_max + 64;
std::size_t contribution_bytes_max(std::size_t blob_bytes_max);
std::size_t gathered_bytes_max(int ranks, std::size_t blob_bytes_max);

/// Errors of all read functions: remote (malformed).
Bytes write_join(const Bootstrap::Who& who);
Result<Bootstrap::Who> read_join(const Bytes& body);

struct Contribution {
  std::uint32_t round = 0;
  Blob blob;
};
Bytes write_contribution(std::uint32_t round, const Blob& blob);
Result<Contribution> read_contribution(const Bytes& body, std::size_t blob_bytes_max);

Bytes write_gathered(std::uint32_t round, const std::vector<Blob>& blobs);
Result<std::vector<Blob>> read_gathered(const Bytes& body, std::uint32_t round, int ranks, std::size_t blob_bytes_max);

/// The root's words; errno, channel and step do not travel. A malformed one is an error all the same.
Bytes write_failure(const Error& error);
Error read_failure(const Bytes& body);

}  // namespace tutti::bootstrap
