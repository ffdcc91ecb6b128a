// A process ends when what its communicators have sent has arrived, or nothing says so any more.
#include "process/pending_closes.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/host.h"
#include "support/sim_system.h"

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;

class Nothing final : public Task {
 public:
  bool advance() override { return true; }
  std::int64_t poll_set(std::vector<PollItem>&) override { return 0; }
};

/// Drops a task at some time, as the service thread does.
class DroppingSystem final : public System {
 public:
  DroppingSystem(std::shared_ptr<Task> task, std::int64_t after_ns)
      : task_(std::move(task)), at_ns_(sim_.now_ns() + after_ns) {}
  explicit DroppingSystem(std::function<void()> turn) : turn_(std::move(turn)), at_ns_(sim_.now_ns()) {}

  std::int64_t now_ns() override { return sim_.now_ns(); }
  void poll(std::span<PollItem> items, std::int64_t timeout_ns) override {
    sim_.poll(items, timeout_ns);
    if (turn_) turn_();
    if (sim_.now_ns() >= at_ns_) task_.reset();
  }
  void wait(std::atomic<std::uint32_t>&, std::uint32_t, std::int64_t) override {}
  void wake(std::atomic<std::uint32_t>&) override {}
  void yield() override {}
  Result<Socket> listen(const SocketAddress&) override { return none(); }
  Result<SocketAddress> address(const Socket&) override { return none(); }
  Result<SocketAddress> peer_address(const Socket&) override { return none(); }
  Result<Socket> accept(Socket&) override { return none(); }
  Result<Socket> connect(const SocketAddress&) override { return none(); }
  Result<Moved> send(Socket&, std::span<const std::byte>) override { return none(); }
  Result<Moved> receive(Socket&, std::span<std::byte>) override { return none(); }
  void close(int) override {}

 private:
  static Error none() { return {.code = Code::system, .what = "no sockets here"}; }
  SimSystem sim_{SimOptions{}};
  std::function<void()> turn_;  ///< of the service thread, while somebody waits
  std::shared_ptr<Task> task_;
  std::int64_t at_ns_;
};

/// How long a process waits that has said close once, and is answered after `after_ns`.
std::int64_t waited_ns(std::int64_t after_ns) {
  auto task = std::make_shared<Nothing>();
  PendingCloses pending_closes;
  pending_closes.add(task);
  DroppingSystem system(std::move(task), after_ns);
  const std::int64_t began = system.now_ns();
  pending_closes.wait(system);
  return system.now_ns() - began;
}

TEST(PendingCloses, AreWaitedForAndNoLonger) {
  const std::int64_t waited = waited_ns(70 * ms);
  EXPECT_GE(waited, 69 * ms);
  EXPECT_LE(waited, 75 * ms);
}

TEST(PendingCloses, ThatNobodyEndsAreGivenUp) {
  const std::int64_t waited = waited_ns(1'000'000 * ms);
  EXPECT_GE(waited, 3'000 * ms);
  EXPECT_LE(waited, 3'010 * ms);
}

TEST(PendingCloses, ThatAreOverTakeNoTime) {
  PendingCloses pending_closes;
  pending_closes.add(std::make_shared<Nothing>());
  SimSystem system{SimOptions{}};
  const std::int64_t began = system.now_ns();
  pending_closes.wait(system);
  EXPECT_LT(system.now_ns() - began, ms);
}

/// The root of a start of two, of which one is of another process.
struct Starting {
  Starting() {
    secret = *fresh_secret();
    root = *BootstrapRoot::open(network, {.host = "10.0.0.1"}, secret, {});
    pending_closes.add_root(root);
  }
  void come() {
    for (const int number : {0, 1}) {
      const std::string process = number == 0 ? this_process() : "pid 1 on node-b";
      rank[number] = std::make_unique<Bootstrap>(network, UniqueId{.root = root->address(), .secret = secret},
                                                 Bootstrap::Who{.rank = number, .ranks = 2, .process = process},
                                                 BootstrapLimits());
      rank[number]->exchange({});
    }
  }
  /// Rank 0 is through and has left; the other one hears nothing until `turn`.
  void let_rank_0_through() {
    for (bool through = false; !through;) {
      turn();
      (void)*rank[1]->advance();
      through = *rank[0]->advance();
    }
    rank[0].reset();
    turn();
  }
  void turn() {
    network.poll({}, 10 * ms);
    if (root && !root->advance()) root.reset();
  }
  SimSystem network{SimOptions{}};
  Secret secret;
  std::shared_ptr<BootstrapRoot> root;
  std::unique_ptr<Bootstrap> rank[2];
  PendingCloses pending_closes;
};

TEST(PendingCloses, AStartThatGoesOnElsewhereIsWaitedFor) {
  Starting start;
  start.come();
  start.let_rank_0_through();
  int turns = 0;
  DroppingSystem system([&] {
    start.turn();
    if (++turns == 50) start.rank[1].reset();
  });
  start.pending_closes.wait(system);
  EXPECT_GE(turns, 50);
  EXPECT_LT(turns, 100);
}

TEST(PendingCloses, AStartThatDoesNotEndIsGivenUp) {
  Starting start;
  start.come();
  start.let_rank_0_through();
  DroppingSystem system([&] { start.turn(); });
  const std::int64_t began = system.now_ns();
  start.pending_closes.wait(system);
  EXPECT_GE(system.now_ns() - began, 10'000 * ms);
  EXPECT_LE(system.now_ns() - began, 10'010 * ms);
}

TEST(PendingCloses, AStartThatCannotComeAboutAndAnIdWithoutUseTakeNoTime) {
  Starting start;
  DroppingSystem system([&] { start.turn(); });
  const std::int64_t began = system.now_ns();
  for (int turn = 0; turn < 10; ++turn) start.turn();
  start.pending_closes.wait(system);
  EXPECT_LT(system.now_ns() - began, ms) << "nobody came";
  start.come();
  for (int turn = 0; turn < 10; ++turn) {
    (void)*start.rank[1]->advance();
    start.turn();
  }
  ASSERT_TRUE(start.root->awaited());
  const PendingCloses::Joining joining(start.pending_closes);
  start.pending_closes.wait(system);
  EXPECT_LT(system.now_ns() - began, ms) << "rank 0 ends in the middle";
}

}  // namespace
}  // namespace tutti
