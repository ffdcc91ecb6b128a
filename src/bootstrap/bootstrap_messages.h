// The messages between ranks and root after the handshake. Everything that is read is checked here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "bootstrap/bootstrap.h"

namespace tutti::bootstrap {

inline constexpr std::size_t settings_text_bytes_max = 1024;
inline constexpr std::size_t process_text_bytes_max = 256;
inline constexpr std::size_t text_bytes_max = 4096;
inline constexpr std::int64_t limit_ms_max = std::int64_t{1} << 40;  ///< so that sums of times do not overflow

/// The longest body of each kind, as bounds for the reader.
inline constexpr std::size_t join_bytes_max = 2048;  ///< and of an excuse
inline constexpr std::size_t excuse_text_bytes_max = 1024;
inline constexpr std::size_t address_bytes_max = 256;
inline constexpr std::size_t notice_bytes_max = text_bytes_max + 64;  ///< of all that have none of their own
inline std::size_t contribution_bytes_max(std::size_t blob_bytes_max) {
  return 12 + blob_bytes_max;
}
inline std::size_t gathered_bytes_max(int ranks, std::size_t blob_bytes_max) {
  return 4 + static_cast<std::size_t>(ranks) * (4 + blob_bytes_max);
}

/// Errors of all read functions: remote (malformed).
Bytes write_join(const Bootstrap::Who& who);
Result<Bootstrap::Who> read_join(const Bytes& body);

/// For a rank that joins: its place.
struct Welcome {
  bool listen = false;       ///< it is to have children: it opens a port and reports the address
  int parent = -1;           ///< its parent; −1: the sender
  SocketAddress at = {};     ///< address of the parent
  std::string process = {};  ///< name of the parent's process, for messages
};
Bytes write_welcome(const Welcome& welcome);
Result<Welcome> read_welcome(const Bytes& body);

/// The address at which a rank that was asked to listen does so; an empty host: it cannot.
Bytes write_listens(const SocketAddress& at);
Result<SocketAddress> read_listens(const Bytes& body);

/// A rank's part of an exchange, passed up the tree.
struct Contribution {
  std::uint32_t round = 0;
  Blob blob;
  int rank = 0;
};
Bytes write_contribution(int rank, std::uint32_t round, const Blob& blob);
Result<Contribution> read_contribution(const Bytes& body, std::size_t blob_bytes_max);

Bytes write_gathered(std::uint32_t round, const std::vector<Blob>& blobs);
Result<std::vector<Blob>> read_gathered(const Bytes& body, std::uint32_t round, int ranks, std::size_t blob_bytes_max);

/// The sender and all ranks below it have the answer.
struct Confirmation {
  std::uint32_t round = 0;
  std::uint64_t refused = 0;  ///< connections so far without the secret, to this rank and to those below it
};
Bytes write_confirmation(const Confirmation& confirmation);
Result<Confirmation> read_confirmation(const Bytes& body);

/// A child of `by` has gone.
struct Gone {
  int rank = 0;
  int by = 0;
  std::string reason = {};
  bool left = false;  ///< it said goodbye
};
Bytes write_gone(const Gone& gone);
Result<Gone> read_gone(const Bytes& body);

/// Why a rank cannot take part. Sent in place of a join.
struct Excused {
  int rank = 0;
  int ranks = 1;
  Error why = {};  ///< for all ranks; errno, channel and step are not sent
};
/// Of a rank, in the words that all ranks get.
Excused excused(const Bootstrap::Who& who, const Error& why);
Bytes write_excuse(const Excused& excuse);
Result<Excused> read_excuse(const Bytes& body);

/// The root's error; errno is sent as words, channel and step are not. Reading a malformed one gives an error as well.
Bytes write_failure(const Error& error);
Error read_failure(const Bytes& body);

}  // namespace tutti::bootstrap
