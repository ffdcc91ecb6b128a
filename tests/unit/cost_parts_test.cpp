// What a prediction is put together from: costs of bytes, prices of passes, cores and fifos.
#include <gtest/gtest.h>

#include "choice/cores.h"
#include "choice/fifo_times.h"
#include "choice/memory_use.h"
#include "choice/pass_prices.h"
#include "support/plan_writer.h"

namespace tutti {
namespace {

using namespace testing;

TEST(MemoryUse, MakesBytesCostlierWhereRanksShareACore) {
  const Conditions wide{.cores = 8}, narrow{.cores = 2};
  const Machine machine;
  MemoryUse alone(Access::mapped, 8, machine, wide), crowded(Access::mapped, 8, machine, narrow);
  EXPECT_EQ(alone.crowd, 1);
  EXPECT_EQ(crowded.crowd, 4);
  alone.own_groups = crowded.own_groups = 2;
  alone.moved_groups = crowded.moved_groups = 7;
  EXPECT_EQ(alone.bytes_moved(1000), 7000U);
  const CallCosts one = alone.costs(1 << 20, machine, wide), four = crowded.costs(1 << 20, machine, narrow);
  EXPECT_EQ(one.own_bytes, 2 << 20);
  EXPECT_EQ(one.byte.read, machine.read.us_per_byte(2 << 20));
  EXPECT_EQ(four.byte.read, machine.read.us_per_byte(8 << 20));
  EXPECT_EQ(one.byte.far_write, machine.far.write.us_per_byte(9 << 20));
  EXPECT_EQ(four.byte.far_write, machine.far.write.us_per_byte(36 << 20));
}

TEST(MemoryUse, DividesACallIntoTilesThatFitSlots) {
  const Conditions conditions{.cores = 2, .channels = 2, .slots = 4, .slot_bytes = 64 << 10};
  const Machine machine;
  MemoryUse use(Access::slots, 2, machine, conditions);
  use.fifo_peers = 2;
  const CallCosts call = use.costs(1 << 20, machine, conditions);
  EXPECT_EQ(call.tiles, 16U);
  EXPECT_EQ(call.block_bytes, 64 << 10);
  EXPECT_EQ(call.byte.far_read, machine.far.read.us_per_byte(2 * 2 * 4 * (64 << 10))) << "all slots in use";
  EXPECT_EQ(call.byte.of(10).far_read, 10 * call.byte.far_read);
}

TEST(PullRates, OfAFewRanksAreThoseOfOneOrAShareOfAll) {
  PullRates pull;
  pull.alone.gbps.fill(20);
  pull.together.gbps.fill(5);
  EXPECT_DOUBLE_EQ(pull.us_per_byte(1, 1), 1e-3 / 5);
  EXPECT_DOUBLE_EQ(pull.us_per_byte(1, 0.5), 1e-3 / 10);
  EXPECT_DOUBLE_EQ(pull.us_per_byte(1, 0.01), 1e-3 / 20);
  EXPECT_EQ(pull.bounce_bytes(), 128U << 10);
  pull.bounced_gbps[1] *= 1.01;
  EXPECT_EQ(pull.bounce_bytes(), 128U << 10) << "hardly faster";
  pull.bounced_gbps[2] *= 1.1;
  EXPECT_EQ(pull.bounce_bytes(), 1U << 20);
}

class PassPricesOf : public ::testing::Test {
 protected:
  double us(const PlanWriter& writer) const {
    return PassPrices(machine, loops, conditions, call, 2).us(writer.plan(), writer.plan().actions.back()) -
           machine.pass_us;
  }
  static PlanWriter plan(Access access) {
    return {Schedule({.collective = Collective::all_gather, .ranks = 2}, 1), 0, access};
  }

  Machine machine;
  LoopTable loops;
  Conditions conditions;
  CallCosts call{
      .block_bytes = 1000, .own_bytes = 1, .byte = {.read = 1, .write = 2, .far_read = 3, .far_write = 4, .pull = 5}};
};

TEST_F(PassPricesOf, OperandsDependOnTheirOwners) {
  EXPECT_DOUBLE_EQ(us(plan(Access::slots).copy(input(0), {output(0)})), 3000);
  EXPECT_DOUBLE_EQ(us(plan(Access::slots).copy(input(0), {slot(1, 0), output(0)})), 7000);
  EXPECT_DOUBLE_EQ(us(plan(Access::mapped).copy(at_peer(Where::peer_input, 1, 0), {output(1)})), 5000);
}

TEST_F(PassPricesOf, SlowLinksAreAsSlowAsTheyAre) {
  conditions.pair_gbps = {0, 1e-4, 0, 0};
  EXPECT_DOUBLE_EQ(us(plan(Access::slots).copy(input(0), {slot(1, 0)})), 11000);
  EXPECT_DOUBLE_EQ(us(plan(Access::slots).copy(slot(1, 0), {output(0)})), 5000);
}

TEST_F(PassPricesOf, BlocksBetweenHostsTakeTheWire) {
  conditions.hosts = {0, 1};
  EXPECT_DOUBLE_EQ(us(plan(Access::slots).copy(input(0), {slot(1, 0)})), 1000 + 1 / machine.wire.gbps);
}

TEST_F(PassPricesOf, PulledBlocksLandWithoutAStore) {
  EXPECT_DOUBLE_EQ(us(plan(Access::cma).copy(at_peer(Where::peer_input, 1, 0), {output(1)})),
                   5000 + machine.pull.call_us);
}

TEST(Cores, AreDealtHostAfterHost) {
  Cores cores(4, {.cores = 2, .hosts = {0, 1, 0, 1}});
  EXPECT_EQ(cores.count(), 2U);
  EXPECT_NE(&cores.of(0), &cores.of(2)) << "ranks of a host";
  EXPECT_EQ(&cores.of(0), &cores.of(1));
  EXPECT_EQ(&cores.of(2), &cores.of(3));
  EXPECT_DOUBLE_EQ(cores.busiest({{1, 2}, {4}, {3}, {3}}), 7);
  EXPECT_EQ(Cores(3, {.cores = 8}).count(), 3U);
}

TEST(FifoTimes, OfASlotFollowTheReleaseOfItsMessage) {
  FifoTimes fifos;
  fifos.restart(2, 3, 1);
  const std::size_t fifo = fifos.index(1, 2, 0);
  EXPECT_EQ(fifos.slot_at(fifo, 0.5), 0);
  EXPECT_EQ(fifos.message_at(fifo, 0.5), FifoTimes::never);
  fifos.acquire(fifo);
  fifos.commit(fifo, 2);
  EXPECT_EQ(fifos.slot_at(fifo, 0.5), FifoTimes::never);
  EXPECT_EQ(fifos.message_at(fifo, 0.5), 2.5);
  EXPECT_EQ(fifos.message_at(fifos.index(0, 2, 0), 0.5), FifoTimes::never) << "another channel";
  fifos.peek(fifo);
  EXPECT_EQ(fifos.message_at(fifo, 0.5), FifoTimes::never);
  fifos.release(fifo, 4);
  EXPECT_EQ(fifos.slot_at(fifo, 0.5), 4.5);
  fifos.restart(2, 3, 1);
  EXPECT_EQ(fifos.slot_at(fifo, 0.5), 0);
}

}  // namespace
}  // namespace tutti
