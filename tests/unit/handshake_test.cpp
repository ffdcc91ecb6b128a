// Only two ends with one secret get through, and no old or foreign frame helps.
#include "net/handshake.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

namespace tutti::handshake {
namespace {

Secret secret(int seed) {
  Secret made;
  made.fill(static_cast<std::byte>(seed));
  return made;
}

/// One conversation up to the proof.
struct Talk {
  explicit Talk(int rank = 3) : rank_side(*RankSide::begin(rank, secret(1))) {
    challenge = *root_side.challenge(secret(1), rank_side.hello());
    proof = *rank_side.prove(secret(1), challenge);
  }
  RankSide rank_side;
  RootSide root_side;
  Bytes challenge;
  Bytes proof;
};

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::byte byte : digest)
    for (const int half : {std::to_integer<int>(byte) >> 4, std::to_integer<int>(byte) & 15})
      text += "0123456789abcdef"[half];
  return text;
}

/// RFC 4231, test case 2; FIPS 180-2, "abc".
TEST(Digest, KnowsTheStandardsExamples) {
  const std::string_view key = "Jefe", text = "what do ya want for nothing?", abc = "abc";
  EXPECT_EQ(hex(*hmac_sha256(std::as_bytes(std::span(key)), std::as_bytes(std::span(text)))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(*sha256(std::as_bytes(std::span(abc)))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Digest, EqualMeansEqual) {
  Bytes a(32, std::byte{5});
  Bytes b = a;
  EXPECT_TRUE(equal_in_constant_time(a, b));
  b[31] ^= std::byte{1};
  EXPECT_FALSE(equal_in_constant_time(a, b));
  EXPECT_FALSE(equal_in_constant_time(a, std::span(a).first(31)));
}

TEST(Handshake, OneSecretGetsThrough) {
  Talk talk(3);
  EXPECT_TRUE(talk.root_side.verify(secret(1), talk.proof));
  EXPECT_EQ(talk.root_side.rank(), 3);
  EXPECT_EQ(talk.root_side.version(), protocol_version);
  EXPECT_EQ(talk.rank_side.hello().size(), hello_bytes);
  EXPECT_EQ(talk.challenge.size(), challenge_bytes);
  EXPECT_EQ(talk.proof.size(), proof_bytes);
  EXPECT_LE(std::max({hello_bytes, challenge_bytes, proof_bytes}), 128u);
}

TEST(Handshake, AnotherSecretIsSeenByBothEnds) {
  Talk talk;
  const auto refused = talk.rank_side.prove(secret(2), talk.challenge);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::invalid_usage);
  RootSide other;
  const Bytes challenge = *other.challenge(secret(2), talk.rank_side.hello());
  EXPECT_FALSE(talk.rank_side.prove(secret(1), challenge));
  EXPECT_FALSE(other.verify(secret(2), talk.proof));
}

TEST(Handshake, EveryChangedBitIsSeen) {
  Talk talk;
  const auto flipped = [](Bytes bytes, std::size_t bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    return bytes;
  };
  for (std::size_t bit = 0; bit < 8 * challenge_bytes; ++bit)
    EXPECT_FALSE(talk.rank_side.prove(secret(1), flipped(talk.challenge, bit))) << bit;
  for (std::size_t bit = 0; bit < 8 * proof_bytes; ++bit)
    EXPECT_FALSE(talk.root_side.verify(secret(1), flipped(talk.proof, bit))) << bit;
  // A changed hello gives another transcript: the rank refuses the challenge that it leads to.
  for (std::size_t bit = 0; bit < 8 * hello_bytes; ++bit) {
    RootSide root;
    const auto challenge = root.challenge(secret(1), flipped(talk.rank_side.hello(), bit));
    EXPECT_FALSE(challenge && talk.rank_side.prove(secret(1), *challenge)) << bit;
  }
}

TEST(Handshake, AnOldProofIsOfNoUse) {
  Talk before;
  RootSide root;
  ASSERT_TRUE(root.challenge(secret(1), before.rank_side.hello()));
  EXPECT_FALSE(root.verify(secret(1), before.proof)) << "the root's nonce is new";
}

/// An attacker without the secret sends each end's words back to it.
TEST(Handshake, NoEndAnswersItself) {
  Talk talk;
  EXPECT_FALSE(talk.rank_side.prove(secret(1), talk.rank_side.hello()));
  Bytes reflected = talk.proof;
  std::copy_n(talk.challenge.end() - 32, 32, reflected.end() - 32);
  EXPECT_FALSE(talk.root_side.verify(secret(1), reflected)) << "the root's own code";
  Bytes as_challenge = talk.challenge;
  std::copy_n(talk.proof.end() - 32, 32, as_challenge.end() - 32);
  EXPECT_FALSE(talk.rank_side.prove(secret(1), as_challenge)) << "the rank's own code";
}

TEST(Handshake, FramesOfAnotherLengthAreNone) {
  Talk talk;
  for (std::size_t length = 0; length < 128; ++length) {
    const Bytes bytes(length, std::byte{0x61});
    RootSide root;
    EXPECT_FALSE(root.challenge(secret(1), bytes));
    EXPECT_FALSE(root.challenged());
    EXPECT_FALSE(talk.root_side.verify(secret(1), bytes));
    EXPECT_FALSE(talk.rank_side.prove(secret(1), bytes));
  }
}

TEST(Handshake, AProofBeforeAChallengeIsNone) {
  EXPECT_FALSE(RootSide().verify(secret(1), Talk().proof));
}

}  // namespace
}  // namespace tutti::handshake
