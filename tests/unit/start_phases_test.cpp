// Which phases a start has, and what all phases have in common.
#include "init/phases/phases.h"

#include <gtest/gtest.h>

#include <string>
#include <typeinfo>
#include <vector>

#include "support/sim_system.h"

namespace tutti::start {
namespace {

Config plain_config() {
  auto config = Config::load({}, [](const std::string&) { return Error{.code = Code::system}; });
  EXPECT_TRUE(config);
  return *std::move(config);
}

/// Of one rank, which gets back what it contributed.
class Echo final : public Exchange {
 public:
  void exchange(Blob mine) override {
    ++exchanges;
    gathered_ = {std::move(mine)};
  }
  Result<bool> advance() override { return complete; }
  Result<void> look() override { return {}; }
  void fail(const Error& error) override { told = error; }
  const std::vector<Blob>& gathered() const override { return gathered_; }
  std::int64_t poll_set(std::vector<PollItem>&) const override { return 0; }

  int exchanges = 0;
  bool complete = true;
  std::optional<Error> told;

 private:
  std::vector<Blob> gathered_;
};

struct World {
  explicit World(int ranks)
      : facts{.process = process,
              .options = {.rank = 0, .ranks = ranks, .id = {}, .name = {}},
              .deadline_ns = system.now_ns() + 1'000'000'000,
              .exchange = exchange} {
    facts.peer_infos.resize(static_cast<std::size_t>(ranks));
    set_hosts(std::vector<int>(static_cast<std::size_t>(ranks), 0));
    facts.networks = facts.members.hosts;
  }
  void set_hosts(std::vector<int> hosts) {
    facts.members.hosts = std::move(hosts);
    facts.machines.emplace(facts.peer_infos, facts.members.hosts);
  }
  SimSystem system{SimOptions{}};
  Process process{system, plain_config(), Service::Mode::manual, std::make_unique<Tune>()};
  Echo exchange;
  Facts facts;
};

template <class... All>
std::vector<std::string> types() {
  return {typeid(All).name()...};
}

std::vector<std::string> phases_of(const Facts& facts) {
  std::vector<std::string> types;
  for (const auto& phase : phases()) {
    const Phase& one = *phase;
    if (one.applies(facts)) types.emplace_back(typeid(one).name());
  }
  return types;
}

TEST(StartPhases, OfOneHostAreThree) {
  World world(4);
  EXPECT_EQ(phases_of(world.facts), (types<Greeting, Mapping, Agreement>()));
}

TEST(StartPhases, OfSeveralHostsHaveAddresses) {
  World world(4);
  world.set_hosts({0, 0, 2, 2});
  EXPECT_EQ(phases_of(world.facts), (types<Greeting, Mapping, Carrier, Addresses, Reaching, Agreement>()));
  world.facts.networks = {0, 0, 2, 2};
  EXPECT_EQ(phases_of(world.facts),
            (types<Greeting, Mapping, Carrier, Addresses, Proving, Comparing, Reaching, Agreement>()));
}

/// What is an exchange is one on all ranks.
TEST(StartPhases, OfARankThatHasFailedLackNoExchange) {
  World world(4);
  world.set_hosts({0, 0, 2, 2});
  world.facts.networks = {0, 0, 2, 2};
  world.facts.note(Error{.code = Code::system, .what = "no memory"});
  EXPECT_EQ(phases_of(world.facts), (types<Greeting, Mapping, Carrier, Addresses, Comparing, Agreement>()));
}

TEST(StartPhases, OfSeveralUsersAndKindsOfMachinesHaveAnExchangeMore) {
  World world(2);
  world.facts.peer_infos[1].user[0] = std::byte{1};
  EXPECT_EQ(phases_of(world.facts), (types<Greeting, Sharing, Mapping, Agreement>()));
  world.facts.peer_infos[1].user[0] = std::byte{0};
  for (const std::size_t rank : {0, 1}) {
    world.facts.peer_infos[rank].machine[0] = static_cast<std::byte>(rank + 1);
    world.facts.peer_infos[rank].machine_bytes = 100;
  }
  world.set_hosts({0, 1});
  EXPECT_EQ(phases_of(world.facts), (types<Greeting, Describing, Mapping, Carrier, Addresses, Reaching, Agreement>()));
}

/// Three exchanges.
class Thrice final : public ExchangePhase {
 private:
  Result<Blob> contribution(Facts&) override { return Blob(1, std::byte{7}); }
  Result<bool> take(Facts&, const std::vector<Blob>& gathered) override {
    EXPECT_EQ(gathered.at(0), Blob(1, std::byte{7}));
    return ++taken_ < 3;
  }
  int taken_ = 0;
};

TEST(StartPhases, AnExchangeIsRepeatedAsLongAsItIsNeeded) {
  World world(1);
  Thrice phase;
  ASSERT_TRUE(phase.begin(world.facts));
  world.exchange.complete = false;
  EXPECT_EQ(*phase.advance(world.facts), Progress::blocked);
  world.exchange.complete = true;
  EXPECT_EQ(*phase.advance(world.facts), Progress::moved);
  EXPECT_EQ(*phase.advance(world.facts), Progress::moved);
  EXPECT_EQ(*phase.advance(world.facts), Progress::done);
  EXPECT_EQ(world.exchange.exchanges, 3);
}

class Forever final : public WaitPhase {
 public:
  Result<void> begin(Facts&) override { return {}; }

 private:
  Result<Progress> wait(Facts&) override { return Progress::blocked; }
  std::int64_t wait_set(const Facts& facts, std::vector<PollItem>&) const override { return facts.deadline_ns + 1; }
  const char* while_waiting() const override { return "while nothing happened"; }
  std::optional<Error> stuck(const Facts&) const override { return Error{.code = Code::system, .what = "no tools"}; }
};

/// On one host as well, where no exchange may have a limit of its own.
TEST(StartPhases, ARankThatMapsForTooLongIsLate) {
  World world(2);
  world.facts.note(Error{.code = Code::system, .what = "nothing is mapped in this test"});
  Mapping phase;
  ASSERT_TRUE(phase.begin(world.facts));
  while (world.system.now_ns() < world.facts.deadline_ns) world.system.poll({}, 100'000'000);
  const auto late = phase.advance(world.facts);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().what, "the limit of the start passed while memory of other ranks was mapped");
}

TEST(StartPhases, AWaitEndsAtTheLimitOfTheStartAndTheOthersHearWhy) {
  World world(2);
  Forever phase;
  EXPECT_EQ(*phase.advance(world.facts), Progress::blocked);
  std::vector<PollItem> items;
  EXPECT_EQ(phase.poll_set(world.facts, items), world.facts.deadline_ns);
  while (world.system.now_ns() < world.facts.deadline_ns) world.system.poll({}, 100'000'000);
  const auto late = phase.advance(world.facts);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::timeout);
  EXPECT_EQ(late.error().what, "the limit of the start passed while nothing happened: system error: no tools");
  ASSERT_TRUE(world.exchange.told);
  EXPECT_EQ(world.exchange.told->code, Code::timeout);
  EXPECT_EQ(world.exchange.told->what, "rank 0: " + late.error().words());
}

}  // namespace
}  // namespace tutti::start
