// Any bytes in the agreement of two ranks on RDMA: from a stranger, and from somebody who knows the secret of the
// connection. The first byte says as which.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "comm/transports/rdma/upgrade.h"
#include "fuzz/entry.h"
#include "support/connected.h"
#include "support/sim_system.h"

namespace {

using namespace tutti;

constexpr std::int64_t ms = 1'000'000;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

Secret secret() {
  Secret known;
  known.fill(std::byte{9});
  return known;
}

/// The body with a right code, as the end with `role` would write it.
Bytes signed_frame(std::span<const std::byte> body, std::string_view role) {
  Bytes frame(RdmaFrame::bytes - sizeof(Digest));
  std::ranges::copy(body.first(std::min(body.size(), frame.size())), frame.begin());
  ByteWriter covered;
  covered.text(role);
  covered.raw(frame);
  const Secret known = secret();
  const auto code = hmac_sha256(known, covered.bytes());
  frame.insert(frame.end(), code->begin(), code->end());
  return frame;
}

/// An end that has no device hears the bytes, and must come to an end with its connection.
void talk(std::span<const std::byte> said, bool connects) {
  SimSystem system({.seed = said.size()});
  auto ends = tutti::testing::connected(system, "10.0.0.2", 1);
  Socket& other = connects ? ends.callees.front() : ends.callers.front();
  Socket& own = connects ? ends.callers.front() : ends.callees.front();
  const auto make = []() -> Result<std::shared_ptr<verbs::Link>> {
    return Error{.code = Code::system, .what = "no device"};
  };
  RdmaUpgrade upgrade(system, std::move(own), connects, secret(), make, 100 * ms);
  bool decided = false;
  for (int turn = 0; turn < 200 && !decided; ++turn) {
    if (!said.empty())
      if (auto sent = system.send(other, said)) said = said.subspan(sent->bytes);
    decided = upgrade.advance();
    std::vector<PollItem> items;
    (void)upgrade.poll_set(items);
    system.poll(items, ms);
  }
  expect(decided, "the agreement has no end");
  auto outcome = upgrade.take();
  expect(outcome.sender == nullptr && outcome.receiver == nullptr, "agreed without a device");
  expect(!outcome.why.empty(), "no reason");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const unsigned kind = data[0];
  const std::span bytes(reinterpret_cast<const std::byte*>(data + 1), size - 1);
  const bool connects = (kind & 1) != 0;
  const std::string_view role = connects ? "listens" : "connects";
  const Bytes frame = (kind & 2) != 0 ? signed_frame(bytes, role) : Bytes(bytes.begin(), bytes.end());
  // Of another connection the same bytes are worth nothing.
  Secret other = secret();
  other[0] ^= std::byte{1};
  expect(!RdmaFrame::read(frame, other, role), "a code that nobody can make");
  talk(frame, connects);
  return 0;
}

std::vector<std::string> fuzz_examples() {
  RdmaFrame offer;
  offer.at = {.shape = {.slots = 4, .slot_bytes = 128 * 1024, .queue_pairs = 2},
              .port = {.link_layer = verbs::LinkLayer::ethernet, .mtu = 5},
              .ring = 0x7f00'0000'0000,
              .rkey = 77};
  const RdmaFrame verdict{.kind = RdmaFrame::Kind::verdict, .refusal = "an empty write was not answered"};
  std::vector<std::string> examples;
  for (const RdmaFrame& frame : {offer, verdict})
    for (const char kind : {0, 1, 2, 3}) {
      const Bytes bytes = *frame.write(secret(), (kind & 1) != 0 ? "listens" : "connects");
      examples.push_back(kind + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
  return examples;
}
