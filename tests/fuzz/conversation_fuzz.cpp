// Any bytes from an end that knows the secret: to the root, and to a rank. The first byte says to whom; a network made
// from the second cuts the rest in pieces.
#include <array>
#include <cstdio>
#include <cstdlib>

#include "bootstrap/bootstrap_messages.h"
#include "fuzz/entry.h"
#include "net/handshake.h"
#include "net/wire.h"
#include "support/sim_system.h"

namespace {

using namespace tutti;

constexpr std::int64_t s = 1'000'000'000;
constexpr int turns = 60;  // more than any conversation of such a length takes
const SocketAddress at{.host = "10.0.0.1", .port = 4000};

Secret secret() {
  Secret made;
  made.fill(std::byte{7});
  return made;
}

BootstrapLimits limits() {
  return {.handshake_ms = 1'000, .init_ms = 5'000, .missing_report_ms = 1'000, .blob_bytes_max = 256};
}

Bootstrap::Who who(int rank) {
  return {.rank = rank, .ranks = 2, .settings_text = "", .version = 100, .process = "pid " + std::to_string(rank)};
}

/// Lets time pass until one of them has something to do, at most a second.
void rest(SimSystem& system, std::vector<PollItem>& items, std::int64_t until) {
  system.poll(items, std::clamp(until - system.now_ns(), std::int64_t{0}, s));
}

/// Says hello, proves what it knows, and goes on with `bytes`.
void talk_to_root(SimSystem& system, const Bytes& bytes) {
  auto root = BootstrapRoot::open(system, at, secret(), limits(), {.warn = [](const std::string& line) {
                                    if (line.empty()) std::abort();
                                  }});
  const auto side = handshake::RankSide::begin(0, secret());
  if (!root || !side) std::abort();
  Wire wire(system, *system.connect(at));
  wire.queue(side->hello());
  bool proved = false;
  for (int turn = 0; turn < turns; ++turn) {
    if (!(*root)->advance()) return;
    (void)wire.flush();
    const auto challenge = proved ? Result<std::optional<Bytes>>(std::nullopt) : wire.take(handshake::challenge_bytes);
    if (challenge && *challenge) {
      wire.queue(*side->prove(secret(), **challenge));
      wire.queue(bytes);
      proved = true;
    }
    if (turn == turns / 2) wire = Wire(system, Socket());
    std::vector<PollItem> items;
    if (wire.socket()) items.push_back(wire.interest());
    rest(system, items, (*root)->poll_set(items));
  }
}

/// Plays the root: challenges, and answers with `bytes` whatever it is told.
void talk_to_rank(SimSystem& system, const Bytes& bytes) {
  Socket listener = *system.listen(at);
  Bootstrap rank(system, {.root = at, .secret = secret()}, who(0), limits());
  rank.exchange(Blob(5, std::byte{1}));
  Wire wire(system, Socket());
  handshake::RootSide side;
  for (int turn = 0; turn < turns; ++turn) {
    const auto done = rank.advance();
    if (!done && done.error().what.empty()) std::abort();
    if (done && *done && rank.gathered().size() != 2) std::abort();
    if (!done || *done) return;
    if (!wire.socket())
      if (auto caller = system.accept(listener); caller && *caller) wire = Wire(system, *std::move(caller));
    std::vector<PollItem> items{{.handle = listener.handle(), .want_read = !wire.socket()}};
    if (wire.socket()) {
      (void)wire.flush();
      const auto hello =
          side.challenged() ? Result<std::optional<Bytes>>(std::nullopt) : wire.take(handshake::hello_bytes);
      if (hello && *hello) {
        wire.queue(*side.challenge(secret(), **hello));
        wire.queue(bytes);
      }
      items.push_back(wire.interest());
      items.back().want_read = !side.challenged();
    }
    rest(system, items, rank.poll_set(items));
  }
}

void append(std::string& text, FrameKind kind, const Bytes& body) {
  const auto bytes = frame(kind, body);
  for (const std::byte byte : *bytes) text += static_cast<char>(byte);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto* first = reinterpret_cast<const std::byte*>(data);
  const Bytes bytes(first + 2, first + size);
  SimSystem system({.seed = data[1], .delay_ns_max = 1'000'000});
  if (data[0] % 2 == 0)
    talk_to_root(system, bytes);
  else
    talk_to_rank(system, bytes);
  return 0;
}

std::vector<std::string> fuzz_examples() {
  using namespace bootstrap;
  const Blob blob(5, std::byte{1});
  std::string to_root{'\0', '\1'};
  append(to_root, FrameKind::join, write_join(who(0)));
  append(to_root, FrameKind::contribute, write_contribution(0, 0, blob));
  append(to_root, FrameKind::bye, {});
  std::string alone{'\0', '\1'};
  Bootstrap::Who only = who(0);
  only.ranks = 1;
  append(alone, FrameKind::join, write_join(only));
  append(alone, FrameKind::contribute, write_contribution(0, 0, blob));
  std::string to_rank{'\1', '\1'};
  append(to_rank, FrameKind::welcome, write_welcome({.listen = true}));
  append(to_rank, FrameKind::gathered, write_gathered(0, {blob, blob}));
  std::string refusal{'\1', '\1'};
  append(refusal, FrameKind::failure, write_failure({.code = Code::invalid_usage, .what = "why", .peer = 1}));
  return {to_root, alone, to_rank, refusal};
}
