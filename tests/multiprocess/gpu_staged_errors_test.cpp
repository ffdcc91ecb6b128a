// Calls on device memory that go through the host, or to peers' memory when the host says so, and end badly: no stream
// waits for ever, and all hear why.
#include <csignal>
#include <thread>

#include "support/gpu_ranks.h"

namespace tutti::testing {
namespace {

const std::vector<std::string> always = {"TUTTI_GPU_STAGED=always", "TUTTI_DEBUG=NONE"};
const std::vector<std::string> silent = {"TUTTI_DEBUG=NONE"};
const std::vector<std::string> by_any_peers = {"TUTTI_GPU_P2P=always", "TUTTI_DEBUG=NONE"};

tuttiResult_t async_error(tuttiComm_t comm) {
  tuttiResult_t result = tuttiNumResults;
  EXPECT_TRUE(ok(tuttiCommGetAsyncError(comm, &result)));
  return result;
}

void await_error(tuttiComm_t comm, tuttiResult_t expected) {
  while (async_error(comm) == tuttiSuccess) std::this_thread::yield();  // the team's limit ends it
  EXPECT_EQ(async_error(comm), expected);
}

/// The stream of a rank whose peers never come waits; whatever ends the call lets it go on.
enum class End { own_abort, peer_abort, peer_dies, peer_differs };

const char* name(End end) {
  switch (end) {
    case End::own_abort: return "OwnAbort";
    case End::peer_abort: return "PeerAbort";
    case End::peer_dies: return "PeerDies";
    case End::peer_differs: return "PeerDiffers";
  }
  return "?";
}

/// And whether GPUs reach peers' memory.
class GpuStagedEnd : public ::testing::TestWithParam<std::tuple<End, bool>> {};
INSTANTIATE_TEST_SUITE_P(Ends, GpuStagedEnd,
                         ::testing::Combine(::testing::Values(End::own_abort, End::peer_abort, End::peer_dies,
                                                              End::peer_differs),
                                            ::testing::Bool()),
                         [](const auto& test) {
                           return std::string(name(std::get<0>(test.param))) +
                                  (std::get<1>(test.param) ? "ByPeers" : "");
                         });

TEST_P(GpuStagedEnd, LetsTheStreamGo) {
  const End end = std::get<0>(GetParam());
  const bool by_peers = std::get<1>(GetParam());
  Workers workers(launch_group(2, Layout::processes, by_peers ? by_any_peers : silent), [end, by_peers](Seat& seat) {
    fake_cuda(library).set_shareable(by_peers);
    CudaUser user(library);
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 1000);
    ASSERT_TRUE(ok(one.all_reduce()));  // pages are touched, threads are there
    user.synchronize(one.stream);
    EXPECT_EQ(launches(), by_peers ? 1 : 0);
    if (!seat.meet()) return;
    if (seat.rank() == 0) {
      for (int call = 0; call < 3; ++call) ASSERT_TRUE(ok(one.all_reduce()));
      ASSERT_TRUE(ok(tuttiSend(one.input, 1000, tuttiInt32, 1, comm, tuttiCudaStream(one.stream))));
      ASSERT_TRUE(ok(tuttiRecv(one.output, 1000, tuttiInt32, 1, comm, tuttiCudaStream(one.stream))));
      seat.board().raise(0, 1);
      if (end == End::own_abort) {
        EXPECT_TRUE(ok(tuttiCommAbort(comm)));
        user.synchronize(one.stream);
        seat.board().raise(1, 1);
        return;
      }
      user.synchronize(one.stream);
      await_error(comm, end == End::peer_differs ? tuttiInvalidUsage : tuttiRemoteError);
      EXPECT_TRUE(fails(one.all_reduce(), async_error(comm),
                        end == End::peer_abort  ? "rank 1/2"
                        : end == End::peer_dies ? "rank 1/2"
                                                : "Broadcast"));
      seat.board().raise(1, 1);
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      return;
    }
    if (!seat.board().wait_for(0, 1)) return;
    if (end == End::peer_dies) {
      seat.board().raise(2, 1);  // to be killed
      (void)seat.board().wait_for(3, 1);
    } else if (end == End::peer_abort) {
      EXPECT_TRUE(ok(tuttiCommAbort(comm)));
    } else {
      if (end == End::peer_differs) {
        const tuttiResult_t made =
            tuttiBroadcast(one.input, one.output, 1000, tuttiInt32, 0, comm, tuttiCudaStream(one.stream));
        EXPECT_TRUE(made == tuttiSuccess || made == tuttiInvalidUsage) << made;  // it may be known at once
        user.synchronize(one.stream);
      }
      (void)seat.board().wait_for(1, 1);
      await_error(comm, end == End::peer_differs ? tuttiInvalidUsage : tuttiRemoteError);
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    }
  });
  if (end == End::peer_dies) {
    ASSERT_TRUE(workers.board().wait_for(2, 1));
    workers.kill(1);
  }
  EXPECT_TRUE(workers.finish());
}

/// The GPU never comes to the call: an abort does not wait for it, and what may still be copied keeps its memory.
TEST(GpuStagedErrors, AbortBeforeTheStreamComes) {
  launch_ranks(launch_group(2, Layout::processes, {"TUTTI_DEBUG=NONE"}), [](Seat& seat) {
    auto& fake = fake_cuda(library);
    CudaUser user(library);
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 1000);
    fake.hold();
    ASSERT_TRUE(ok(one.all_reduce()));
    if (!seat.meet()) return;
    EXPECT_TRUE(ok(tuttiCommAbort(comm)));
    EXPECT_GT(fake.live().registrations, 0);
    fake.release();
    user.synchronize(one.stream);
    EXPECT_EQ(fake.live().misuse, 0);
  });
}

/// Whatever of the driver fails is the communicator's error on the rank that saw it, by CUDA's name, and a remote one
/// on the others.
TEST(GpuStagedErrors, WhateverFails) {
  for (const char* const function :
       {"cuDeviceGetAttribute", "cuStreamGetCaptureInfo", "cuMemHostRegister", "cuMemHostAlloc", "cuEventCreate",
        "cuMemcpyAsync", "cuStreamWriteValue32", "cuStreamWaitValue32", "cuEventRecord"})
    launch_ranks(launch_group(2, Layout::one_thread, always), [function](Seat& seat) {
      CudaUser user(library);
      const auto comms = seat.init();
      ASSERT_EQ(comms.size(), 2u);
      const auto ranks = make_ranks(user, seat, comms, 1000);
      fake_cuda(library).fail(function, cuda::status::out_of_memory);
      ASSERT_TRUE(ok(tuttiGroupStart()));
      const bool refused = ranks[0].all_reduce() != tuttiSuccess;
      (void)ranks[1].all_reduce();
      EXPECT_TRUE(
          fails(tuttiGroupEnd(), tuttiUnhandledCudaError, std::string(function) + ": CUDA_ERROR_OUT_OF_MEMORY (2)"))
          << function;
      for (const OneRank& one : ranks) user.synchronize(one.stream);
      if (!refused) {
        // A rank whose call was complete before hears of it from its peer.
        for (const OneRank& one : ranks)
          while (async_error(one.comm) == tuttiSuccess) std::this_thread::yield();  // the team's limit ends it
        EXPECT_NE(ranks[0].all_reduce(), tuttiSuccess);
      }
      destroy(comms);
    });
}

TEST(GpuStagedErrors, WhatIsRefused) {
  launch_ranks(launch_group(2, Layout::one_thread, always), [](Seat& seat) {
    auto& fake = fake_cuda(library);
    fake.set_devices(2);
    CudaUser user(library);
    const auto comms = seat.init();
    ASSERT_EQ(comms.size(), 2u);
    const auto ranks = make_ranks(user, seat, comms, 100);
    const OneRank& one = ranks[0];
    auto* const stream = tuttiCudaStream(one.stream);
    std::vector<std::int32_t> host(100);

    fake.set_memory_operations(false);
    EXPECT_TRUE(fails(one.all_reduce(), tuttiInvalidUsage, "streams of GPU 0 cannot wait for memory of the host"));
    fake.set_memory_operations(true);

    user.begin_capture(one.stream);
    EXPECT_TRUE(
        fails(one.all_reduce(), tuttiInvalidUsage, "the stream is captured, and this call goes through the host"));
    EXPECT_TRUE(fails(tuttiSend(one.input, 1, tuttiInt32, 1, one.comm, stream), tuttiInvalidUsage, "is captured"));
    user.destroy(user.end_capture(one.stream));  // is whole: the refusal broke nothing

    CudaUser there(library, 1);
    auto* const other = there.allocate(400);
    user.make_current();
    tuttiStream_t queue = nullptr;
    ASSERT_TRUE(ok(tuttiStreamCreate(&queue)));
    EXPECT_TRUE(fails(tuttiSend(other, 100, tuttiInt32, 1, one.comm, stream), tuttiInvalidArgument, "memory of GPU 1"));
    EXPECT_TRUE(fails(tuttiRecv(one.output, 100, tuttiInt32, 1, one.comm, queue), tuttiInvalidArgument,
                      "they need a cudaStream_t"));
    EXPECT_TRUE(fails(tuttiRecv(host.data(), 100, tuttiInt32, 1, one.comm, stream), tuttiInvalidArgument,
                      "a cudaStream_t goes with device memory"));
    EXPECT_TRUE(fails(tuttiAllReduce(host.data(), one.output, 100, tuttiInt32, tuttiSum, one.comm, stream),
                      tuttiInvalidArgument, "sendbuff is host memory and recvbuff is device memory"));

    for (const bool host_first : {true, false}) {
      ASSERT_TRUE(ok(tuttiGroupStart()));
      const auto on_host = [&] {
        return tuttiAllReduce(host.data(), host.data(), 100, tuttiInt32, tuttiSum, one.comm, nullptr);
      };
      EXPECT_TRUE(ok(host_first ? on_host() : one.all_reduce()));
      EXPECT_TRUE(fails(host_first ? one.all_reduce() : on_host(), tuttiInvalidUsage, "must go the same way"));
      EXPECT_TRUE(fails(tuttiGroupEnd(), tuttiInvalidUsage, "must go the same way"));
    }
    all_reduce(ranks);  // a refusal changes nothing
    user.synchronize(one.stream);
    EXPECT_EQ(user.get(one.output, 100), sums(100, 2));
    EXPECT_TRUE(ok(tuttiStreamDestroy(queue)));
    destroy(comms);
  });
}

TEST(GpuStagedErrors, OneThreadWithoutAGroup) {
  auto settings = always;
  settings.emplace_back("TUTTI_MEET_TIMEOUT_MS=50");
  launch_ranks(launch_group(2, Layout::one_thread, settings), [](Seat& seat) {
    CudaUser user(library);
    const auto comms = seat.init();
    ASSERT_EQ(comms.size(), 2u);
    const auto ranks = make_ranks(user, seat, comms, 100);
    EXPECT_TRUE(fails(ranks[0].all_reduce(), tuttiTimeout, "wrap the calls of one thread in tuttiGroupStart"));
    user.synchronize(ranks[0].stream);
    if (ranks[1].all_reduce() == tuttiSuccess) user.synchronize(ranks[1].stream);  // it may not have heard of it yet
    await_error(ranks[1].comm, tuttiTimeout);
    EXPECT_TRUE(fails(ranks[1].all_reduce(), tuttiTimeout, "tuttiGroupStart"));
    destroy(comms);
  });
}

/// What fails of the way to peers' memory, after the proof: the error of the rank that met it, a remote one of others.
TEST(GpuStagedErrors, WhatFailsOnTheWayToPeers) {
  for (const char* const function : {"cuLaunchKernel", "cuStreamWaitValue32"})
    launch_ranks(launch_group(2, Layout::processes, by_any_peers), [function](Seat& seat) {
      auto& fake = fake_cuda(library);
      fake.set_shareable(true);
      CudaUser user(library);
      auto* const comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      const OneRank one(user, comm, seat.rank(), 1000);
      if (!seat.meet()) return;
      if (seat.rank() == 1) fake.fail(function, cuda::status::out_of_memory);
      const tuttiResult_t made = one.all_reduce();
      if (seat.rank() == 1) {
        EXPECT_EQ(made, tuttiUnhandledCudaError);
      }
      user.synchronize(one.stream);
      await_error(comm, tuttiUnhandledCudaError);
      EXPECT_TRUE(fails(one.all_reduce(), async_error(comm), std::string(function) + ": CUDA_ERROR_OUT_OF_MEMORY (2)"));
      if (!seat.meet()) return;
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      EXPECT_EQ(fake.live().misuse, 0);
    });
}

/// Where the proof fails on one rank, all go through the host, and nothing of it stays.
TEST(GpuStagedErrors, NoProofNoWay) {
  for (const char* const function :
       {"cuIpcGetMemHandle", "cuIpcOpenMemHandle", "cuMemcpyAsync", "cuMemImportFromShareableHandle"}) {
    std::vector<std::string> settings = by_any_peers;
    settings.push_back(std::string("TUTTI_CUMEM_ENABLE=") +
                       (std::string_view(function).starts_with("cuIpc") ? "0" : "1"));
    launch_ranks(launch_group(2, Layout::processes, settings), [function](Seat& seat) {
      auto& fake = fake_cuda(library);
      fake.set_shareable(true);
      CudaUser user(library);
      if (seat.rank() == 1) fake.fail(function, cuda::status::invalid_value);
      auto* const comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      EXPECT_EQ(fake.live().mapped, 0);
      const OneRank one(user, comm, seat.rank(), 1000);
      ASSERT_TRUE(ok(one.all_reduce()));
      user.synchronize(one.stream);
      EXPECT_EQ(user.get(one.output, 1000), sums(1000, 2));
      EXPECT_EQ(launches(), 0);
      if (!seat.meet()) return;
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
  }
}

/// One rank's memory is the host's, another's the GPU's: different calls, and no stream waits for ever.
TEST(GpuStagedErrors, HostMemoryMeetsPeers) {
  launch_ranks(launch_group(2, Layout::processes, by_any_peers), [](Seat& seat) {
    fake_cuda(library).set_shareable(true);
    CudaUser user(library);
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 1000);
    std::vector<std::int32_t> host(1000);
    if (seat.rank() == 0) {
      (void)one.all_reduce();
      user.synchronize(one.stream);
    } else {
      EXPECT_TRUE(fails(tuttiAllReduce(host.data(), host.data(), 1000, tuttiInt32, tuttiSum, comm, nullptr),
                        tuttiInvalidUsage, "on device memory"));
    }
    await_error(comm, tuttiInvalidUsage);
    if (!seat.meet()) return;
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// The GPU is lost while a stream waits.
TEST(GpuStagedErrors, ALostGpu) {
  launch_ranks(launch_group(2, Layout::processes, {"TUTTI_DEBUG=NONE"}), [](Seat& seat) {
    auto& fake = fake_cuda(library);
    CudaUser user(library);
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 1000);
    if (!seat.meet()) return;
    if (seat.rank() == 0) {
      ASSERT_TRUE(ok(one.all_reduce()));
      fake.break_device(0, cuda::status::illegal_address);
      EXPECT_TRUE(fails(one.all_reduce(), tuttiUnhandledCudaError, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
      EXPECT_TRUE(ok(tuttiCommAbort(comm)));
    } else {
      await_error(comm, tuttiUnhandledCudaError);
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    }
  });
}

}  // namespace
}  // namespace tutti::testing
