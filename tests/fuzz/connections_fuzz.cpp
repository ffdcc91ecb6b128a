// Any bytes on connections between ranks of different hosts: from a stranger to the listener of a process, from one who
// knows the secret, and on a control connection that is up. The first byte says as which; a network made from the
// second cuts the rest in pieces.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "comm/control_links.h"
#include "fuzz/entry.h"
#include "init/peer_info.h"
#include "net/connection_server.h"
#include "net/reach_proof.h"
#include "support/sim_system.h"

namespace {

using namespace tutti;

constexpr std::int64_t ms = 1'000'000;
constexpr int turns = 40;  // more than any conversation of such a length takes
constexpr int ranks = 4;
constexpr int rank = 1;
enum Kind : unsigned { stranger, friend_of_ours, control, prober, kinds };

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

ConnectionKey key() {
  Secret secret;
  secret.fill(std::byte{7});
  return *ConnectionKey::of(secret);
}

/// A process that waits for ranks 2 and 3.
struct Listening {
  explicit Listening(std::uint64_t seed)
      : system({.seed = seed}),
        arrivals(std::make_shared<Arrivals>(
            system, key(), Arrivals::Bounds{.rank = rank, .ranks = ranks, .channels = 2, .sockets = 2})),
        server(*ConnectionServer::open(system, {"10.0.0.1"})) {
    server->expect(arrivals);
  }
  void turn() {
    server->advance();
    std::vector<PollItem> items;
    (void)server->poll_set(items);
    system.poll(items, 100 * ms);
  }
  int arrived() const {
    int count = 0;
    for (int from = 0; from < ranks; ++from)
      for (int channel = 0; channel < 2; ++channel)
        for (int index = 0; index < 2; ++index) {
          if (arrivals->take(Purpose::data, from, channel, index)) ++count;
          if (arrivals->take(Purpose::control, from, channel, index)) ++count;
        }
    return count;
  }

  SimSystem system;
  std::shared_ptr<Arrivals> arrivals;
  std::shared_ptr<ConnectionServer> server;
};

void talk(std::uint64_t seed, const Bytes& bytes) {
  Listening host(seed);
  Wire wire(host.system, *host.system.connect(host.server->addresses().front()));
  wire.queue(bytes);
  for (int turn = 0; turn < turns; ++turn) {
    (void)wire.flush();
    host.turn();
  }
  expect(host.arrived() == 0, "a stranger was let in");
}

/// Greets with any words, and proves that it knows the secret: what comes of it is within bounds.
void greet(std::uint64_t seed, Bytes words) {
  Listening host(seed);
  words.resize(Greeting::bytes);
  const auto greeting = read_greeting(words);
  if (greeting) expect(write_greeting(*greeting) == words, "a greeting that is not read again");
  Wire wire(host.system, *host.system.connect(host.server->addresses().front()));
  const auto secret = key().for_greeting(words);
  const auto side = handshake::RankSide::begin(greeting ? greeting->from : 2, *secret);
  expect(side && secret, "no handshake");
  wire.queue(words);
  wire.queue(side->hello());
  for (int turn = 0; turn < turns; ++turn) {
    (void)wire.flush();
    const auto challenge = wire.take(handshake::challenge_bytes);
    if (challenge && *challenge) {
      auto proof = side->prove(*secret, **challenge);
      expect(proof.operator bool(), "a challenge without the secret");
      wire.queue(*std::move(proof));
    }
    host.turn();
  }
  const int most = greeting && greeting->purpose == Purpose::data ? 2 : 1;
  const bool wanted = greeting && host.arrivals->is_for(greeting->communicator, greeting->to) &&
                      greeting->from > rank && greeting->from < ranks && greeting->channel < most &&
                      greeting->index < most;
  expect(host.arrived() == (wanted ? 1 : 0),
         wanted ? "one who knows the secret was not let in" : "let in beyond bounds");
}

/// Whatever a peer says, its state is one that there is, and its words end.
void tell(std::uint64_t seed, const Bytes& bytes) {
  SimSystem system({.seed = seed});
  auto listener = *system.listen({.host = "10.0.0.1", .port = 4711});
  Wire peer(system, *system.connect({.host = "10.0.0.1", .port = 4711}));
  Socket accepted;
  for (int turn = 0; turn < turns && !accepted; ++turn) {
    system.poll({}, 10 * ms);
    accepted = *system.accept(listener);
  }
  const auto mirror = std::make_shared<MirroredHeader>(AreaShape{.ranks = ranks});
  std::vector<ControlLinks::Link> all;
  all.push_back({.rank = 2, .wire = Wire(system, std::move(accepted)), .mirror = mirror, .who = "rank 2/4"});
  ControlLinks links(system, std::move(all), 4'000 * ms);
  peer.queue(bytes);
  for (int turn = 0; turn < turns; ++turn) {
    (void)peer.flush();
    links.advance();
    std::vector<PollItem> items;
    (void)links.poll_set(items);
    system.poll(items, 100 * ms);
  }
  for (const GoneRank& gone : links.take_gone())
    expect(gone.rank >= 0 && gone.rank < limits::ranks_max && gone.words.size() <= Gossip::words_max, "no such rank");
  const AreaHeader& header = mirror->header();
  expect(header.state.load() <= RankState::silent && header.state.load() != RankState::starting, "no such state");
  for (const PeerCalls& calls : links.take_calls())
    expect(calls.rank == 2 && calls.marks.size() <= CallHistory::kept, "calls of nobody");
  expect(::strnlen(header.message.data(), header.message.size()) < header.message.size(), "words without an end");
}

/// Without the secret there is no answer to a probe, and none to one that was changed.
void probe(const Bytes& bytes) {
  const auto read = ReachProbe::read(bytes);
  if (bytes.size() < Greeting::bytes && read) expect(bytes.size() >= 20, "a probe made up");
  expect(!answer_probe(key(), bytes), "an answer to who does not know the secret");
}

std::string text(Kind kind, char seed, const Bytes& bytes) {
  std::string made = {static_cast<char>(kind), seed};
  for (const std::byte byte : bytes) made += static_cast<char>(byte);
  return made;
}

Bytes frame(RankState state, std::uint32_t kind, std::string_view text) {
  ByteWriter writer;
  writer.number(static_cast<std::uint32_t>(state));
  writer.number(kind);
  writer.text(text);
  return std::move(writer).take();
}

/// The text of a rank's end: code, whether it ends all, culprit, completed calls, words.
std::string end_text(std::string_view words) {
  return std::string("\6\0\0\0\0\3\0\0\0\7\0\0\0\0\0\0\0", 17).append(words);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto* first = reinterpret_cast<const std::byte*>(data);
  const Bytes bytes(first + 2, first + std::min<std::size_t>(size, 20'000));
  switch (data[0] % kinds) {
    case stranger: talk(data[1], bytes); break;
    case friend_of_ours: greet(data[1], bytes); break;
    case control: tell(data[1], bytes); break;
    default: probe(bytes); break;
  }
  return 0;
}

std::vector<std::string> fuzz_examples() {
  const std::uint64_t communicator = key().communicator;
  const Bytes data = write_greeting(
      {.communicator = communicator, .from = 3, .to = rank, .purpose = Purpose::data, .channel = 1, .index = 1});
  const Bytes controls =
      write_greeting({.communicator = communicator, .from = 2, .to = rank, .purpose = Purpose::control});
  ByteWriter question;
  question.number(std::uint64_t{0x3165'626f'7270'7474});  // "ttprobe1"
  question.number(communicator);
  question.number(std::int32_t{rank});
  question.raw(Bytes(ReachProbe::bytes - 20));
  ByteWriter life;
  life.raw(frame(RankState::open, 0, ""));
  life.raw(frame(RankState::open, 1, ""));
  life.raw(frame(RankState::open, 2, std::string(3 * 24, '\1')));
  for (const std::uint32_t summary : {3u, 4u, 5u}) life.raw(frame(RankState::open, summary, std::string(32, '\2')));
  Gossip gossip;
  gossip.add({.rank = 3, .words = "rank 3/4 lost"});
  gossip.add({.rank = 0, .left = true});
  const Bytes heard = *gossip.take_message();
  life.raw(frame(RankState::open, 6, {reinterpret_cast<const char*>(heard.data()), heard.size()}));
  life.raw(frame(RankState::open, 7, std::string(4, '\3')));
  life.raw(frame(RankState::failed, 0, end_text("rank 3/4 lost")));
  ByteWriter greeted;
  greeted.raw(data);
  greeted.raw(handshake::RankSide::begin(3, Secret{})->hello());
  greeted.raw(Bytes(handshake::proof_bytes));
  return {text(stranger, 1, greeted.bytes()),
          text(stranger, 2, question.bytes()),
          text(friend_of_ours, 3, data),
          text(friend_of_ours, 4, controls),
          text(control, 5, life.bytes()),
          text(control, 6, frame(RankState::closed, 0, end_text(""))),
          text(control, 7, frame(RankState::aborted, 0, end_text(std::string(2047, 'x')))),
          text(prober, 8, question.bytes())};
}
