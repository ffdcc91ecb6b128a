// A process ends when what its communicators have sent has arrived, or nothing says so any more.
#include "comm/farewells.h"

#include <gtest/gtest.h>

#include "support/sim_system.h"

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;

class Nothing final : public Task {
 public:
  bool advance() override { return true; }
  std::int64_t interests(std::vector<PollItem>&) override { return 0; }
};

/// Drops a task at some time, as the service thread does.
class DroppingSystem final : public System {
 public:
  DroppingSystem(std::shared_ptr<Task> task, std::int64_t after_ns)
      : task_(std::move(task)), at_ns_(sim_.now_ns() + after_ns) {}

  std::int64_t now_ns() override { return sim_.now_ns(); }
  void poll(std::span<PollItem> items, std::int64_t timeout_ns) override {
    sim_.poll(items, timeout_ns);
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
  std::shared_ptr<Task> task_;
  std::int64_t at_ns_;
};

/// How long a process waits that has said farewell once, and is answered after `after_ns`.
std::int64_t waited_ns(std::int64_t after_ns) {
  auto task = std::make_shared<Nothing>();
  Farewells farewells;
  farewells.add(task);
  DroppingSystem system(std::move(task), after_ns);
  const std::int64_t began = system.now_ns();
  farewells.wait(system);
  return system.now_ns() - began;
}

TEST(Farewells, AreWaitedForAndNoLonger) {
  const std::int64_t waited = waited_ns(70 * ms);
  EXPECT_GE(waited, 69 * ms);
  EXPECT_LE(waited, 75 * ms);
}

TEST(Farewells, ThatNobodyEndsAreGivenUp) {
  const std::int64_t waited = waited_ns(1'000'000 * ms);
  EXPECT_GE(waited, 3'000 * ms);
  EXPECT_LE(waited, 3'010 * ms);
}

TEST(Farewells, ThatAreOverTakeNoTime) {
  Farewells farewells;
  farewells.add(std::make_shared<Nothing>());
  SimSystem system{SimOptions{}};
  const std::int64_t began = system.now_ns();
  farewells.wait(system);
  EXPECT_LT(system.now_ns() - began, ms);
}

}  // namespace
}  // namespace tutti
