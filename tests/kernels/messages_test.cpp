// Do sends and receives by kernels arrive as they were sent, on a memory as weak as a GPU's?
#include "kernels/messages.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "support/messages_world.h"
#include "support/seeds.h"

namespace tutti {
namespace {

using namespace testing;
using device::ErrorRecord;
using device::Fault;

/// Several launches in a row, with the messages of that seed. False: not all messages arrived.
bool arrives(int ranks, std::uint64_t seed, Fault fault = Fault::none) {
  MessagesWorld world(ranks, seed);
  for (std::uint64_t call = 0; call < 3; ++call) {
    world.forget();
    if (!world.run(seed + call, fault) || !world.compare().empty()) return false;
  }
  return true;
}

TEST(Messages, OfAllSizesArrive) {
  for (int ranks = 2; ranks <= 6; ++ranks)
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(share_of(20)); ++seed)
      ASSERT_TRUE(arrives(ranks, test_seed() + seed)) << ranks << " ranks, seed " << seed;
}

TEST(Messages, ThatFitTheSlotsWaitForNoReceiver) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    MessagesWorld world(2, seed);
    world.clear();
    world.add(0, 1, world.area().channels * world.area().slots * 64);
    EXPECT_TRUE(world.run(std::array{0}, seed));
    EXPECT_TRUE(world.run(std::array{1}, seed));
    EXPECT_EQ(world.record(0).state, ErrorRecord::none);
    EXPECT_EQ(world.record(1).state, ErrorRecord::none);
  }
}

/// One of each size in each slot of each block.
TEST(Messages, ManyShortOnesFitTheSlots) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    MessagesWorld world(2, seed);
    world.clear();
    for (std::uint32_t i = 0; i < world.area().channels * world.area().slots; ++i) world.add(0, 1, 1 + i);
    EXPECT_TRUE(world.run(std::array{0}, seed));
    EXPECT_TRUE(world.run(std::array{1}, seed));
    EXPECT_EQ(world.compare(), "");
  }
}

/// Longer ones at the same time.
TEST(Messages, NoTwoRanksHoldEachOtherUp) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    MessagesWorld world(2, seed);
    world.clear();
    world.add(0, 1, 5000);
    world.add(1, 0, 5000);
    EXPECT_TRUE(world.run(seed));
    EXPECT_EQ(world.compare(), "");
  }
}

TEST(Messages, AReceiverThatExpectsAnotherEndsBothCalls) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    for (const bool other_type : {false, true}) {
      MessagesWorld world(2, seed);
      world.clear();
      world.add(0, 1, 700);
      device::Message& received = world.of(1).front();
      (other_type ? received.type = 3 : received.bytes = 696);
      EXPECT_TRUE(world.run(seed));
      const ErrorRecord& record = world.record(1);
      EXPECT_EQ(record.state, ErrorRecord::counts);
      EXPECT_EQ(record.message, 1u);
      EXPECT_EQ(record.peer, 0u);
      EXPECT_EQ(record.own, other_type ? 700u : 696u);
      EXPECT_EQ(record.theirs, 700u);
      EXPECT_EQ(record.types, other_type ? 3u : 0u);
    }
}

TEST(Messages, APeerThatNeverComesIsNamed) {
  MessagesWorld world(3, 1);
  world.clear();
  world.add(0, 2, 5000);
  world.add(2, 1, 10);
  for (const int rank : {0, 1}) world.call(rank).limit_ns = 1'000'000'000;
  EXPECT_TRUE(world.run(std::array{0, 1}, 1));
  for (const int rank : {0, 1}) {
    EXPECT_NE(world.record(rank).state, ErrorRecord::none);
    EXPECT_EQ(world.record(rank).message, 1u);
    EXPECT_EQ(world.record(rank).peer, 2u);
    EXPECT_EQ(world.record(rank).verb, static_cast<std::uint32_t>(rank == 0 ? Verb::acquire : Verb::peek));
  }
}

TEST(Messages, FaultsAreNoticed) {
  const auto noticed = [](Fault fault, std::uint64_t seeds) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed)
      if (!arrives(3, seed, fault)) return true;
    return false;
  };
  EXPECT_FALSE(noticed(Fault::none, static_cast<std::uint64_t>(share_of(30))));
  for (const Fault fault : {Fault::release_relaxed, Fault::acquire_relaxed, Fault::gpu_scope, Fault::no_publish_barrier,
                            Fault::one_slot_too_many})
    EXPECT_TRUE(noticed(fault, 30)) << static_cast<int>(fault);
}

}  // namespace
}  // namespace tutti
