// Collectives on device memory through the C API, on the fake driver: ranks as threads and in one thread share a GPU.
#include <memory>

#include "support/gpu_ranks.h"

namespace tutti::testing {
namespace {

class Gpu : public ::testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, Gpu, ::testing::Values(Layout::threads, Layout::one_thread),
                         [](const auto& test) { return name(test.param); });

TEST_P(Gpu, AllReduceIsQueuedAndRight) {
  launch_ranks(launch_group(3, GetParam()), [](Seat& seat) {
    auto& fake = fake_cuda(library);
    fake.set_kernel(sum_kernel);
    CudaUser user(library);
    const auto comms = seat.init();
    ASSERT_FALSE(comms.empty());
    int device = -2;
    EXPECT_TRUE(ok(tuttiCommDevice(comms[0], &device)));
    EXPECT_EQ(device, 0);
    for (const std::size_t count : {1u, 1000u, 300'000u}) {
      const auto ranks = make_ranks(user, seat, comms, count);
      all_reduce(ranks);  // the first one brings the plan to the GPU, and waits for that
      for (const OneRank& one : ranks) {
        user.synchronize(one.stream);
        user.write(one.output, std::vector<std::int32_t>(count, -1));
      }
      if (!seat.meet()) return;
      if (seat.here()[0] == 0) fake.hold();
      if (!seat.meet()) return;
      all_reduce(ranks);  // returns although the GPU does nothing
      if (!seat.meet()) return;
      if (seat.here()[0] == 0) fake.release();
      for (const OneRank& one : ranks) {
        user.synchronize(one.stream);
        EXPECT_EQ(user.get(one.output, count), sums(count, 3));
      }
    }
    destroy(comms);
  });
}

TEST_P(Gpu, ManyCallsInARowOnChangingData) {
  launch_ranks(launch_group(2, GetParam()), [](Seat& seat) {
    fake_cuda(library).set_kernel(sum_kernel);
    CudaUser user(library);
    const auto comms = seat.init();
    ASSERT_FALSE(comms.empty());
    constexpr std::size_t count = 500;
    const auto ranks = make_ranks(user, seat, comms, count);
    for (int round = 0; round < 50; ++round) {
      for (const OneRank& one : ranks) user.write(one.input, numbers(count, one.rank, round));
      if (!seat.meet()) return;
      all_reduce(ranks);
      for (const OneRank& one : ranks) {
        user.synchronize(one.stream);
        ASSERT_EQ(user.get(one.output, count), sums(count, 2, round));
      }
      if (!seat.meet()) return;
    }
    destroy(comms);
  });
}

/// The default stream, managed memory, in place, one stream for all ranks: as any program may have it.
TEST(GpuRanks, OneStreamForAllRanksInPlaceInManagedMemory) {
  launch_ranks(launch_group(4, Layout::one_thread), [](Seat& seat) {
    fake_cuda(library).set_kernel(sum_kernel);
    CudaUser user(library);
    const auto comms = seat.init();
    ASSERT_EQ(comms.size(), 4u);
    constexpr std::size_t count = 100;
    for (auto* const stream : {static_cast<cuda::Stream>(nullptr), user.stream(), user.stream(0)}) {
      std::vector<std::int32_t*> buffers;
      ASSERT_TRUE(ok(tuttiGroupStart()));
      for (std::size_t i = 0; i < comms.size(); ++i) {
        auto* const at = reinterpret_cast<std::int32_t*>(user.allocate_managed(count * sizeof(std::int32_t)));
        user.write(at, numbers(count, static_cast<int>(i)));
        ASSERT_TRUE(ok(tuttiAllReduce(at, at, count, tuttiInt32, tuttiSum, comms[i], tuttiCudaStream(stream))));
        buffers.push_back(at);
      }
      ASSERT_TRUE(ok(tuttiGroupEnd()));
      user.synchronize(stream);
      for (auto* const at : buffers) EXPECT_EQ(user.get(at, count), sums(count, 4));
    }
    destroy(comms);
  });
}

TEST_P(Gpu, HostMemoryGoesOnAsEver) {
  launch_ranks(launch_group(2, GetParam()), [](Seat& seat) {
    fake_cuda(library).set_kernel(sum_kernel);
    CudaUser user(library);
    const auto comms = seat.init();
    ASSERT_FALSE(comms.empty());
    const auto ranks = make_ranks(user, seat, comms, 64);
    std::vector<std::vector<std::int32_t>> host(comms.size(), numbers(64, 3));
    for (int round = 0; round < 3; ++round) {
      for (auto& buffer : host) buffer = numbers(64, 3);
      all_reduce(ranks);
      ASSERT_TRUE(ok(tuttiGroupStart()));
      for (std::size_t i = 0; i < comms.size(); ++i)
        ASSERT_TRUE(ok(tuttiAllReduce(host[i].data(), host[i].data(), 64, tuttiInt32, tuttiSum, comms[i], nullptr)));
      for (auto* const comm : comms) ASSERT_TRUE(ok(tuttiBarrier(comm, nullptr)));
      ASSERT_TRUE(ok(tuttiGroupEnd()));
      for (const auto& buffer : host) EXPECT_EQ(buffer[5], 2 * numbers(64, 3)[5]);
      for (const OneRank& one : ranks) {
        user.synchronize(one.stream);
        EXPECT_EQ(user.get(one.output, 64), sums(64, 2));
      }
    }
    destroy(comms);
  });
}

/// Calls by kernels and calls through the host, of one communicator in turns.
TEST_P(Gpu, BesideCallsThroughTheHost) {
  launch_ranks(launch_group(3, GetParam()), [](Seat& seat) {
    fake_cuda(library).set_kernel(sum_kernel);
    CudaUser user(library);
    const auto comms = seat.init();
    ASSERT_FALSE(comms.empty());
    constexpr std::size_t count = 300;
    const auto ranks = make_ranks(user, seat, comms, count);
    const std::size_t counts[] = {count, 0, 7};
    for (int round = 0; round < 5; ++round) {
      std::vector<std::int32_t*> gathered;
      all_reduce(ranks);
      ASSERT_TRUE(ok(tuttiGroupStart()));
      for (const OneRank& one : ranks) {
        gathered.push_back(user.put(std::vector<std::int32_t>(count + 7, -1)));
        ASSERT_TRUE(ok(tuttiAllGatherV(one.output, counts[one.rank], gathered.back(), counts, nullptr, tuttiInt32,
                                       one.comm, tuttiCudaStream(one.stream))));
      }
      ASSERT_TRUE(ok(tuttiGroupEnd()));
      all_reduce(ranks);
      auto expected = sums(count, 3);
      for (std::size_t i = 0; i < 7; ++i) expected.push_back(expected[i]);
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        user.synchronize(ranks[i].stream);
        EXPECT_EQ(user.get(gathered[i], count + 7), expected);
        EXPECT_EQ(user.get(ranks[i].output, count), sums(count, 3));
      }
    }
    destroy(comms);
  });
}

/// Everything a communicator takes of a GPU is given back with it.
TEST(GpuRanks, NothingIsLeftBehind) {
  launch_ranks(launch_group(2, Layout::one_thread), [](Seat& seat) {
    auto& fake = fake_cuda(library);
    fake.set_kernel(sum_kernel);
    CudaUser user(library);
    const auto before = fake.live();
    for (int i = 0; i < 3; ++i) {
      const auto comms = seat.init();
      ASSERT_EQ(comms.size(), 2u);
      {
        CudaUser in_between(library);
        all_reduce(make_ranks(in_between, seat, comms, 1000));
        EXPECT_GT(fake.live().device_bytes, before.device_bytes);
        destroy(comms);
      }
      user.make_current();
      EXPECT_EQ(fake.live(), before);
    }
  });
}

/// A program without a GPU never loads a driver, and nobody looks at its pointers.
TEST(GpuRanks, WithoutCudaNobodyAsksTheDriver) {
  launch_ranks({.ranks = 2, .layout = Layout::one_thread, .environment = launch_group(2, Layout::threads).environment},
               [](Seat& seat) {
                 const auto comms = seat.init();
                 ASSERT_EQ(comms.size(), 2u);
                 int device = 0;
                 EXPECT_TRUE(ok(tuttiCommDevice(comms[0], &device)));
                 EXPECT_EQ(device, -1);
                 EXPECT_EQ(::dlopen(library, RTLD_NOW | RTLD_NOLOAD), nullptr);
                 destroy(comms);
               });
}

/// CUDA is in use, but the config wants none of it.
TEST(GpuRanks, ConfigSaysHostMemoryAlone) {
  launch_ranks(launch_group(1, Layout::one_thread), [](Seat& seat) {
    CudaUser user(library);
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    config.device = -1;
    const auto comms = seat.init(&config);
    ASSERT_EQ(comms.size(), 1u);
    int device = 0;
    EXPECT_TRUE(ok(tuttiCommDevice(comms[0], &device)));
    EXPECT_EQ(device, -1);
    const int asked = fake_cuda(library).calls("cuPointerGetAttributes");
    int x = 5;
    EXPECT_TRUE(ok(tuttiAllReduce(&x, &x, 1, tuttiInt32, tuttiSum, comms[0], nullptr)));
    EXPECT_EQ(fake_cuda(library).calls("cuPointerGetAttributes"), asked);
    destroy(comms);
  });
}

/// A call without elements is nothing on a rank with a GPU, as its kind of memory is unknown: so it is on the others,
/// or later calls would meet different ones.
TEST(GpuRanks, CallsWithoutElementsWhereSomeRanksHaveNoGpu) {
  for (const bool on_hosts : {false, true}) {
    Team team = launch_group(2, Layout::processes);
    if (on_hosts) team.environment.emplace_back("TUTTI_TRANSPORT=socket");
    launch_ranks(team, [](Seat& seat) {
      CudaUser user(library);
      tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
      if (seat.rank() == 1) config.device = -1;
      auto* const comm = seat.init_one(&config);
      ASSERT_NE(comm, nullptr);
      for (int call = 0; call < 3; ++call) {
        ASSERT_TRUE(ok(tuttiAllReduce(nullptr, nullptr, 0, tuttiInt32, tuttiSum, comm, nullptr)));
        ASSERT_TRUE(ok(tuttiAllGather(nullptr, nullptr, 0, tuttiInt32, comm, nullptr)));
        int x = 5 + seat.rank();
        ASSERT_TRUE(ok(tuttiAllReduce(&x, &x, 1, tuttiInt32, tuttiSum, comm, nullptr)));
        EXPECT_EQ(x, 11);
        ASSERT_TRUE(ok(tuttiBarrier(comm, nullptr)));
      }
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
  }
}

TEST(GpuRanks, MemoryOfTuttis) {
  launch_ranks(launch_group(2, Layout::one_thread), [](Seat& seat) {
    auto& fake = fake_cuda(library);
    fake.set_kernel(sum_kernel);
    CudaUser user(library);
    const auto before = fake.live();
    const auto comms = seat.init();
    ASSERT_EQ(comms.size(), 2u);
    std::vector<void*> buffers(2);
    ASSERT_TRUE(ok(tuttiGroupStart()));
    for (std::size_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(ok(tuttiMemAllocDevice(&buffers[i], 400, 0)));
      EXPECT_EQ(user.get(static_cast<std::int32_t*>(buffers[i]), 100), std::vector<std::int32_t>(100, 0));
      user.write(buffers[i], numbers(100, static_cast<int>(i)));
      ASSERT_TRUE(ok(tuttiAllReduce(buffers[i], buffers[i], 100, tuttiInt32, tuttiSum, comms[i], nullptr)));
    }
    ASSERT_TRUE(ok(tuttiGroupEnd()));
    user.synchronize(nullptr);
    for (void* const buffer : buffers) {
      EXPECT_EQ(user.get(static_cast<std::int32_t*>(buffer), 100), sums(100, 2));
      EXPECT_TRUE(ok(tuttiMemFree(buffer)));
      EXPECT_TRUE(fails(tuttiMemFree(buffer), tuttiInvalidArgument, ""));
    }
    void* none = nullptr;
    EXPECT_TRUE(fails(tuttiMemAllocDevice(&none, 400, 3), tuttiInvalidArgument, "GPU 3 is none"));
    fake.fail("cuMemAlloc", cuda::status::out_of_memory);
    EXPECT_TRUE(fails(tuttiMemAllocDevice(&none, 400, 0), tuttiUnhandledCudaError, "allocate 400 bytes of GPU 0"));
    destroy(comms);
    EXPECT_EQ(fake.live(), before);
  });
}

/// An explicit list loads the driver, and communicators made from one take its GPUs.
TEST(GpuRanks, ListsOfDevicesAndCommunicatorsMadeFromOthers) {
  launch_ranks(launch_group(3, Layout::one_thread, {"TUTTI_GPU_P2P=host"}), [](Seat& seat) {
    (void)seat;
    fake_cuda(library).set_devices(2);
    std::vector<tuttiComm_t> comms(3);
    const int devices[] = {1, 1, 0};
    ASSERT_TRUE(ok(tuttiCommInitAll(comms.data(), 3, devices)));
    std::vector<tuttiComm_t> halves(3);
    ASSERT_TRUE(ok(tuttiGroupStart()));
    for (int rank = 0; rank < 3; ++rank)
      ASSERT_TRUE(ok(tuttiCommSplit(comms[rank], devices[rank], 0, &halves[rank], nullptr)));
    ASSERT_TRUE(ok(tuttiGroupEnd()));
    for (int rank = 0; rank < 3; ++rank)
      for (auto* const comm : {comms[rank], halves[rank]}) {
        int device = -1;
        EXPECT_TRUE(ok(tuttiCommDevice(comm, &device)));
        EXPECT_EQ(device, devices[rank]);
      }
    fake_cuda(library).set_kernel(sum_kernel);
    CudaUser user(library, 1);
    const std::vector<OneRank> ranks{{user, halves[0], 0, 10}, {user, halves[1], 1, 10}};
    all_reduce(ranks);
    user.synchronize(ranks[1].stream);
    EXPECT_EQ(user.get(ranks[1].output, 10), sums(10, 2));
    // Where some of them share a GPU, and others do not, it goes through the host.
    const int launched = fake_cuda(library).calls("cuLaunchCooperativeKernel");
    ASSERT_TRUE(ok(tuttiGroupStart()));
    for (int rank : {0, 1}) {
      ASSERT_TRUE(ok(tuttiAllReduce(ranks[rank].input, ranks[rank].output, 10, tuttiInt32, tuttiSum, comms[rank],
                                    tuttiCudaStream(ranks[rank].stream))));
    }
    CudaUser other(library, 0);
    const OneRank third(other, comms[2], 2, 10);
    ASSERT_TRUE(ok(third.all_reduce()));
    ASSERT_TRUE(ok(tuttiGroupEnd()));
    other.synchronize(third.stream);
    EXPECT_EQ(other.get(third.output, 10), sums(10, 3));
    user.make_current();
    user.synchronize(ranks[0].stream);
    EXPECT_EQ(user.get(ranks[0].output, 10), sums(10, 3));
    EXPECT_EQ(fake_cuda(library).calls("cuLaunchCooperativeKernel"), launched);
    destroy(halves);
    destroy(comms);
  });
}

/// Each has kernels of its own, which reach the others' memory by its address.
TEST(GpuRanks, AGpuForEachRankOfAProcess) {
  launch_ranks(launch_group(3, Layout::one_thread, {"TUTTI_GPU_P2P=host"}), [](Seat&) {
    auto& fake = fake_cuda(library);
    fake.set_devices(3);
    constexpr std::size_t count = 20'000;  // less goes through the host
    std::vector<tuttiComm_t> comms(3);
    const int devices[] = {2, 0, 1};
    ASSERT_TRUE(ok(tuttiCommInitAll(comms.data(), 3, devices)));
    std::vector<std::unique_ptr<CudaUser>> users;
    std::vector<OneRank> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      users.push_back(std::make_unique<CudaUser>(library, devices[rank]));
      ranks.emplace_back(*users.back(), comms[rank], rank, count);
    }
    const int before = launches();
    for (int round = 0; round < 3; ++round) {
      for (const OneRank& one : ranks) {
        one.user->make_current();
        one.user->write(one.input, numbers(count, one.rank, round));
      }
      all_reduce(ranks);
      for (const OneRank& one : ranks) {
        one.user->make_current();
        one.user->synchronize(one.stream);
        EXPECT_EQ(one.user->get(one.output, count), sums(count, 3, round));
      }
    }
    EXPECT_EQ(launches() - before, 9);
    EXPECT_EQ(fake.calls("cuIpcOpenMemHandle"), 0);
    destroy(comms);
  });
}

}  // namespace
}  // namespace tutti::testing
