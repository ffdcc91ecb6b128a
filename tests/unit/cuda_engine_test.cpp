// Kernels that wait in vain, launched without a communicator around them: a peer's plan is empty here, so that it never
// comes. With TUTTI_TEST_CUDA on a GPU, else the same bodies on threads of the CPU.
#include "cuda/engine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "algorithms/algorithm.h"
#include "cuda/driver.h"
#include "kernels/image.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "support/cuda_user.h"
#include "support/gpu_ranks.h"
#include "support/host_kernels.h"

namespace tutti::testing {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::size_t count = 1000;

/// An engine of two ranks, with memory for a call of float32.
class CudaEngine : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_cuda(library).set_kernel([](const std::string& name, const std::byte* argument, unsigned, unsigned) {
      device::Call call;
      std::memcpy(&call, argument, sizeof call);
      EXPECT_TRUE(launch_by_name(name, call));
      return 0;
    });
  }

  /// What graphs kept is let go of by whoever may call the driver next.
  void TearDown() override { graveyard_->empty(); }

  void open(std::int64_t limit_ns) {
    cuda::DriverSlot slot(library);
    auto driver = slot.get();
    ASSERT_TRUE(driver) << driver.error().text();
    auto gpu = cuda::Gpu::open(*driver, 0);
    ASSERT_TRUE(gpu) << gpu.error().text();
    static const std::byte any_image[1] = {};
    auto kernels = cuda::Kernels::load(*gpu, [](device::Body body, DataType type) {
      return real_library != nullptr ? kernel_image(body, type) : std::span<const std::byte>(any_image);
    });
    ASSERT_TRUE(kernels) << kernels.error().text();
    auto engine = cuda::Engine::open(
        *gpu, *kernels, {.ranks = 2, .local = {0, 1}, .channels_max = 2, .limit_ns = limit_ns}, graveyard_);
    ASSERT_TRUE(engine) << engine.error().text();
    engine_ = *engine;
    for (int rank = 0; rank < 2; ++rank) {
      inputs_.push_back(user_.put(std::vector<float>(count, 1.0F + static_cast<float>(rank))));
      outputs_.push_back(user_.put(std::vector<float>(count, -1.0F)));
    }
  }

  static Plan plan_of(Rank rank) {
    const Schedule schedule = member(algorithm::two_shot).build({.collective = Collective::all_reduce, .ranks = 2});
    return fuse(lower(schedule, rank, Access::mapped), 2);
  }

  /// Queues an all-reduce by these plans, which nobody holds afterwards but whoever needs them.
  void launch(const Plan& first, const Plan& second) {
    std::vector<cuda::Part> parts;
    for (const Plan* const plan : {&first, &second}) {
      auto uploaded = engine_->upload(*plan);
      ASSERT_TRUE(uploaded) << uploaded.error().text();
      parts.push_back({.stream = stream_, .plan = *std::move(uploaded)});
    }
    std::vector<device::PeerBuffers> buffers;
    for (std::size_t rank = 0; rank < 2; ++rank)
      buffers.push_back({.input = reinterpret_cast<const std::byte*>(inputs_[rank]),
                         .output = reinterpret_cast<std::byte*>(outputs_[rank]),
                         .scalar = 0});
    const cuda::CollectiveJob job{.plan = &first, .type = DataType::float32, .op = ReduceOp::sum, .count = count};
    const auto launched = engine_->launch(job, parts, buffers);
    ASSERT_TRUE(launched) << launched.error().text();
  }

  /// Rank 0's all-reduce, where rank 1 does nothing.
  void launch_alone() {
    Plan nothing = plan_of(1);
    nothing.actions.clear();
    launch(plan_of(0), nothing);
  }

  void expect_ends_within(seconds limit) const {
    const auto deadline = steady_clock::now() + limit;
    for (;;) {
      auto idle = engine_->idle();
      ASSERT_TRUE(idle) << idle.error().text();
      if (*idle) return;
      ASSERT_LT(steady_clock::now(), deadline) << "the kernel goes on";
      std::this_thread::yield();
    }
  }

  CudaUser user_{library};
  cuda::Stream stream_ = user_.stream();
  std::shared_ptr<cuda::DeferredReleases> graveyard_ = std::make_shared<cuda::DeferredReleases>();
  std::shared_ptr<cuda::Engine> engine_;
  std::vector<float*> inputs_;
  std::vector<float*> outputs_;
};

TEST_F(CudaEngine, EndsWhenItIsAborted) {
  open(0);
  launch_alone();
  const auto idle = engine_->idle();
  ASSERT_TRUE(idle);
  EXPECT_FALSE(*idle);
  EXPECT_FALSE(engine_->failures().trouble());
  engine_->failures().abort();
  // A second on a GPU; threads of a busy processor may take longer.
  expect_ends_within(seconds(real_library != nullptr ? 1 : 60));
  const auto trouble = engine_->failures().trouble();
  ASSERT_TRUE(trouble);
  EXPECT_EQ(trouble->code, Code::remote);
  EXPECT_NE(trouble->text().find("rank 0 on GPU 0 gave up while it waited for rank 1 on channel 0 at step "),
            std::string::npos)
      << trouble->text();
}

TEST_F(CudaEngine, EndsAtItsLimit) {
  open(50'000'000);
  launch_alone();
  expect_ends_within(seconds(60));
  const auto trouble = engine_->failures().trouble();
  ASSERT_TRUE(trouble);
  EXPECT_EQ(trouble->code, Code::timeout);
  EXPECT_NE(trouble->text().find("nothing came for 50 ms (TUTTI_TIMEOUT_MS)"), std::string::npos) << trouble->text();
}

/// A cache of plans lets go of them, and communicators end, while graphs still run them.
TEST_F(CudaEngine, AGraphKeepsPlansThatNobodyElseHas) {
  open(0);
  user_.begin_capture(stream_);
  launch(plan_of(0), plan_of(1));
  auto* const graph = user_.end_capture(stream_);
  ASSERT_NE(graph, nullptr);
  engine_.reset();
  // What was freed would be somebody else's now.
  for (int i = 0; i < 50; ++i) user_.put(std::vector<std::uint8_t>(4096, 0xee));
  auto* const exec = user_.instantiate(graph);
  for (int i = 0; i < 3; ++i) {
    user_.write(inputs_[0], std::vector<float>(count, static_cast<float>(i)));
    user_.replay(exec, stream_);
    user_.synchronize(stream_);
    for (const float* const output : outputs_)
      EXPECT_EQ(user_.get(output, count), std::vector<float>(count, 2.0F + static_cast<float>(i)));
  }
  user_.destroy(exec);
  user_.destroy(graph);
}

}  // namespace
}  // namespace tutti::testing
