// How two ends of a fresh connection prove to each other that they know the secret, without showing it.
//
//   rank → root   hello      magic, version, rank, tag, nonce
//   root → rank   challenge  magic, version, nonce, HMAC("root", hello, challenge so far)
//   rank → root   proof      magic, HMAC("rank", hello, challenge)
//
// Both nonces are in both codes, so an old conversation is of no use; the roles are in them, so a code cannot be sent
// back to its maker. The tag says which secret is meant, where one socket is listened at for several. These three
// frames keep their layout in all versions of tutti, so that different versions can say so.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "net/digest.h"
#include "net/unique_id.h"

namespace tutti::handshake {

inline constexpr std::uint32_t protocol_version = 3;  ///< of what follows the handshake
inline constexpr std::size_t hello_bytes = 48;
inline constexpr std::size_t challenge_bytes = 80;
inline constexpr std::size_t proof_bytes = 40;

/// What of a secret anybody may know.
using Tag = std::array<std::byte, 8>;
/// Errors: system.
Result<Tag> tag_of(const Secret& secret);
/// Of a hello, whatever its version; of one that is too short, nobody's.
Tag tag_in(std::span<const std::byte> hello);

/// Whether a hello can begin with these bytes, be they few or none.
bool may_be_hello(std::span<const std::byte> begun);

/// The connecting end.
class RankSide {
 public:
  /// Errors: system (no random bytes).
  static Result<RankSide> begin(int rank, const Secret& secret);

  const Bytes& hello() const { return hello_; }
  /// The answer to a challenge that is right. Errors: invalid_usage (the other end has another secret), remote (the
  /// other end is not tutti).
  Result<Bytes> prove(const Secret& secret, std::span<const std::byte> challenge) const;
  /// Instead of a proof, to an end with another secret: so that it can tell this from a rank that died meanwhile.
  static Bytes refusal();

 private:
  Bytes hello_;
};

/// The listening end.
class RootSide {
 public:
  /// Errors: remote (not a hello), system.
  Result<Bytes> challenge(const Secret& secret, std::span<const std::byte> hello);
  /// Errors: remote (not a proof, or one made with another secret).
  Result<void> verify(const Secret& secret, std::span<const std::byte> proof) const;

  bool challenged() const { return !challenge_.empty(); }
  /// What the hello said; to be believed after `verify`.
  int rank() const { return rank_; }
  std::uint32_t version() const { return version_; }

 private:
  Bytes hello_;
  Bytes challenge_;
  int rank_ = -1;
  std::uint32_t version_ = 0;
};

}  // namespace tutti::handshake
