// What is refused on device memory, what goes wrong there, and how it is said.
#include <thread>

#include "support/gpu_ranks.h"

namespace tutti::testing {
namespace {

/// All ranks in this thread, on GPU 0 of two.
void in_one_thread(int ranks, const std::function<void(CudaUser&, const std::vector<OneRank>&)>& body,
                   const std::vector<std::string>& environment = {}) {
  launch_ranks(launch_group(ranks, Layout::one_thread, environment), [&](Seat& seat) {
    fake_cuda(library).set_devices(2);
    fake_cuda(library).set_kernel(sum_kernel);
    CudaUser user(library);
    const auto comms = seat.init();
    ASSERT_FALSE(comms.empty());
    body(user, make_ranks(user, seat, comms, 100));
    destroy(comms);
  });
}

tuttiResult_t group_end_of(const std::vector<OneRank>& ranks) {
  EXPECT_TRUE(ok(tuttiGroupStart()));
  for (const OneRank& one : ranks) EXPECT_TRUE(ok(one.all_reduce()));
  return tuttiGroupEnd();
}

tuttiResult_t async_error(tuttiComm_t comm) {
  tuttiResult_t result = tuttiNumResults;
  EXPECT_TRUE(ok(tuttiCommGetAsyncError(comm, &result)));
  return result;
}

/// A refusal changes nothing: the ranks go on.
TEST(GpuErrors, WrongMemoryAndWrongStreams) {
  in_one_thread(2, [](CudaUser& user, const std::vector<OneRank>& ranks) {
    const OneRank& one = ranks[0];
    std::vector<std::int32_t> host(100, 1);
    CudaUser there(library, 1);
    auto* const other = reinterpret_cast<std::int32_t*>(there.allocate(400));
    auto* const other_stream = tuttiCudaStream(there.stream());
    user.make_current();
    tuttiStream_t host_stream = nullptr;
    ASSERT_TRUE(ok(tuttiStreamCreate(&host_stream)));
    auto* const stream = tuttiCudaStream(one.stream);
    struct Case {
      const void* send;
      void* recv;
      tuttiStream_t stream;
      const char* words;
    };
    for (const Case& bad :
         {Case{host.data(), one.output, stream, "sendbuff is host memory and recvbuff is device memory"},
          Case{one.input, host.data(), stream, "sendbuff is device memory and recvbuff is host memory"},
          Case{one.input, other, stream, "recvbuff is memory of GPU 1, but this rank of the communicator is on GPU 0"},
          Case{other, other, stream, "sendbuff is memory of GPU 1"},
          Case{one.input, one.output, other_stream,
               "stream is of GPU 1, but this rank of the communicator is on GPU 0"},
          Case{one.input, one.output, host_stream, "they need a cudaStream_t"},
          Case{host.data(), host.data(), stream, "a cudaStream_t goes with device memory"},
          Case{reinterpret_cast<std::byte*>(one.input) + 2, one.output, stream,
               "not a multiple of the 4 bytes of an element"},
          Case{one.input, one.output, tuttiCudaStream(reinterpret_cast<void*>(cuda::stream_per_thread)),
               "stream is cudaStreamPerThread"}})
      EXPECT_TRUE(fails(tuttiAllReduce(bad.send, bad.recv, 100, tuttiInt32, tuttiSum, one.comm, bad.stream),
                        tuttiInvalidArgument, bad.words));
    for (const auto prefix : {tuttiScan, tuttiExScan})
      EXPECT_TRUE(fails(prefix(one.input, one.output, 100, tuttiInt32, tuttiSum, one.comm, stream),
                        tuttiInvalidArgument, "prefix reductions (tuttiScan, tuttiExScan) are for host memory"));
    EXPECT_TRUE(ok(tuttiAllReduce(host.data(), one.output, 0, tuttiInt32, tuttiSum, one.comm, stream)));  // no elements
    EXPECT_TRUE(ok(group_end_of(ranks)));
    user.synchronize(one.stream);
    EXPECT_EQ(user.get(one.output, 100), sums(100, 2));
    EXPECT_TRUE(ok(tuttiStreamDestroy(host_stream)));
  });
}

/// What one rank has not at all is not looked at.
TEST(GpuErrors, BuffersThatARankIgnores) {
  in_one_thread(2, [](CudaUser& user, const std::vector<OneRank>& ranks) {
    int host = 0;
    auto* const stream = tuttiCudaStream(ranks[0].stream);
    ASSERT_TRUE(ok(tuttiGroupStart()));
    EXPECT_TRUE(ok(tuttiReduce(ranks[0].input, ranks[0].output, 100, tuttiInt32, tuttiSum, 0, ranks[0].comm, stream)));
    EXPECT_TRUE(ok(tuttiReduce(ranks[1].input, &host, 100, tuttiInt32, tuttiSum, 0, ranks[1].comm, stream)));
    EXPECT_TRUE(ok(tuttiBroadcast(ranks[0].input, ranks[0].output, 100, tuttiInt32, 0, ranks[0].comm, stream)));
    EXPECT_TRUE(ok(tuttiBroadcast(&host, ranks[1].output, 100, tuttiInt32, 0, ranks[1].comm, stream)));
    EXPECT_TRUE(ok(tuttiBarrier(ranks[0].comm, stream)));
    EXPECT_TRUE(ok(tuttiBarrier(ranks[1].comm, stream)));
    fake_cuda(library).set_kernel([](const std::string&, const std::byte*, unsigned, unsigned) { return 0; });
    ASSERT_TRUE(ok(tuttiGroupEnd()));
    user.synchronize(ranks[0].stream);
    EXPECT_EQ(fake_cuda(library).calls("cuLaunchCooperativeKernel"), 3);
  });
}

TEST(GpuErrors, NoDriver) {
  launch_ranks(
      {.ranks = 1, .layout = Layout::one_thread, .environment = {"TUTTI_CUDA_LIBRARY=/nowhere/libcuda.so"}}, [](Seat&) {
        tuttiComm_t comm = nullptr;
        const int device = 0;
        EXPECT_TRUE(
            fails(tuttiCommInitAll(&comm, 1, &device), tuttiUnhandledCudaError, "no CUDA driver: /nowhere/libcuda.so"));
        ASSERT_TRUE(ok(tuttiCommInitAll(&comm, 1, nullptr)));  // without a GPU all is well
        int x = 1;
        EXPECT_TRUE(ok(tuttiAllReduce(&x, &x, 1, tuttiInt32, tuttiSum, comm, nullptr)));
        EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      });
}

TEST(GpuErrors, NoSuchGpuAndNoKernels) {
  launch_ranks(launch_group(1, Layout::one_thread, {"TUTTI_CUDA_KERNELS=/nowhere/kernels"}), [](Seat&) {
    tuttiComm_t comm = nullptr;
    const int far = 7;
    EXPECT_TRUE(
        fails(tuttiCommInitAll(&comm, 1, &far), tuttiInvalidArgument, "GPU 7 is none of this process's (0 to 0)"));
    CudaUser user(library);
    ASSERT_TRUE(ok(tuttiCommInitAll(&comm, 1, nullptr)));
    const OneRank one(user, comm, 0, 10);
    EXPECT_TRUE(fails(one.all_reduce(), tuttiUnhandledCudaError, "TUTTI_CUDA_KERNELS=/nowhere/kernels"));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST(GpuErrors, OneThreadWithoutAGroup) {
  in_one_thread(
      2,
      [](CudaUser&, const std::vector<OneRank>& ranks) {
        EXPECT_TRUE(fails(ranks[0].all_reduce(), tuttiTimeout, "wrap the calls of one thread in tuttiGroupStart"));
        EXPECT_TRUE(fails(ranks[1].all_reduce(), tuttiTimeout, "tuttiGroupStart"));
      },
      {"TUTTI_MEET_TIMEOUT_MS=50"});
}

/// A rank of another thread may take its time.
TEST(GpuErrors, OtherThreadsAreWaitedFor) {
  launch_ranks(launch_group(2, Layout::threads, {"TUTTI_MEET_TIMEOUT_MS=1"}), [](Seat& seat) {
    fake_cuda(library).set_kernel(sum_kernel);
    CudaUser user(library);
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 10);
    if (!seat.meet()) return;
    const int asked = fake_cuda(library).calls("cuPointerGetAttributes");
    if (!seat.meet()) return;
    if (seat.rank() == 1) {
      while (fake_cuda(library).calls("cuPointerGetAttributes") == asked) std::this_thread::yield();
      for (int i = 0; i < 20'000; ++i) std::this_thread::yield();  // rank 0 most probably waits by now, and on
    }
    EXPECT_TRUE(ok(one.all_reduce()));
    user.synchronize(one.stream);
    EXPECT_EQ(user.get(one.output, 10), sums(10, 2));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST(GpuErrors, RanksThatDiffer) {
  in_one_thread(2, [](CudaUser&, const std::vector<OneRank>& ranks) {
    ASSERT_TRUE(ok(tuttiGroupStart()));
    EXPECT_TRUE(ok(ranks[0].all_reduce()));
    EXPECT_TRUE(ok(tuttiBroadcast(ranks[1].input, ranks[1].output, 100, tuttiInt32, 1, ranks[1].comm,
                                  tuttiCudaStream(ranks[1].stream))));
    EXPECT_TRUE(fails(tuttiGroupEnd(), tuttiInvalidUsage, "rank 1 Broadcast"));
    for (const OneRank& one : ranks) EXPECT_EQ(async_error(one.comm), tuttiInvalidUsage);
  });
}

TEST(GpuErrors, HostMemoryHereAndDeviceMemoryThere) {
  for (const bool host_first : {true, false})
    in_one_thread(2, [host_first](CudaUser&, const std::vector<OneRank>& ranks) {
      std::vector<std::int32_t> host(100);
      ASSERT_TRUE(ok(tuttiGroupStart()));
      if (!host_first) {
        EXPECT_TRUE(ok(ranks[1].all_reduce()));
      }
      EXPECT_TRUE(ok(tuttiAllReduce(host.data(), host.data(), 100, tuttiInt32, tuttiSum, ranks[0].comm, nullptr)));
      if (host_first) {
        EXPECT_TRUE(ok(ranks[1].all_reduce()));
      }
      EXPECT_TRUE(fails(tuttiGroupEnd(), tuttiInvalidUsage, "rank 0 has host memory and rank 1 device memory"));
    });
}

/// Whatever of the driver fails in the first call is the communicators' error, by CUDA's name; nothing hangs.
TEST(GpuErrors, WhateverFails) {
  for (const char* const function :
       {"cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction", "cuFuncLoad",
        "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuMemAlloc", "cuMemHostAlloc", "cuStreamCreate",
        "cuEventCreate", "cuMemsetD8Async", "cuMemcpyAsync", "cuStreamSynchronize", "cuStreamGetCaptureInfo",
        "cuEventRecord", "cuStreamWaitEvent", "cuLaunchCooperativeKernel"})
    in_one_thread(2, [function](CudaUser&, const std::vector<OneRank>& ranks) {
      fake_cuda(library).fail(function, cuda::status::launch_failed);
      EXPECT_TRUE(fails(group_end_of(ranks), tuttiUnhandledCudaError,
                        std::string(function) + ": CUDA_ERROR_LAUNCH_FAILED (719)"));
      fake_cuda(library).forgive();
      for (const OneRank& one : ranks) {
        EXPECT_EQ(async_error(one.comm), tuttiUnhandledCudaError);
        EXPECT_TRUE(fails(one.all_reduce(), tuttiUnhandledCudaError, "by this process any more"));
      }
    });
}

TEST(GpuErrors, AKernelThatCrashesIsTheErrorOfTheNextCall) {
  in_one_thread(2, [](CudaUser& user, const std::vector<OneRank>& ranks) {
    fake_cuda(library).set_kernel(
        [](const std::string&, const std::byte*, unsigned, unsigned) { return cuda::status::illegal_address; });
    EXPECT_TRUE(ok(group_end_of(ranks)));
    EXPECT_EQ(user.status<int(cuda::Stream)>("cuStreamSynchronize", ranks[0].stream), cuda::status::illegal_address);
    EXPECT_TRUE(fails(group_end_of(ranks), tuttiUnhandledCudaError, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
  });
}

TEST(GpuErrors, TooManyRanksForTheGpu) {
  launch_ranks(launch_group(3, Layout::one_thread), [](Seat& seat) {
    fake_cuda(library).set_blocks_max(2);
    CudaUser user(library);
    const auto comms = seat.init();
    ASSERT_EQ(comms.size(), 3u);
    EXPECT_TRUE(fails(group_end_of(make_ranks(user, seat, comms, 100)), tuttiInvalidUsage, "too few for 3 ranks"));
    destroy(comms);
  });
}

/// What a rank uses at most is a setting, and is less where the GPU holds less.
TEST(GpuErrors, BlocksAreBounded) {
  struct Bound {
    const char* setting;
    unsigned holds, expected;
  };
  for (const Bound& of : {Bound{"5", 100, 10}, Bound{"128", 9, 8}})
    launch_ranks(launch_group(2, Layout::one_thread, {std::string("TUTTI_MAX_CTAS=") + of.setting}), [&](Seat& seat) {
      unsigned most = 0, most_threads = 0;
      fake_cuda(library).set_blocks_max(of.holds);
      fake_cuda(library).set_kernel([&](const std::string&, const std::byte*, unsigned blocks, unsigned threads) {
        most_threads = std::max(most_threads, threads);
        most = std::max(most, blocks);
        return 0;
      });
      CudaUser user(library);
      const auto comms = seat.init();
      ASSERT_EQ(comms.size(), 2u);
      const auto small = make_ranks(user, seat, comms, 1);
      all_reduce(small);
      user.synchronize(small[0].stream);
      EXPECT_EQ(most, 2u);
      EXPECT_EQ(most_threads, static_cast<unsigned>(device::block_threads_min));
      const auto large = make_ranks(user, seat, comms, 10'000'000);
      all_reduce(large);
      user.synchronize(large[0].stream);
      EXPECT_EQ(most, of.expected);
      EXPECT_EQ(most_threads, static_cast<unsigned>(device::block_threads));
      destroy(comms);
    });
}

/// A kernel that gave up says for whom it waited.
TEST(GpuErrors, APeerThatNeverComes) {
  in_one_thread(
      2,
      [](CudaUser& user, const std::vector<OneRank>& ranks) {
        fake_cuda(library).set_kernel([](const std::string&, const std::byte* argument, unsigned, unsigned) {
          device::Call call;
          std::memcpy(&call, argument, sizeof call);
          EXPECT_EQ(call.limit_ns, 5'000'000'000u);
          device::ErrorRecord& record = call.local[0].errors[0];
          record.peer = 1;
          record.step = 3;
          std::atomic_ref<std::uint32_t>(record.state).store(device::ErrorRecord::late, std::memory_order_release);
          std::atomic_ref<std::uint32_t>(*call.abort).store(1, std::memory_order_release);
          return 0;
        });
        EXPECT_TRUE(ok(group_end_of(ranks)));
        user.synchronize(ranks[0].stream);
        EXPECT_EQ(async_error(ranks[0].comm), tuttiTimeout);
        EXPECT_TRUE(fails(ranks[0].all_reduce(), tuttiTimeout,
                          "the kernel of rank 0 on GPU 0 gave up while it waited for rank 1 on channel 0 at step 3"));
      },
      {"TUTTI_TIMEOUT_MS=5000"});
}

/// An abort ends kernels that wait, and with them the destruction that waits for them.
TEST(GpuErrors, AbortEndsWaitingKernels) {
  in_one_thread(1, [](CudaUser& user, const std::vector<OneRank>& ranks) {
    std::atomic<bool> runs = false;
    fake_cuda(library).set_kernel([&runs](const std::string&, const std::byte* argument, unsigned, unsigned) {
      device::Call call;
      std::memcpy(&call, argument, sizeof call);
      runs = true;
      while (std::atomic_ref<std::uint32_t>(*call.abort).load(std::memory_order_acquire) == 0)
        std::this_thread::yield();
      return 0;
    });
    tuttiComm_t comm = nullptr;
    ASSERT_TRUE(ok(tuttiCommInitAll(&comm, 1, nullptr)));
    const OneRank one(user, comm, 0, 10);
    EXPECT_TRUE(ok(one.all_reduce()));
    while (!runs) std::this_thread::yield();
    EXPECT_TRUE(ok(tuttiCommAbort(comm)));
    user.synchronize(one.stream);
    fake_cuda(library).set_kernel(sum_kernel);
    EXPECT_TRUE(ok(ranks[0].all_reduce()));
  });
}

/// One that does not end keeps its memory, and nobody waits for it for ever.
TEST(GpuErrors, AKernelThatGoesOnKeepsItsMemory) {
  launch_ranks(launch_group(1, Layout::one_thread), [](Seat& seat) {
    auto& fake = fake_cuda(library);
    std::atomic<bool> ends = false;
    fake.set_kernel([&ends](const std::string&, const std::byte*, unsigned, unsigned) {
      while (!ends) std::this_thread::yield();
      return 0;
    });
    CudaUser user(library);
    const auto comms = seat.init();
    ASSERT_EQ(comms.size(), 1u);
    const auto before = fake.live();
    const OneRank one(user, comms[0], 0, 10);
    EXPECT_TRUE(ok(one.all_reduce()));
    const auto during = fake.live();
    EXPECT_TRUE(ok(tuttiCommAbort(comms[0])));
    EXPECT_EQ(fake.live(), during);
    EXPECT_GT(during.allocations, before.allocations + 2);  // more than the rank's own buffers
    ends = true;
    user.synchronize(one.stream);
  });
}

}  // namespace
}  // namespace tutti::testing
