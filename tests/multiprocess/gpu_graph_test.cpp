// Captured calls: replayed on changing data, and after everything they were made of is gone.
#include "support/gpu_ranks.h"

namespace tutti::testing {
namespace {

constexpr std::size_t count = 300;

/// All ranks' calls in one capture: the streams of the others are forked from the first one's, and joined again.
cuda::Graph capture(CudaUser& user, const std::vector<OneRank>& ranks) {
  cuda::Stream const first = ranks[0].stream;
  user.begin_capture(first);
  for (std::size_t i = 1; i < ranks.size(); ++i) user.follow(ranks[i].stream, first);
  all_reduce(ranks);
  for (std::size_t i = 1; i < ranks.size(); ++i) user.follow(first, ranks[i].stream);
  return user.end_capture(first);
}

void replay(CudaUser& user, cuda::GraphExec exec, const std::vector<OneRank>& ranks, int times) {
  for (int round = 0; round < times; ++round) {
    for (const OneRank& one : ranks) user.write(one.input, numbers(count, one.rank, round));
    user.replay(exec, ranks[0].stream);
    user.synchronize(ranks[0].stream);
    for (const OneRank& one : ranks)
      ASSERT_EQ(user.get(one.output, count), sums(count, static_cast<int>(ranks.size()), round)) << round;
  }
}

void with_ranks(int number, const std::function<void(CudaUser&, Seat&, const std::vector<tuttiComm_t>&)>& body) {
  launch_ranks(launch_group(number, Layout::one_thread), [&](Seat& seat) {
    auto& fake = fake_cuda(library);
    fake.set_kernel(sum_kernel);
    CudaUser user(library);
    const auto before = fake.live();
    const auto comms = seat.init();
    ASSERT_FALSE(comms.empty());
    {
      CudaUser own(library);
      body(own, seat, comms);
    }
    user.make_current();
    EXPECT_EQ(fake.live(), before);
  });
}

TEST(GpuGraph, ThousandReplaysOnChangingData) {
  with_ranks(2, [](CudaUser& user, Seat& seat, const std::vector<tuttiComm_t>& comms) {
    const auto ranks = make_ranks(user, seat, comms, count);
    cuda::Graph const graph = capture(user, ranks);
    ASSERT_NE(graph, nullptr);
    EXPECT_EQ(user.get(ranks[0].output, 1)[0], -1);  // nothing ran
    cuda::GraphExec const exec = user.instantiate(graph);
    replay(user, exec, ranks, 1000);
    all_reduce(ranks);  // and calls go on
    user.synchronize(ranks[1].stream);
    user.destroy(exec);
    user.destroy(graph);
    destroy(comms);
  });
}

/// The first call ever, captured: kernels and memory come into being meanwhile.
TEST(GpuGraph, AnyOrderOfDestruction) {
  for (const char* const order : {"cge", "ceg", "gce", "gec", "ecg", "egc"})
    with_ranks(3, [order](CudaUser& user, Seat& seat, const std::vector<tuttiComm_t>& comms) {
      const auto ranks = make_ranks(user, seat, comms, count);
      cuda::Graph const graph = capture(user, ranks);
      ASSERT_NE(graph, nullptr);
      cuda::GraphExec const exec = user.instantiate(graph);
      bool lives = true;
      for (const char* next = order; *next != 0; ++next) {
        if (lives) replay(user, exec, ranks, 2);
        switch (*next) {
          case 'c': destroy(comms); break;
          case 'g': user.destroy(graph); break;
          default: user.destroy(exec); lives = false;
        }
      }
      // What graphs kept is given back by whoever is next.
      tuttiComm_t last = nullptr;
      ASSERT_TRUE(ok(tuttiCommInitAll(&last, 1, nullptr)));
      EXPECT_TRUE(ok(tuttiCommDestroy(last)));
    });
}

TEST(GpuGraph, SomeStreamsCapturedAndOthersNot) {
  with_ranks(2, [](CudaUser& user, Seat& seat, const std::vector<tuttiComm_t>& comms) {
    const auto ranks = make_ranks(user, seat, comms, count);
    user.begin_capture(ranks[0].stream);
    ASSERT_TRUE(ok(tuttiGroupStart()));
    for (const OneRank& one : ranks) ASSERT_TRUE(ok(one.all_reduce()));
    EXPECT_TRUE(fails(tuttiGroupEnd(), tuttiInvalidUsage, "captured together or not at all"));
    user.destroy(user.end_capture(ranks[0].stream));
    destroy(comms);
  });
}

TEST(GpuGraph, TwoCapturesAtOnce) {
  with_ranks(2, [](CudaUser& user, Seat& seat, const std::vector<tuttiComm_t>& comms) {
    const auto ranks = make_ranks(user, seat, comms, count);
    for (const OneRank& one : ranks) user.begin_capture(one.stream);
    ASSERT_TRUE(ok(tuttiGroupStart()));
    for (const OneRank& one : ranks) ASSERT_TRUE(ok(one.all_reduce()));
    EXPECT_TRUE(fails(tuttiGroupEnd(), tuttiInvalidUsage, "fork their streams from one capture"));
    for (const OneRank& one : ranks) user.destroy(user.end_capture(one.stream));
    destroy(comms);
  });
}

}  // namespace
}  // namespace tutti::testing
