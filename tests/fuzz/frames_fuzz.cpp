// Any bytes as an id, as the three frames of the handshake, and as each message of the start. The first byte says as
// which.
#include <cstdio>
#include <cstdlib>

#include "bootstrap/bootstrap_messages.h"
#include "fuzz/entry.h"
#include "net/handshake.h"
#include "net/unique_id.h"

namespace {

using namespace tutti;

constexpr std::size_t blob_max = 64;
constexpr int ranks = 3;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

Secret secret() {
  Secret made;
  made.fill(std::byte{7});
  return made;
}

/// What is read is written alike, so nothing of it was made up.
void read_messages(const Bytes& bytes) {
  using namespace bootstrap;
  if (const auto who = read_join(bytes))
    expect(read_join(write_join(*who)).operator bool(), "a join is not read again");
  if (const auto part = read_contribution(bytes, blob_max))
    expect(part->blob.size() <= blob_max, "a contribution that is too long");
  if (const auto all = read_gathered(bytes, 1, ranks, blob_max))
    expect(all->size() == ranks && write_gathered(1, *all) == bytes, "another answer than was sent");
  if (const auto place = read_welcome(bytes)) expect(place->parent >= -1, "a parent that is nobody");
  if (const auto where = read_listens(bytes)) expect(write_listens(*where) == bytes, "another address than was sent");
  if (const auto all = read_confirmation(bytes)) expect(write_confirmation(*all) == bytes, "another confirmation");
  if (const auto gone = read_gone(bytes)) expect(gone->rank >= 0 && gone->by >= 0, "gone who never was");
  if (const auto excuse = read_excuse(bytes))
    expect(excuse->ranks > 0 && excuse->why.code != Code::success, "an excuse for nothing");
  const Error failure = read_failure(bytes);
  expect(failure.code != Code::success && failure.what.size() <= text_bytes_max, "a failure that is none");
}

/// Nobody gets through who has not the secret, and a conversation ends with what it was asked.
void shake_hands(const Bytes& bytes) {
  handshake::RootSide root;
  const auto challenge = root.challenge(secret(), bytes);
  expect(challenge.operator bool() == root.challenged(), "a challenge to no greeting");
  expect(!challenge || challenge->size() == handshake::challenge_bytes, "a challenge of another length");
  handshake::RootSide asked;
  const auto rank = handshake::RankSide::begin(1, secret());
  if (!rank || !asked.challenge(secret(), rank->hello())) return;
  expect(!asked.verify(secret(), bytes), "a proof without the secret");
  expect(!rank->prove(secret(), bytes), "a challenge without the secret");
}

/// The checksum an id must have, so that changes get past it.
std::uint32_t crc32(const Bytes& bytes) {
  std::uint32_t crc = ~0u;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb8'8320u : 0u);
  }
  return ~crc;
}

void decode_id(Bytes bytes, bool mend) {
  bytes.resize(mend ? 124 : 128);
  if (mend) {
    ByteWriter sum;
    sum.number(crc32(bytes));
    bytes.insert(bytes.end(), sum.bytes().begin(), sum.bytes().end());
  }
  const auto id = UniqueId::decode(reinterpret_cast<const char*>(bytes.data()));
  if (!id) return expect(id.error().code == Code::invalid_argument, "an id refused with another code");
  const auto again = UniqueId::decode(id->encode().data());
  expect(again && again->root == id->root && again->secret == id->secret, "an id that is not read again");
}

std::string text(char kind, const Bytes& bytes) {
  std::string made(1, kind);
  for (const std::byte byte : bytes) made += static_cast<char>(byte);
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto* first = reinterpret_cast<const std::byte*>(data);
  const Bytes bytes(first + 1, first + size);
  switch (data[0] % 4) {
    case 0: read_messages(bytes); break;
    case 1: shake_hands(bytes); break;
    case 2: decode_id(bytes, /*mend=*/true); break;
    default: decode_id(bytes, /*mend=*/false); break;
  }
  return 0;
}

std::vector<std::string> fuzz_examples() {
  using namespace bootstrap;
  const Bootstrap::Who who{.rank = 1,
                           .ranks = ranks,
                           .settings = 5,
                           .settings_text = "TUTTI_ALGO=ring",
                           .version = 100,
                           .process = "pid 12 on node-b"};
  const Blob blob(9, std::byte{3});
  std::vector<std::string> examples;
  for (const Bytes& message : {write_join(who), write_contribution(2, 1, blob), write_gathered(1, {blob, {}, blob}),
                               write_welcome({.listen = true, .parent = 2, .at = {"10.0.0.1", 5}, .process = "pid 1"}),
                               write_listens({"::1", 7}), write_confirmation({1, 5}), write_gone({1, 2, "it left"}),
                               write_excuse({.rank = 1, .ranks = 3, .why = {.code = Code::system, .what = "why"}}),
                               write_failure({.code = Code::timeout, .what = "why", .peer = 2})})
    examples.push_back(text('\0', message));
  const auto rank = handshake::RankSide::begin(1, secret());
  handshake::RootSide root;
  const auto challenge = root.challenge(secret(), rank->hello());
  for (const Bytes& frame : {rank->hello(), *challenge, *rank->prove(secret(), *challenge)})
    examples.push_back(text('\1', frame));
  for (const char* host : {"127.0.0.1", "fe80::1%eth0"}) {
    const auto id = UniqueId{.root = {.host = host, .port = 4000}, .secret = secret()}.encode();
    examples.push_back('\2' + std::string(id.begin(), id.end()));
    examples.push_back('\3' + std::string(id.begin(), id.end()));
  }
  return examples;
}
