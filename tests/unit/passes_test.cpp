// Do passes go on where they stopped, and pull memory straight or through the bounce buffer?
#include "exec/passes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>
#include <vector>

#include "exec/pull.h"
#include "support/plan_writer.h"

namespace tutti {
namespace {

using namespace testing;

TEST(Passes, GoOnWhereTheirBudgetEnded) {
  const Schedule schedule({.collective = Collective::broadcast, .ranks = 1}, 1);
  const Plan plan = PlanWriter(schedule, 0, Access::mapped).copy(input(0), {output(0)}).plan();
  std::vector<std::int32_t> in(10'000), out(in.size(), -1);
  std::iota(in.begin(), in.end(), 0);
  const Binding binding{.input = reinterpret_cast<const std::byte*>(in.data()),
                        .output = reinterpret_cast<std::byte*>(out.data()),
                        .type = DataType::int32,
                        .split = Split(in.size(), sizeof(std::int32_t), 1)};
  const Passes passes(plan, binding, default_rules);
  EXPECT_FALSE(passes.direct());
  Channel channel;
  Cursor cursor{};
  std::size_t budget = 16'384;  // read and written
  auto finished = passes.advance(channel, cursor, plan.actions[0], budget);
  ASSERT_TRUE(finished && !*finished);
  EXPECT_EQ(budget, 0u);
  EXPECT_EQ(cursor.pass_done, 2048u);
  EXPECT_EQ(out[2047], 2047);
  EXPECT_EQ(out[2048], -1);
  budget = 1 << 20;
  finished = passes.advance(channel, cursor, plan.actions[0], budget);
  ASSERT_TRUE(finished && *finished);
  EXPECT_EQ(budget, (1u << 20) - 2 * (in.size() - 2048) * sizeof(std::int32_t));
  EXPECT_EQ(cursor.pass_done, 0u);
  EXPECT_EQ(out, in);
}

TEST(Passes, PullThroughTheBounceBufferWhereAddressesAreSlightlyApart) {
  constexpr std::size_t page = 4096, bytes = 5 * page + 3;
  std::vector<std::byte> from(bytes + page), to(bytes + 3 * page);
  const auto on_page = [](std::byte* at) { return at + (page - reinterpret_cast<std::uintptr_t>(at) % page) % page; };
  std::byte* const source = on_page(from.data());
  for (std::size_t i = 0; i < bytes; ++i) source[i] = static_cast<std::byte>(i * 7);
  if (!pull({.pid = getpid()}, source, {to.data(), 1})) GTEST_SKIP() << "process_vm_readv is not permitted here";

  const Schedule schedule({.collective = Collective::broadcast, .ranks = 2}, 1);
  const Plan plan = PlanWriter(schedule, 0, Access::cma).copy(at_peer(Where::peer_input, 1, 0), {output(0)}).plan();
  const PeerMemory peers[] = {{}, {.input = source, .process = {.pid = getpid()}}};
  for (const bool realigns : {false, true})
    for (const std::size_t apart : {0, 8, 64}) {
      const PassRules rules{.bounce_bytes = 2 * page, .realigns = realigns};
      std::ranges::fill(to, std::byte{});
      std::byte* const destination = on_page(to.data()) + apart;
      const Binding binding{.output = destination, .split = Split(bytes, 1, 1), .peers = peers};
      const Passes passes(plan, binding, rules);
      Channel channel;
      Cursor cursor{};
      std::size_t budget = 1 << 20;
      const auto finished = passes.advance(channel, cursor, plan.actions[0], budget);
      ASSERT_TRUE(finished && *finished);
      EXPECT_TRUE(std::equal(source, source + bytes, destination));
      EXPECT_EQ(channel.bounce.bytes() > 0, realigns && apart == 8) << apart;
    }
}

}  // namespace
}  // namespace tutti
