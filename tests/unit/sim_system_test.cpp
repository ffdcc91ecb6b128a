// The simulated network keeps what base/system.h promises, and replays.
#include "support/sim_system.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "support/seeds.h"

namespace tutti {
namespace {

constexpr std::int64_t s = 1'000'000'000;
const SocketAddress place{.host = "10.0.0.1", .port = 9};

Bytes text_of(std::size_t bytes) {
  Bytes made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(i * 13);
  return made;
}

/// Sends all of `out` from one end while the other reads; returns what arrived.
Bytes carry(SimSystem& system, Socket& from, Socket& to, const Bytes& out) {
  Bytes got;
  std::size_t sent = 0;
  while (got.size() < out.size()) {
    if (sent < out.size()) sent += system.send(from, std::span(out).subspan(sent))->bytes;
    std::array<std::byte, 500> part;
    const auto moved = system.receive(to, part);
    got.insert(got.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(moved->bytes));
    std::array items{PollItem{.handle = from.handle(), .want_write = sent < out.size()},
                     PollItem{.handle = to.handle(), .want_read = true}};
    system.poll(items, s);
  }
  return got;
}

struct Pair {
  explicit Pair(SimSystem& system) : listener(*system.listen(place)), caller(*system.connect(place)) {
    PollItem item{.handle = listener.handle(), .want_read = true};
    system.poll({&item, 1}, s);
    EXPECT_TRUE(item.ready);
    callee = *system.accept(listener);
    EXPECT_TRUE(callee);
  }
  Socket listener, caller, callee;
};

TEST(SimSystem, CarriesAllBytesInOrder) {
  for (const std::uint64_t seed : seeds(20)) {
    SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(seed));
    SimSystem system({.seed = seed, .buffer_bytes = 1'000});
    {
      Pair pair(system);
      const Bytes out = text_of(5'000);
      EXPECT_EQ(carry(system, pair.caller, pair.callee, out), out);
      EXPECT_EQ(carry(system, pair.callee, pair.caller, out), out);
    }
    EXPECT_EQ(system.open_sockets(), 0u);
  }
}

TEST(SimSystem, TheSameSeedTakesTheSameTime) {
  const auto run = [](std::uint64_t seed) {
    SimSystem system({.seed = seed});
    Pair pair(system);
    carry(system, pair.caller, pair.callee, text_of(10'000));
    return system.now_ns();
  };
  EXPECT_EQ(run(4), run(4));
  EXPECT_NE(run(4), run(5));
}

TEST(SimSystem, ACloseArrivesAfterTheLastByte) {
  for (const std::uint64_t seed : seeds(20)) {
    SimSystem system({.seed = seed});
    Pair pair(system);
    const Bytes out = text_of(3);
    for (std::size_t sent = 0; sent < 3;) sent += system.send(pair.caller, std::span(out).subspan(sent))->bytes;
    pair.caller = Socket();
    std::size_t got = 0;
    while (true) {
      PollItem item{.handle = pair.callee.handle(), .want_read = true};
      system.poll({&item, 1}, s);
      ASSERT_TRUE(item.ready);
      std::array<std::byte, 8> in;
      const auto moved = system.receive(pair.callee, in);
      ASSERT_TRUE(moved);
      if (moved->closed) break;
      got += moved->bytes;
    }
    EXPECT_EQ(got, 3u);
  }
}

TEST(SimSystem, ConnectsToNobodyAreRefused) {
  SimSystem system({});
  Socket socket = *system.connect(place);
  const Bytes word = text_of(1);
  EXPECT_EQ(system.send(socket, word)->bytes, 0u) << "on its way";
  PollItem item{.handle = socket.handle(), .want_write = true};
  system.poll({&item, 1}, s);
  EXPECT_TRUE(item.ready);
  EXPECT_EQ(system.send(socket, word).error().sys_errno, ECONNREFUSED);
}

TEST(SimSystem, AResetIsFeltAtBothEnds) {
  SimSystem system({});
  Pair pair(system);
  system.reset(pair.caller.handle());
  std::array<std::byte, 4> in;
  EXPECT_EQ(system.receive(pair.caller, in).error().sys_errno, ECONNRESET);
  EXPECT_EQ(system.send(pair.callee, in).error().sys_errno, ECONNRESET);
}

TEST(SimSystem, WaitingTakesTimeAndEnds) {
  SimSystem system({});
  std::atomic<std::uint32_t> word{0};
  const std::int64_t before = system.now_ns();
  system.wait(word, 0, s);
  EXPECT_GT(system.now_ns(), before);
  EXPECT_LT(system.now_ns(), before + 2 * s);
  system.wait(word, 0, -1);
  system.yield();
  const std::int64_t then = system.now_ns();
  system.poll({}, 5 * s);
  EXPECT_GE(system.now_ns(), then + 5 * s);
}

}  // namespace
}  // namespace tutti
