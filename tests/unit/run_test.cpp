// Does a Run do what its plan says, on slots, windows, pulls and call descriptors, in tiles and pieces, and say what
// went wrong?
#include "exec/run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "exec/pull.h"
#include "support/plan_writer.h"
#include "support/run_world.h"

namespace tutti {
namespace {

using namespace testing;

using Words = std::vector<std::int32_t>;

std::byte* bytes_of(Words& words) {
  return reinterpret_cast<std::byte*>(words.data());
}

/// Buffers and bindings of all ranks, of int32.
struct Calls {
  std::vector<Words> inputs, outputs, scratches;
  std::vector<PeerMemory> peers;
  std::vector<std::uint64_t> scalars;
  std::vector<Binding> bindings;

  Calls(int ranks, std::size_t count, int parts, int groups_in, int groups_out, ReduceOp op = ReduceOp::sum) {
    for (int rank = 0; rank < ranks; ++rank) {
      Words input(count * static_cast<std::size_t>(groups_in));
      std::iota(input.begin(), input.end(), 1000 * (rank + 1));
      inputs.push_back(std::move(input));
      outputs.emplace_back(count * static_cast<std::size_t>(groups_out), -1);
      scratches.emplace_back(count, -2);
      scalars.push_back(static_cast<std::uint64_t>(rank) + 2);
    }
    for (int rank = 0; rank < ranks; ++rank) peers.push_back({bytes_of(inputs[rank]), bytes_of(outputs[rank]), {}});
    for (int rank = 0; rank < ranks; ++rank)
      bindings.push_back({.input = bytes_of(inputs[rank]),
                          .output = bytes_of(outputs[rank]),
                          .scratch = bytes_of(scratches[rank]),
                          .type = DataType::int32,
                          .op = op,
                          .split = Split(count, sizeof(std::int32_t), parts),
                          .peers = peers,
                          .scalars = scalars,
                          .sequence = 1});
  }

  /// As computed from the untouched inputs, one group each.
  Words expected(ReduceOp op) const {
    Words result(inputs[0].size());
    const auto ranks = static_cast<std::int32_t>(inputs.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      for (std::int32_t rank = 0; rank < ranks; ++rank)
        result[i] += inputs[rank][i] * (op == ReduceOp::pre_mul_sum ? rank + 2 : 1);
      if (op == ReduceOp::avg) result[i] /= ranks;
    }
    return result;
  }
};

constexpr std::size_t nothing_streamed = std::numeric_limits<std::size_t>::max();

void run_all(World& world, std::span<const Plan> plans, const Calls& calls, std::size_t nontemporal_bytes = 0,
             std::size_t streamed_bytes = nothing_streamed) {
  const PassRules rules{.loops = LoopTable::all(Loop::nontemporal_pages),
                        .nontemporal_bytes = nontemporal_bytes,
                        .streamed_bytes = streamed_bytes};
  std::vector<Run> runs;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    RunContext links = world.links(static_cast<int>(rank));
    links.rules = &rules;
    runs.emplace_back(plans[rank], calls.bindings[rank], links);
  }
  run_to_end(runs);
}

/// Both send all they have, both reduce in rank order.
Plan exchange(const Schedule& schedule, Rank rank) {
  const Rank peer = 1 - rank;
  PlanWriter plan(schedule, rank, Access::slots, 1);
  plan.acquire(peer, 1).copy(contributed(input(0)), {slot(peer, 0)}).commit(peer).peek(peer, 1);
  if (rank == 0)
    plan.reduce({contributed(input(0)), slot(peer, 0)}, {output(0)}).last();
  else
    plan.reduce({slot(peer, 0), contributed(input(0))}, {output(0)}).last();
  return plan.release(peer).settle(peer).plan();
}

class Exchanges : public ::testing::TestWithParam<std::tuple<ReduceOp, std::size_t, int>> {};

TEST_P(Exchanges, ReduceThroughSlotsInTilesAndChannels) {
  const auto [op, count, channels] = GetParam();
  const Schedule schedule({.collective = Collective::all_reduce, .ranks = 2}, 1);
  const Plan plans[] = {exchange(schedule, 0), exchange(schedule, 1)};
  World world({.ranks = 2, .channels = channels, .slots = 1, .slot_bytes = 256});
  for (const auto& [nontemporal_bytes, streamed_bytes] :
       {std::pair<std::size_t, std::size_t>{0, nothing_streamed}, {1, nothing_streamed}, {0, 1}, {1, 100}}) {
    Calls calls(2, count, 1, 1, 1, op);
    for (auto& binding : calls.bindings) binding.split.tile(256, 1);
    ASSERT_TRUE(count < 1000 || calls.bindings[0].split.tiles() > 10);
    run_all(world, plans, calls, nontemporal_bytes, streamed_bytes);
    EXPECT_EQ(calls.outputs[0], calls.expected(op));
    EXPECT_EQ(calls.outputs[1], calls.expected(op));
  }
}

INSTANTIATE_TEST_SUITE_P(Run, Exchanges,
                         ::testing::Combine(::testing::Values(ReduceOp::sum, ReduceOp::avg, ReduceOp::pre_mul_sum),
                                            ::testing::Values(0, 1, 64, 1000), ::testing::Values(1, 2, 8)));

TEST(Run, BlocksOfDifferentSizeTravelInOneMessageAndAreForwarded) {
  // Broadcast along a chain, two parts; the middle rank passes on in the pass that stores.
  const Schedule schedule({.collective = Collective::broadcast, .ranks = 3}, 2);
  PlanWriter head(schedule, 0, Access::slots, 2), middle(schedule, 1, Access::slots, 2),
      tail(schedule, 2, Access::slots, 2);
  head.acquire(1, 2);
  middle.peek(0, 2).acquire(2, 2);
  tail.peek(1, 2);
  for (int part : {0, 1}) {
    head.copy(input(part), {slot(1, part), output(part)}, part);
    middle.copy(slot(0, part), {slot(2, part), output(part)}, part);
    tail.copy(slot(1, part), {output(part)}, part);
  }
  head.commit(1);
  middle.commit(2).release(0);
  tail.release(1);
  const Plan plans[] = {head.plan(), middle.plan(), tail.plan()};
  for (const std::size_t count : {0, 1, 2, 63, 1001, 1002}) {
    World world({.ranks = 3, .channels = 2, .slot_bytes = 256});
    Calls calls(3, count, 2, 1, 1);
    for (auto& binding : calls.bindings) binding.split.tile(256, 2);
    run_all(world, plans, calls, 0, count % 2 == 0 ? 1 : nothing_streamed);
    for (const auto& got : calls.outputs) EXPECT_EQ(got, calls.inputs[0]) << count;
  }
}

/// Rank r reduces part r of all inputs and stores it to all outputs.
std::vector<Plan> two_shot(int ranks) {
  const Schedule schedule({.collective = Collective::all_reduce, .ranks = ranks}, ranks);
  std::vector<Plan> plans;
  for (Rank rank = 0; rank < ranks; ++rank) {
    PlanWriter writer(schedule, rank, Access::mapped);
    writer.reduce({}, {}, rank).last();
    for (Rank peer = 0; peer < ranks; ++peer)
      if (peer != rank) writer.signal(peer);
    for (Rank peer = 0; peer < ranks; ++peer)
      if (peer != rank) writer.wait(peer);
    Plan plan = writer.plan();
    for (const auto& [own, theirs] : {std::pair{Where::input, Where::peer_input}, {Where::output, Where::peer_output}})
      for (Rank peer = 0; peer < ranks; ++peer)
        plan.places.push_back(peer == rank ? contributed({.where = own, .block = static_cast<std::uint32_t>(rank)})
                                           : contributed(at_peer(theirs, peer, rank)));
    plan.actions[0].sources = plan.actions[0].destinations = static_cast<std::uint16_t>(ranks);
    plans.push_back(std::move(plan));
  }
  return plans;
}

TEST(Run, WindowsAreReadAndWrittenDirectly) {
  for (const int ranks : {2, 3, 4}) {
    const auto plans = two_shot(ranks);
    World world({.ranks = ranks, .channels = 4});
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::pre_mul_sum}) {
      for (const std::size_t nontemporal_bytes : {0, 1}) {
        Calls calls(ranks, 1003, ranks, 1, 1, op);
        run_all(world, plans, calls, nontemporal_bytes);
        for (const auto& got : calls.outputs) EXPECT_EQ(got, calls.expected(op)) << ranks << " ranks";
      }
    }
  }
}

TEST(Run, WindowsInPlace) {
  const auto plans = two_shot(3);
  World world({.ranks = 3});
  Calls calls(3, 1003, 3, 1, 1);
  const Words expected = calls.expected(ReduceOp::sum);
  for (Rank rank : {0, 1, 2}) {
    calls.bindings[rank].output = bytes_of(calls.inputs[rank]);
    calls.peers[rank].output = bytes_of(calls.inputs[rank]);
  }
  run_all(world, plans, calls, 1);
  for (const auto& got : calls.inputs) EXPECT_EQ(got, expected);
}

TEST(Run, ManyDestinationsAreAllWritten) {
  const int ranks = 150;
  const Schedule schedule({.collective = Collective::broadcast, .ranks = ranks}, 1);
  Plan plan = PlanWriter(schedule, 0, Access::mapped).copy(input(0), {}).plan();
  for (Rank peer = 0; peer < ranks; ++peer) plan.places.push_back(at_peer(Where::peer_output, peer, 0));
  plan.actions[0].destinations = static_cast<std::uint16_t>(ranks);
  World world({.ranks = ranks, .slot_bytes = 1});
  Calls calls(ranks, 77, 1, 1, 1);
  run_all(world, {&plan, 1}, calls);
  for (const auto& got : calls.outputs) EXPECT_EQ(got, calls.inputs[0]);
}

TEST(Run, GroupsAndScratchLieWhereTheyShould) {
  // Swap the two groups of an all-to-all of one rank's view, through scratch.
  const Schedule schedule({.collective = Collective::all_to_all, .ranks = 2}, 2);
  PlanWriter writer(schedule, 0, Access::mapped);
  for (int part : {0, 1}) {
    writer.copy(input(part), {scratch(part)}, part).copy(scratch(part), {output(2 + part)}, part);
    writer.copy(input(2 + part), {output(part)}, part);
  }
  const Plan plan = writer.plan();
  World world({.ranks = 2});
  Calls calls(2, 101, 2, 2, 2);
  run_all(world, {&plan, 1}, calls);
  Words expected = calls.inputs[0];
  std::rotate(expected.begin(), expected.begin() + 101, expected.end());
  EXPECT_EQ(calls.outputs[0], expected);
}

/// False, with a reason, where the system forbids reading even ourselves.
bool may_pull() {
  std::byte from{1}, into{0};
  return bool(pull({.pid = getpid()}, &from, {&into, 1}));
}

TEST(Run, PulledMemoryIsCopiedOrReduced) {
  if (!may_pull()) GTEST_SKIP() << "process_vm_readv is not permitted here";
  const Schedule schedule({.collective = Collective::all_reduce, .ranks = 3}, 1);
  const auto theirs = [](Rank peer) { return contributed(at_peer(Where::peer_input, peer, 0)); };
  const Plan reducing = PlanWriter(schedule, 0, Access::cma)
                            .reduce({contributed(input(0)), theirs(1), theirs(2)}, {output(0), scratch(0)})
                            .last()
                            .plan();
  const Plan copying =
      PlanWriter(schedule, 0, Access::cma).copy(theirs(1), {output(0), at_peer(Where::peer_output, 2, 0)}).plan();
  const std::size_t count = 100'003;  // more than the bounce buffer takes at once
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::pre_mul_sum}) {
    World world({.ranks = 3});
    Calls calls(3, count, 1, 1, 1, op);
    for (Rank peer : {1, 2}) calls.peers[peer].process.pid = getpid();
    calls.peers[2].output = bytes_of(calls.outputs[2]);
    run_all(world, {&reducing, 1}, calls);
    EXPECT_EQ(calls.outputs[0], calls.expected(op));
    EXPECT_EQ(calls.scratches[0], calls.expected(op));
    run_all(world, {&copying, 1}, calls);
    Words copied = calls.inputs[1];
    if (op == ReduceOp::pre_mul_sum)
      for (auto& value : copied) value *= 3;
    EXPECT_EQ(calls.outputs[0], copied);
    EXPECT_EQ(calls.outputs[2], copied);
  }
}

/// As after exec: the same number, and something at the same address.
TEST(Pull, FromAnotherProgramFails) {
  if (!may_pull()) GTEST_SKIP() << "process_vm_readv is not permitted here";
  const std::uint64_t word = 4711;
  std::vector<std::byte> from(3 << 20, std::byte{1}), into(from.size());
  ForeignProcess process{.pid = getpid(), .word_at = reinterpret_cast<std::uint64_t>(&word), .word = word};
  ASSERT_TRUE(pull(process, from.data(), into));
  EXPECT_EQ(into, from);
  process.word += 1;
  const auto pulled = pull(process, from.data(), into);
  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().code, Code::remote);
  EXPECT_NE(pulled.error().what.find("another program"), std::string::npos);
}

TEST(Run, APullFromNowhereIsARemoteError) {
  if (!may_pull()) GTEST_SKIP() << "process_vm_readv is not permitted here";
  const Schedule schedule({.collective = Collective::all_reduce, .ranks = 2}, 1);
  const Plan plan =
      PlanWriter(schedule, 0, Access::cma).step(4).copy(at_peer(Where::peer_input, 1, 0), {output(0)}).plan();
  World world({.ranks = 2});
  Calls calls(2, 10, 1, 1, 1);
  calls.peers[1] = {.input = nullptr, .output = nullptr, .process = {.pid = getpid()}};
  tutti::Run run(plan, calls.bindings[0], world.links(0));
  const auto progress = run.advance();
  ASSERT_FALSE(progress);
  EXPECT_EQ(progress.error().code, Code::remote);
  EXPECT_EQ(progress.error().sys_errno, EFAULT);
  EXPECT_EQ(progress.error().peer, 1);
  EXPECT_EQ(progress.error().step, 4);
}

/// One ring of call descriptors per rank, as each rank sees them.
struct Lines {
  struct alignas(64) Block {
    std::byte bytes[64];
  };
  std::vector<std::vector<Block>> memory;
  std::vector<CallDescriptors> of;

  Lines(int ranks, std::size_t payload_bytes) {
    std::vector<std::byte*> rings;
    for (int rank = 0; rank < ranks; ++rank) {
      memory.emplace_back((DescriptorRings::ring_bytes(payload_bytes) + 63) / 64);
      rings.push_back(memory.back()[0].bytes);
    }
    for (int rank = 0; rank < ranks; ++rank) of.emplace_back(rings, rank, payload_bytes);
  }

  void publish(int rank, const Words& input) {
    CallDescriptor& line = of[rank].begin(1);
    line.signature = {};
    const std::size_t bytes = input.size() * sizeof(std::int32_t);
    if (bytes > 0) std::memcpy(of[rank].payload(1, bytes), input.data(), bytes);
    of[rank].publish(line, 1);
  }
};

TEST(Run, SmallCallsReadTheirPeersLines) {
  const Schedule schedule({.collective = Collective::all_reduce, .ranks = 3}, 1);
  const auto line = [](Rank peer) { return at_peer(Where::peer_payload, peer, 0); };
  const Plan plan = PlanWriter(schedule, 1, Access::in_line)
                        .wait_descriptor(0)
                        .wait_descriptor(2)
                        .reduce({line(0), contributed(input(0)), line(2)}, {output(0)})
                        .last()
                        .plan();
  for (const std::size_t count : {1, 6, 7, 100}) {
    World world({.ranks = 3, .channels = 4});
    Lines lines(3, 1024);
    Calls calls(3, count, 1, 1, 1);
    RunContext links = world.links(1);
    links.descriptors = &lines.of[1];
    tutti::Run run(plan, calls.bindings[1], links);

    lines.publish(1, calls.inputs[1]);
    lines.publish(0, calls.inputs[0]);
    auto progress = run.advance();
    ASSERT_TRUE(progress && *progress == Progress::moved);
    progress = run.advance();
    ASSERT_TRUE(progress && *progress == Progress::blocked);
    EXPECT_EQ(run.waiting_for().peer, 2);
    EXPECT_EQ(run.waiting_for().verb, Verb::wait_descriptor);

    lines.publish(2, calls.inputs[2]);
    progress = run.advance();
    ASSERT_TRUE(progress && *progress == Progress::done);
    EXPECT_EQ(calls.outputs[1], calls.expected(ReduceOp::sum)) << count;
  }
}

TEST(Run, OneAdvanceMovesAboutAMegabyte) {
  const Schedule schedule({.collective = Collective::broadcast, .ranks = 1}, 1);
  const Plan plan = PlanWriter(schedule, 0, Access::mapped).copy(input(0), {output(0)}).plan();
  World world({.ranks = 1});
  const std::size_t megabyte = (1 << 20) / sizeof(std::int32_t);
  Calls calls(1, 16 * megabyte, 1, 1, 1);
  tutti::Run run(plan, calls.bindings[0], world.links(0));
  std::size_t before = 0;
  for (int advances = 1;; ++advances) {
    const auto progress = run.advance();
    ASSERT_TRUE(progress);
    const auto& output = calls.outputs[0];
    std::size_t now = before;
    while (now < output.size() && output[now] != -1) ++now;
    EXPECT_LE(now - before, 2 * megabyte) << "advance " << advances;
    before = now;
    if (*progress == Progress::done) break;
    ASSERT_EQ(*progress, Progress::moved);
  }
  EXPECT_EQ(calls.outputs[0], calls.inputs[0]);
}

TEST(Run, ChannelsDoNotWaitForEachOther) {
  // Channel 0 of rank 1 has no slot to send in; channel 1 comes through.
  const Schedule schedule({.collective = Collective::all_reduce, .ranks = 2}, 1);
  const Plan plan = exchange(schedule, 1);
  World world({.ranks = 2, .channels = 2, .slots = 1, .slot_bytes = 256});
  world.fifo(0, 1, 0).push(1);
  world.fifo(1, 0, 1).push(256);
  Calls calls(2, 128, 1, 1, 1);
  calls.bindings[1].split.tile(256, 1);
  ASSERT_EQ(calls.bindings[1].split.tiles(), 2u);
  tutti::Run run(plan, calls.bindings[1], world.links(1));
  auto progress = run.advance();
  ASSERT_TRUE(progress && *progress == Progress::moved);
  EXPECT_EQ(run.waiting_for().channel, 0);
  EXPECT_EQ(run.waiting_for().verb, Verb::acquire);
  EXPECT_EQ(calls.outputs[1][0], -1);
  EXPECT_EQ(calls.outputs[1][127], calls.inputs[1][127]) << "channel 1 reduced its tile with zeros";
}

TEST(Run, SignalsRingTheSleeper) {
  const Schedule schedule({.collective = Collective::barrier, .ranks = 2}, 1);
  const Plan plan = PlanWriter(schedule, 0, Access::mapped).signal(1).wait(1).plan();
  World world({.ranks = 2});
  world.bell(1).asleep.store(1);
  Calls calls(2, 0, 1, 1, 1);
  tutti::Run run(plan, calls.bindings[0], world.links(0));
  const auto progress = run.advance();
  ASSERT_TRUE(progress && *progress == Progress::moved);
  EXPECT_EQ(world.bell(1).asleep.load(), 0u);
  EXPECT_EQ(run.waiting_for().peer, 1);
}

class Faults : public ::testing::Test {
 protected:
  Faults() : calls_(2, 100, 1, 1, 1) {
    calls_.bindings[0].split.tile(256, 1);
    plan_ = exchange(Schedule({.collective = Collective::all_reduce, .ranks = 2}, 1), 0);
    for (Action& action : plan_.actions) action.step = 9;
  }
  Error failure() {
    tutti::Run run(plan_, calls_.bindings[0], world_.links(0));
    auto progress = run.advance();
    EXPECT_FALSE(progress);
    return progress ? Error{} : std::move(progress).error();
  }

  World world_{{.ranks = 2, .channels = 2, .slots = 2, .slot_bytes = 256}};
  Calls calls_;
  Plan plan_;
};

TEST_F(Faults, OfATransportSayWhere) {
  world_.fifo(1, 0, 1).broken = Error{.code = Code::remote, .what = "gone"};
  const Error error = failure();
  EXPECT_EQ(error.code, Code::remote);
  EXPECT_EQ(error.peer, 1);
  EXPECT_EQ(error.channel, 1);
  EXPECT_EQ(error.step, 9);
}

TEST_F(Faults, AMessageOfTheWrongLengthIsNotRead) {
  for (const std::size_t bytes : {0, 1, 192, 256}) {
    world_.fifo(0, 1, 0).messages.clear();
    world_.fifo(0, 1, 0).push(bytes);
    world_.fifo(0, 0, 1).messages.clear();
    world_.fifo(1, 0, 1).messages.clear();
    const Error error = failure();
    EXPECT_EQ(error.code, Code::remote);
    EXPECT_EQ(error.peer, 1);
    EXPECT_NE(error.what.find(std::to_string(bytes) + " bytes"), std::string::npos) << error.what;
  }
}

TEST_F(Faults, ASlotTooSmallIsOurMistake) {
  calls_.bindings[0].split = Split(100, sizeof(std::int32_t), 1);
  const Error error = failure();
  EXPECT_EQ(error.code, Code::internal);
  EXPECT_EQ(error.peer, 1);
}

}  // namespace
}  // namespace tutti
