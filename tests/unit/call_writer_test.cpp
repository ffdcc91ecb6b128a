// What kernels are told of a call, and how a reduction with a count per rank becomes launches and passes.
#include "cuda/call_writer.h"

#include <gtest/gtest.h>

#include "support/cuda_user.h"

namespace tutti::cuda {
namespace {

device::PeerBuffers buffers_at(std::uintptr_t input, std::uintptr_t output) {
  return {.input = reinterpret_cast<const std::byte*>(input),  // NOLINT: nobody reads there
          .output = reinterpret_cast<std::byte*>(output),      // NOLINT
          .scalar = 0};
}

std::shared_ptr<const DevicePlan> device_plan(device::Body body) {
  static constexpr Action actions[7] = {};
  DevicePlan plan;
  plan.actions = actions;
  plan.action_count = std::size(actions);
  plan.body = body;
  return std::make_shared<const DevicePlan>(std::move(plan));
}

/// Of ranks 1 and 2 of three.
struct CallWriterTest : ::testing::Test {
  CallWriterTest() {
    auto gpu = Gpu::open(*DriverSlot(TUTTI_FAKE_CUDA).get(), 0);
    failures = *KernelFailures::make(*gpu, shape.local, /*channels=*/4, shape.limit_ns);
    parts.assign(2, {.plan = device_plan(device::Body::two_shot)});
  }
  device::Call written(const CollectiveJob& job) const {
    device::Call call{};
    calls.write(call, calls.body_of(job, parts), job, parts, buffers);
    return call;
  }

  testing::CudaUser user{TUTTI_FAKE_CUDA};  // its GPU is current
  EngineShape shape{.ranks = 3, .local = {1, 2}, .limit_ns = 5};
  device::Link link[2] = {};
  LocalLinks links{.area = {.ranks = 3, .channels = 4, .slots = 4, .slot_bytes = 4096},
                   .message_area = {.ranks = 3, .channels = 2, .slots = 4, .slot_bytes = 1024},
                   .links = {&link[0], &link[1]}};
  KernelFailures failures;
  const CallWriter calls{shape, links, failures};
  std::vector<Part> parts;
  const std::vector<device::PeerBuffers> buffers{buffers_at(0x1000, 0x2000), buffers_at(0x3000, 0x4000),
                                                 buffers_at(0x5000, 0x6000)};
  const Plan plan{.access = Access::mapped, .ranks = 3};
};

TEST_F(CallWriterTest, SaysWhatAllCallsSayAndEachRanksPart) {
  parts[1].first_action = 2;
  parts[1].action_count = 3;
  const auto call = written({.plan = &plan, .count = 10});
  EXPECT_EQ(call.abort, failures.abort_word());
  EXPECT_EQ(call.limit_ns, 5u);
  EXPECT_EQ(call.slots, 4u);
  EXPECT_EQ(call.ranks, 3u);
  EXPECT_EQ(call.local_ranks, 2u);
  EXPECT_EQ(call.buffers[0].input, buffers[0].input);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(call.local[i].rank, i + 1);
    EXPECT_EQ(call.local[i].links, &link[i]);
    EXPECT_EQ(call.local[i].errors, failures.records(i));
    EXPECT_EQ(call.local[i].output, buffers[i + 1].output);
  }
  EXPECT_EQ(call.local[0].action_count, 7u);
  EXPECT_EQ(call.local[1].action_count, 3u);
  EXPECT_EQ(written({.plan = &plan, .count = 10, .limit_ns = 9}).limit_ns, 9u);
}

TEST_F(CallWriterTest, SmallCallsHaveFewerChannelsAndAllRanksSignThem) {
  EXPECT_EQ(written({.plan = &plan, .count = 10}).channels, 1u);
  const auto signature = [](std::uint32_t channels) { return std::uint64_t{100} + channels; };
  const auto large = written({.plan = &plan, .count = std::size_t{1} << 20, .signature = signature});
  EXPECT_EQ(large.channels, 4u);
  EXPECT_EQ(large.signature, 104u);
  EXPECT_EQ(written({.plan = &plan, .count = 0, .exchange = true}).channels, 4u);
}

TEST_F(CallWriterTest, OneKernelServesAllRanks) {
  EXPECT_EQ(calls.body_of({}, parts), device::Body::two_shot);
  EXPECT_EQ(calls.body_of({.passes_only = true}, parts), device::Body::run_plan);
  parts[1].plan = device_plan(device::Body::one_shot);
  EXPECT_EQ(calls.body_of({}, parts), device::Body::run_plan);
  shape.specialised = false;
  parts[0].plan = parts[1].plan;
  EXPECT_EQ(calls.body_of({}, parts), device::Body::one_shot);  // no plan is there for another kernel
  parts[0].plan = parts[1].plan = device_plan(device::Body::two_shot);
  EXPECT_EQ(calls.body_of({}, parts), device::Body::run_plan);
}

TEST_F(CallWriterTest, MessagesGoThroughTheirOwnLinks) {
  device::Link own{};
  links.message_links = &own;
  shape.areas.resize(3);
  const device::Message messages[5] = {};
  device::Call call{};
  calls.write(call, {.messages = messages});
  EXPECT_EQ(call.message_count, 5u);
  EXPECT_EQ(call.slot_bytes, 1024u);
  EXPECT_EQ(call.channels, 2u);
  EXPECT_EQ(call.synchronises, 1);
  EXPECT_EQ(call.local[0].links, &own);
}

// ---- Reductions ----

/// Rank 1 of three gets 100 elements of float32, and sends 30, 100 and 50.
struct ReductionTest : CallWriterTest {
  ReductionTest() {
    parts.resize(1);
    const std::uint64_t sent[] = {30, 100, 50};
    for (std::size_t peer = 0, from = 0; peer < 3; from += 4 * sent[peer++])
      transfers.push_back({.from = from, .to = 0, .sent = 4 * sent[peer], .received = 400});
    parts[0].transfers = transfers;
    parts[0].reduction = {
        .count = 100, .largest = 100, .own_at = 30, .input_elements = 180, .combine = {.plan = &plan}};
  }
  RankReduction rank(std::span<const device::PeerBuffers> of) const { return {job, parts[0], 0, 1, of}; }

  std::vector<device::Transfer> transfers;
  const CollectiveJob job{.type = DataType::float32, .op = ReduceOp::pre_mul_sum, .exchange = true};
};

TEST_F(ReductionTest, SlicesTogetherAreAllBlocks) {
  constexpr Rank local[] = {1};
  std::size_t counted = 0, sent = 0;
  for (std::size_t begin = 0; begin < 100; begin += 40) {
    const auto slice = ReductionSlice::of(job, parts, buffers, local, begin, 40);
    EXPECT_EQ(slice.parts[0].transfers[0].from, std::min<std::uint64_t>(4 * begin, 120));
    EXPECT_EQ(slice.buffers[1].output, buffers[1].output + 4 * begin);
    EXPECT_EQ(slice.buffers[0].output, buffers[0].output);
    EXPECT_EQ(slice.parts[0].reduction.own_at, 30 + begin);
    counted += slice.parts[0].reduction.count;
    for (const auto& transfer : slice.parts[0].transfers) sent += transfer.sent;
  }
  EXPECT_EQ(counted, 100u);
  EXPECT_EQ(sent, 4u * 180);
}

TEST_F(ReductionTest, BlocksArriveWhereTheyAreCombined) {
  std::vector<device::Transfer> written(3);
  std::byte scratch[2048];
  ASSERT_LE(reduction_bytes(job, parts[0].reduction, 3), sizeof scratch);
  for (const std::uintptr_t skew : {0u, 8u}) {  // of the rank's own block against its result: 8 and 0
    const std::vector<device::PeerBuffers> at{buffers[0], buffers_at(0x3000, 0x4000 + skew), buffers[2]};
    const auto own = rank(at);
    EXPECT_EQ(own.write_transfers(written.data()), written.data() + 3);
    std::vector<device::PeerBuffers> sources(3);
    const Pass pass = own.combining(scratch, sources);
    EXPECT_EQ(pass.op, ReduceOp::sum);
    EXPECT_EQ(pass.output, at[1].output);
    EXPECT_EQ(sources[0].input, scratch + written[0].to);
    EXPECT_EQ(sources[2].input, scratch + written[2].to);
    EXPECT_EQ(written[2].to % 16, skew);
    const bool in_place = skew == 8;
    EXPECT_EQ(written[1].received, in_place ? 0u : 400u);
    EXPECT_EQ(sources[1].input, in_place ? at[1].input + 120 : scratch + written[1].to);
    EXPECT_LE(pass.scratch + 400, scratch + reduction_bytes(job, parts[0].reduction, 3));
  }
}

TEST_F(ReductionTest, AScaledInputLiesBehindTheBlocks) {
  std::byte scratch[4096];
  EXPECT_FALSE(rank(buffers).scaling(scratch));
  parts[0].reduction.scale.plan = &plan;
  const auto scaling = rank(buffers).scaling(scratch);
  ASSERT_TRUE(scaling);
  EXPECT_EQ(scaling->count, 180u);
  EXPECT_EQ(scaling->input, buffers[1].input);
  std::vector<device::PeerBuffers> sources(3);
  EXPECT_GE(scaling->output, rank(buffers).combining(scratch, sources).scratch + 400);
  EXPECT_LE(scaling->output + 4 * 180, scratch + reduction_bytes(job, parts[0].reduction, 3));
}

}  // namespace
}  // namespace tutti::cuda
