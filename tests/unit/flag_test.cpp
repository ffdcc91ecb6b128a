// Flags count, doorbells wake whoever sleeps, and with fences no wake-up is ever lost.
#include "transport/flag.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "support/doorbell_sleep.h"

namespace tutti {
namespace {

/// Time and sleep as the test wants them; no sockets.
class FakeSystem : public System {
 public:
  std::int64_t now_ns() override { return real_system().now_ns(); }
  void yield() override { real_system().yield(); }
  void poll(std::span<PollItem>, std::int64_t) override {}
  Result<Socket> listen(const SocketAddress&) override { return none(); }
  Result<SocketAddress> address(const Socket&) override { return none(); }
  Result<SocketAddress> peer_address(const Socket&) override { return none(); }
  Result<Socket> accept(Socket&) override { return none(); }
  Result<Socket> connect(const SocketAddress&) override { return none(); }
  Result<Moved> send(Socket&, std::span<const std::byte>) override { return none(); }
  Result<Moved> receive(Socket&, std::span<std::byte>) override { return none(); }
  void close(int) override {}

 private:
  static Error none() { return Error{.code = Code::internal, .what = "no sockets here"}; }
};

class Counting final : public FakeSystem {
 public:
  void wait(std::atomic<std::uint32_t>&, std::uint32_t, std::int64_t) override {}
  void wake(std::atomic<std::uint32_t>&) override { ++wakes; }

  int wakes = 0;
};

/// Sleeps far longer than it was told: only a wake-up ends it in time.
class Patient final : public FakeSystem {
 public:
  void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t) override {
    constexpr std::int64_t limit_ns = 60'000'000'000;
    const std::int64_t begin = now_ns();
    real_system().wait(word, expected, limit_ns);
    if (now_ns() - begin >= limit_ns) ++lost;
  }
  void wake(std::atomic<std::uint32_t>& word) override { real_system().wake(word); }

  std::atomic<int> lost = 0;
};

TEST(Signal, TakesEachRaiseOnce) {
  Flag flag{};
  Signal sender(flag, flag);
  Signal receiver(flag, flag);
  EXPECT_FALSE(receiver.take());
  sender.raise();
  sender.raise();
  EXPECT_TRUE(receiver.take());
  EXPECT_TRUE(receiver.take());
  EXPECT_FALSE(receiver.take());
}

TEST(Signal, OrdersWhatWasWrittenBefore) {
  Flag there{};
  Flag back{};
  std::uint64_t data = 0;  // not atomic: the signals alone keep the threads apart
  constexpr std::uint64_t rounds = 2000;
  std::thread other([&] {
    Signal signal(back, there);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      while (!signal.take()) std::this_thread::yield();
      EXPECT_EQ(data, round);
      data = 0;
      signal.raise();
    }
  });
  Signal signal(there, back);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    EXPECT_EQ(data, 0u);
    data = round;
    signal.raise();
    while (!signal.take()) std::this_thread::yield();
  }
  other.join();
}

TEST(Doorbell, RingsOnlyForASleeper) {
  for (const bool oversubscribed : {false, true}) {
    Counting system;
    Doorbell bell{};
    bell.ring(system, oversubscribed);
    EXPECT_EQ(system.wakes, 0);
    bell.asleep.store(1);
    bell.ring(system, oversubscribed);
    bell.ring(system, oversubscribed);
    EXPECT_EQ(system.wakes, 1);
  }
}

TEST(Doorbell, NeverLosesAFencedRing) {
  Patient system;
  Flag flags[2] = {};
  Doorbell bells[2] = {};
  constexpr std::uint64_t rounds = 3000;
  const auto play = [&](int me) {
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      flags[1 - me].store(round);
      bells[1 - me].ring(system, /*oversubscribed=*/true);
      const auto ready = [&] { return flags[me].load() >= round; };
      while (!ready()) testing::doorbell_sleep(system, bells[me], ready);
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  EXPECT_EQ(system.lost.load(), 0);
}

}  // namespace
}  // namespace tutti
