// The two ends of a new connection prove to each other that they know the secret, without revealing it.
//
//   rank → root   hello      magic, version, rank, tag, nonce
//   root → rank   challenge  magic, version, nonce, HMAC("root", hello, challenge so far)
//   rank → root   proof      magic, HMAC("rank", hello, challenge)
//
// Both codes cover both nonces, so an old exchange cannot be replayed. The codes name the roles, so a code cannot be
// sent back to its maker. The tag names the secret, for sockets that serve several secrets. These three frames keep
// their layout in all versions of tutti, so that different versions can report the difference.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "net/unique_id.h"

namespace tutti::handshake {

inline constexpr std::uint32_t protocol_version = 4;  ///< of the protocol after the handshake
inline constexpr std::size_t hello_bytes = 48;
inline constexpr std::size_t challenge_bytes = 80;
inline constexpr std::size_t proof_bytes = 40;

/// The public part of a secret.
using Tag = std::array<std::byte, 8>;
/// Errors: system.
Result<Tag> tag_of(const Secret& secret);
/// The tag of a hello of any version; of a hello that is too short, a tag that no secret has.
Tag tag_in(std::span<const std::byte> hello);

/// Whether a hello can begin with these bytes; there may be few or none.
bool may_be_hello(std::span<const std::byte> begun);

/// The connecting end of a handshake.
class RankSide {
 public:
  /// Errors: system (no random bytes).
  static Result<RankSide> begin(int rank, const Secret& secret);

  const Bytes& hello() const { return hello_; }
  /// The proof for a valid challenge. Errors: invalid_usage (the other end has a different secret), remote (the other
  /// end is not tutti).
  Result<Bytes> prove(const Secret& secret, std::span<const std::byte> challenge) const;
  /// Sent instead of a proof to an end with a different secret, so that this end is not taken for a rank that died.
  static Bytes refusal();

 private:
  Bytes hello_;
};

/// The listening end of a handshake.
class RootSide {
 public:
  /// Errors: remote (not a hello), system.
  Result<Bytes> challenge(const Secret& secret, std::span<const std::byte> hello);
  /// Errors: remote (not a proof, or made with a different secret).
  Result<void> verify(const Secret& secret, std::span<const std::byte> proof) const;

  bool challenged() const { return !challenge_.empty(); }
  /// As claimed in the hello; trustworthy after `verify`.
  int rank() const { return rank_; }
  std::uint32_t version() const { return version_; }

 private:
  Bytes hello_;
  Bytes challenge_;
  int rank_ = -1;
  std::uint32_t version_ = 0;
};

}  // namespace tutti::handshake
