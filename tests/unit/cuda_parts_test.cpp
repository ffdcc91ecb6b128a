// What an engine is made of, each part alone: failures, uploads, memory, order and links, on the fake driver.
#include <gtest/gtest.h>

#include "cuda/kernel_failures.h"
#include "cuda/launch_memory.h"
#include "cuda/launch_sequence.h"
#include "cuda/local_links.h"
#include "cuda/plan_uploads.h"
#include "exec/device_program.h"
#include "support/cuda_user.h"

namespace tutti::cuda {
namespace {

constexpr const char* library = TUTTI_FAKE_CUDA;

class CudaParts : public ::testing::Test {
 protected:
  void SetUp() override {
    DriverSlot slot(library);
    auto driver = slot.get();
    ASSERT_TRUE(driver) << driver.error().text();
    auto gpu = Gpu::open(*driver, 0);
    ASSERT_TRUE(gpu) << gpu.error().text();
    gpu_ = *gpu;
  }

  template <class T>
  static T made(Result<T> result) {
    EXPECT_TRUE(result) << result.error().text();
    return *std::move(result);
  }
  static int calls(const char* function) { return testing::fake_cuda(library).calls(function); }
  static int allocations() { return testing::fake_cuda(library).live().allocations; }

  testing::CudaUser user_{library};  // its GPU is current
  SharedGpu gpu_;
};

// ---- Failures ----

TEST_F(CudaParts, FailuresAreToldOnceAKernelHasGivenUp) {
  auto failures = made(KernelFailures::make(gpu_, {3, 5}, /*channels=*/2, /*limit_ns=*/50'000'000));
  failures.records(1)[1] = {.state = device::ErrorRecord::aborted, .peer = 1, .step = 4};
  EXPECT_FALSE(failures.trouble());
  failures.abort();
  EXPECT_EQ(*failures.abort_word(), device::AbortWord::all_ends);
  auto trouble = failures.trouble();
  ASSERT_TRUE(trouble);
  EXPECT_EQ(trouble->code, Code::remote);
  EXPECT_EQ(trouble->peer, 1);
  EXPECT_NE(trouble->what.find("the kernel of rank 5 on GPU 0 gave up while it waited for rank 1 on channel 1 at step "
                               "4: the communicator was aborted"),
            std::string::npos)
      << trouble->what;
}

TEST_F(CudaParts, TheRecordThatSaysMostIsTold) {
  auto failures = made(KernelFailures::make(gpu_, {0, 1}, /*channels=*/1, /*limit_ns=*/50'000'000));
  failures.abort();
  failures.records(0)[0] = {.state = device::ErrorRecord::late, .peer = 2};
  EXPECT_EQ(failures.trouble()->code, Code::timeout);
  EXPECT_FALSE(failures.difference());
  failures.records(1)[0] = {.state = device::ErrorRecord::counts, .peer = 2, .own = 8, .theirs = 16};
  EXPECT_NE(failures.trouble()->what.find("rank 2 sends 16 bytes to rank 1, which expects 8"), std::string::npos);
  failures.records(0)[0] = {.state = device::ErrorRecord::differs, .peer = 2, .own = 7, .theirs = 9};
  const auto difference = failures.difference();
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->rank, 0);
  EXPECT_EQ(difference->peer, 2);
  EXPECT_EQ(difference->own, 7u);
  EXPECT_EQ(difference->theirs, 9u);
}

TEST_F(CudaParts, ThatSomeAreGoneDoesNotTakeBackAnAbort) {
  auto failures = made(KernelFailures::make(gpu_, {0}, /*channels=*/1, /*limit_ns=*/0));
  failures.say_some_gone();
  EXPECT_EQ(*failures.abort_word(), device::AbortWord::some_gone);
  EXPECT_FALSE(failures.trouble());
  failures.abort();
  failures.say_some_gone();
  EXPECT_EQ(*failures.abort_word(), device::AbortWord::all_ends);
}

// ---- Uploads ----

Plan plan_of(std::size_t actions) {
  Plan plan{.access = Access::mapped, .ranks = 2};
  for (std::uint32_t i = 0; i < actions; ++i)
    plan.actions.push_back({.verb = Verb::copy, .sources = 1, .destinations = 1, .first = 0, .step = i});
  plan.places = {{.where = Where::input}, {.where = Where::output}};
  return plan;
}

TEST_F(CudaParts, AnUploadedPlanIsWhatKernelsTake) {
  auto uploads = made(PlanUploads::make(gpu_, {}));
  const Plan plan = plan_of(3);
  const auto on_gpu = made(uploads.upload(plan));
  ASSERT_EQ(on_gpu->action_count, 3u);
  ASSERT_EQ(on_gpu->place_count, 2u);
  EXPECT_EQ(user_.get(on_gpu->actions, 3), device_actions(plan));
  EXPECT_EQ(user_.get(on_gpu->places, 2), plan.places);
  const int before = calls("cuStreamWaitEvent");
  ASSERT_TRUE(uploads.follow(user_.stream(), /*captured=*/false));
  EXPECT_EQ(calls("cuStreamWaitEvent"), before);  // it has been waited for
}

TEST_F(CudaParts, UploadsThatDoNotWaitAreFollowed) {
  auto uploads = made(PlanUploads::make(gpu_, {.frees_late = true}));
  const int before = allocations(), waits = calls("cuStreamWaitEvent");
  auto* const stream = user_.stream();
  auto& fake = testing::fake_cuda(library);
  fake.hold();
  const Plan plans[] = {plan_of(3), plan_of(5)};
  const auto first = made(uploads.upload(plans[0])), second = made(uploads.upload(plans[1]));
  ASSERT_TRUE(uploads.follow(stream, /*captured=*/false));
  EXPECT_EQ(calls("cuStreamWaitEvent"), waits + 1);
  EXPECT_EQ(allocations(), before);
  fake.release();
  user_.synchronize(stream);
  EXPECT_EQ(user_.get(first->actions, 3), device_actions(plans[0]));
  EXPECT_EQ(user_.get(second->actions, 5), device_actions(plans[1]));
  ASSERT_TRUE(uploads.follow(stream, /*captured=*/true));
  ASSERT_TRUE(uploads.follow(stream, /*captured=*/false));
  EXPECT_EQ(calls("cuStreamWaitEvent"), waits + 1);
}

// ---- Memory ----

TEST_F(CudaParts, BuffersGrowAndTheOldOnesStayWhileKernelsRun) {
  auto memory = made(LaunchMemory::make(gpu_, /*frees_late=*/false, /*tables=*/0));
  const int before = allocations();
  ASSERT_TRUE(memory.make_buffers(100, 0, 2));
  EXPECT_EQ(memory.scratch(1) - memory.scratch(0), 256);
  EXPECT_EQ(memory.staging(0), nullptr);
  EXPECT_EQ(allocations(), before + 1);
  ASSERT_TRUE(memory.make_buffers(0, 300, 1));
  EXPECT_EQ(memory.scratch(0), nullptr);
  EXPECT_NE(memory.staging(0), nullptr);
  ASSERT_TRUE(memory.make_buffers(1000, 0, 1));
  EXPECT_EQ(allocations(), before + 3);  // the smaller one is still there
  const std::byte* const first = memory.scratch(0);
  ASSERT_TRUE(memory.make_buffers(900, 0, 1));
  EXPECT_EQ(memory.scratch(0), first);
}

TEST_F(CudaParts, ATableIsTakenAgainWhenItsKernelHasEnded) {
  auto memory = made(LaunchMemory::make(gpu_, /*frees_late=*/false, /*tables=*/1));
  const int before = allocations();
  auto* const stream = user_.stream();
  auto table = made(memory.take_table(100, /*captured=*/false));
  const auto first = table.memory;
  EXPECT_EQ(allocations(), before);
  testing::fake_cuda(library).hold();
  ASSERT_TRUE(memory.put_back(std::move(table), stream));
  EXPECT_NE(made(memory.take_table(100, /*captured=*/false)).memory, first);
  testing::fake_cuda(library).release();
  user_.synchronize(stream);
  const auto of_graph = made(memory.take_table(100, /*captured=*/true));
  EXPECT_NE(of_graph.memory, first);
  EXPECT_EQ(of_graph.ended.get(), nullptr);
  EXPECT_EQ(made(memory.take_table(100, /*captured=*/false)).memory, first);
}

TEST_F(CudaParts, ATableWhoseEventFailedIsNotTakenAgain) {
  auto memory = made(LaunchMemory::make(gpu_, /*frees_late=*/false, /*tables=*/1));
  auto table = made(memory.take_table(100, /*captured=*/false));
  const auto first = table.memory;
  testing::fake_cuda(library).fail("cuEventRecord", status::invalid_value);
  EXPECT_FALSE(memory.put_back(std::move(table), user_.stream()));
  testing::fake_cuda(library).forgive();
  EXPECT_NE(made(memory.take_table(100, /*captured=*/false)).memory, first);
}

TEST_F(CudaParts, PlansAreKeptUntilManyAreAndKernelsHaveEnded) {
  constexpr int many = 65;
  for (const bool frees_late : {false, true}) {
    auto memory = made(LaunchMemory::make(gpu_, frees_late, /*tables=*/0));
    const auto ended = made(OwnEvent::create(gpu_));
    std::vector<std::weak_ptr<const DevicePlan>> plans;
    for (int i = 0; i <= many; ++i) {
      const Part part{.plan = std::make_shared<const DevicePlan>()};
      plans.push_back(part.plan);
      memory.keep_plans({&part, 1}, ended.get());
      memory.keep_plans({&part, 1}, ended.get());  // once is enough
    }
    EXPECT_EQ(plans.front().expired(), !frees_late);
    EXPECT_FALSE(plans.back().expired());
  }
}

// ---- Order ----

TEST_F(CudaParts, ALaunchFollowsTheOneBeforeAndAllItsStreams) {
  auto sequence = made(LaunchSequence::make(gpu_, /*streams=*/1, nullptr));
  Stream const a = user_.stream(), b = user_.stream();
  const auto waits_of = [&](std::vector<Stream> streams) {
    const int before = calls("cuStreamWaitEvent");
    const auto turn = sequence.enter(streams, {});
    EXPECT_TRUE(turn);
    EXPECT_TRUE(sequence.leave(streams, {}));
    return calls("cuStreamWaitEvent") - before;
  };
  EXPECT_EQ(waits_of({a}), 0);
  EXPECT_EQ(waits_of({a}), 0);  // a stream is in order by itself
  EXPECT_EQ(waits_of({b}), 1);
  EXPECT_EQ(waits_of({b, a}), 2);  // before the launch and behind it
  EXPECT_FALSE(sequence.has_captured());
  testing::fake_cuda(library).hold();
  EXPECT_EQ(waits_of({a}), 1);
  EXPECT_EQ(gpu_->api().event_query(sequence.ended()), status::not_ready);
  testing::fake_cuda(library).release();
}

TEST_F(CudaParts, LaunchesOfSeveralEnginesTakeTurns) {
  const auto order = made(LaunchOrder::make(gpu_));
  auto first = made(LaunchSequence::make(gpu_, 1, order)), second = made(LaunchSequence::make(gpu_, 1, order));
  const std::vector<Stream> a{user_.stream()}, b{user_.stream()};
  {
    const auto turn = first.enter(a, {});
    ASSERT_TRUE(turn);
    EXPECT_TRUE(turn->owns_lock());
    ASSERT_TRUE(first.leave(a, {}));
  }
  const int before = calls("cuStreamWaitEvent");
  const auto turn = second.enter(b, {});
  ASSERT_TRUE(turn);
  EXPECT_EQ(calls("cuStreamWaitEvent"), before + 1);
  ASSERT_TRUE(second.leave(b, {}));
}

TEST_F(CudaParts, AGraphKeepsWhatItIsGivenUntilItEnds) {
  auto sequence = made(LaunchSequence::make(gpu_, 1, made(LaunchOrder::make(gpu_))));
  const auto deferred = std::make_shared<DeferredReleases>();
  const std::vector<Stream> both{user_.stream(), user_.stream()};
  user_.begin_capture(both[0]);
  const auto mixed = Capture::of(*gpu_, both);
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, Code::invalid_usage);
  const std::vector<Stream> one{both[0]};
  const auto capture = made(Capture::of(*gpu_, one));
  ASSERT_NE(capture.graph, nullptr);
  const auto turn = sequence.enter(one, capture);
  ASSERT_TRUE(turn);
  EXPECT_FALSE(turn->owns_lock());  // a graph is launched when the program says
  auto kept = std::make_shared<const int>();
  const std::weak_ptr<const int> watched = kept;
  ASSERT_TRUE(capture.retain(*gpu_, deferred, {std::move(kept)}));
  ASSERT_TRUE(sequence.leave(one, capture));
  EXPECT_TRUE(sequence.has_captured());
  auto* const graph = user_.end_capture(both[0]);
  deferred->empty();
  EXPECT_FALSE(watched.expired());
  user_.destroy(graph);
  deferred->empty();
  EXPECT_TRUE(watched.expired());
}

// ---- Links ----

TEST_F(CudaParts, LinksLeadToThePeersArea) {
  constexpr std::uint32_t channels = 2;
  auto* const stream = user_.stream();
  const auto links = made(LocalLinks::make(gpu_, {.ranks = 2, .local = {0, 1}}, channels, stream));
  ASSERT_EQ(links.links.size(), 2u);
  const std::vector<device::Link> of[] = {user_.get(links.links[0], channels * 2),
                                          user_.get(links.links[1], channels * 2)};
  for (std::uint32_t channel = 0; channel < channels; ++channel) {
    const device::Link& there = of[0][links.area.index(channel, 1)];
    EXPECT_NE(there.flag_there, nullptr);
    EXPECT_EQ(there.flag_there, of[1][links.area.index(channel, 0)].flag_here);
    EXPECT_EQ(of[0][links.area.index(channel, 0)].flag_there, nullptr);  // to itself
  }
  EXPECT_EQ(links.message_area.slots, 0u);
  EXPECT_EQ(links.message_links, nullptr);
}

TEST_F(CudaParts, AnOnlyRankHasLinksForMessagesToThoseWhoseAreasAreKnown) {
  std::byte areas[3];
  const EngineShape shape{.ranks = 3, .local = {1}, .areas = {&areas[0], &areas[1], nullptr}};
  const auto links = made(LocalLinks::make(gpu_, shape, /*channels=*/1, user_.stream()));
  const auto messages = user_.get(links.message_links, 3);
  EXPECT_NE(messages[0].slots_there, nullptr);
  EXPECT_NE(messages[0].slots_there, user_.get(links.links[0], 3)[0].slots_there);
  EXPECT_EQ(messages[2].slots_there, nullptr);
  EXPECT_NE(links.message_area.slots, 0u);
}

}  // namespace
}  // namespace tutti::cuda
