#include "net/handshake.h"

#include <algorithm>
#include <string_view>

#include "base/random.h"

namespace tutti::handshake {
namespace {

constexpr std::uint64_t hello_magic = 0x6f6c'6c65'6869'7474;      // "ttihello"
constexpr std::uint64_t challenge_magic = 0x676e'6c68'6369'7474;  // "ttichlng"
constexpr std::uint64_t proof_magic = 0x666f'6f72'7069'7474;      // "ttiproof"

using Nonce = std::array<std::byte, 32>;
using ShortNonce = std::array<std::byte, 24>;
constexpr std::size_t tag_offset = 16;

}  // namespace

bool may_be_hello(std::span<const std::byte> begun) {
  const Bytes magic = serialized(hello_magic);
  const std::size_t bytes = std::min(begun.size(), magic.size());
  return std::ranges::equal(begun.first(bytes), std::span(magic).first(bytes));
}

Result<Tag> tag_of(const Secret& secret) {
  constexpr std::string_view role = "tag";
  const auto whole = TUTTI_TRY(hmac_sha256(secret, std::as_bytes(std::span(role))));
  Tag tag;
  std::copy_n(whole.begin(), tag.size(), tag.begin());
  return tag;
}

Tag tag_in(std::span<const std::byte> hello) {
  Tag tag{};
  if (hello.size() == hello_bytes) std::copy_n(hello.begin() + tag_offset, tag.size(), tag.begin());
  return tag;
}

Result<RankSide> RankSide::begin(int rank, const Secret& secret) {
  const auto tag = TUTTI_TRY(tag_of(secret));
  ShortNonce nonce;
  TUTTI_TRY(fill_random(nonce));
  RankSide side;
  side.hello_ = serialized(hello_magic, protocol_version, rank, tag, nonce);
  return side;
}

Result<Bytes> RankSide::prove(const Secret& secret, std::span<const std::byte> challenge) const {
  ByteReader reader(challenge);
  const auto magic = reader.number<std::uint64_t>();
  if (challenge.size() != challenge_bytes || magic != challenge_magic)
    return remote_error("the process at this address is not tutti");
  const auto signed_part = challenge.first(challenge_bytes - sizeof(Digest));
  const auto expected = TUTTI_TRY(hmac_of(secret, "root", hello_, signed_part));
  if (!equal_in_constant_time(expected, challenge.last(sizeof(Digest))))
    return invalid_usage("the process at this address has another unique id or secret");
  return serialized(proof_magic, TUTTI_TRY(hmac_of(secret, "rank", hello_, challenge)));
}

Bytes RankSide::refusal() {
  return serialized(proof_magic, Digest{});
}

Result<Bytes> RootSide::challenge(const Secret& secret, std::span<const std::byte> hello) {
  ByteReader reader(hello);
  const auto magic = reader.number<std::uint64_t>();
  reader.numbers(version_, rank_);
  if (hello.size() != hello_bytes || magic != hello_magic) return remote_error("not a greeting");
  hello_.assign(hello.begin(), hello.end());

  Nonce nonce;
  TUTTI_TRY(fill_random(nonce));
  const Bytes so_far = serialized(challenge_magic, protocol_version, std::uint32_t{0}, nonce);
  challenge_ = serialized(so_far, TUTTI_TRY(hmac_of(secret, "root", hello_, so_far)));
  return challenge_;
}

Result<void> RootSide::verify(const Secret& secret, std::span<const std::byte> proof) const {
  ByteReader reader(proof);
  const auto magic = reader.number<std::uint64_t>();
  const auto theirs = reader.raw(sizeof(Digest));
  if (!challenged() || !reader.done() || magic != proof_magic) return remote_error("not a proof");
  const auto expected = TUTTI_TRY(hmac_of(secret, "rank", hello_, challenge_));
  if (!equal_in_constant_time(expected, theirs)) return remote_error("a proof with a different secret");
  return {};
}

}  // namespace tutti::handshake
