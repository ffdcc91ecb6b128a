// Memory of GPUs that processes map of each other: who waits for the driver, and how long anything stays mapped.
#include <array>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <thread>

#include "support/gpu_ranks.h"
#include "support/log_file.h"

namespace tutti::testing {
namespace {

constexpr std::size_t count = 40'000;                // above what goes through the host
constexpr std::size_t large = std::size_t{9} << 20;  // more bytes than the arena has

const std::vector<std::string> silent = {"TUTTI_DEBUG=NONE"};
const std::vector<std::string> always = {"TUTTI_GPU_P2P=always", "TUTTI_DEBUG=NONE"};

/// Two processes; after the body all that was mapped is unmapped.
void in_two_processes(const std::vector<std::string>& settings,
                      const std::function<void(Seat&, CudaUser&, tuttiComm_t)>& body) {
  launch_ranks(launch_group(2, Layout::processes, settings), [&body](Seat& seat) {
    auto& fake = fake_cuda(library);
    fake.set_shareable(true);
    CudaUser user(library);
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    body(seat, user, comm);
    if (!seat.meet()) return;
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    EXPECT_EQ(fake.live().mapped, 0);
    EXPECT_EQ(fake.live().misuse, 0);
  });
}

void expect_sum(CudaUser& user, const OneRank& one) {
  user.synchronize(one.stream);
  EXPECT_EQ(user.get(one.output, one.count), sums(one.count, 2));
}

/// Makes calls on the same buffers until both ranks' kernels use these, and not copies of them. False: the test is
/// over.
bool until_mapped(Seat& seat, CudaUser& user, const OneRank& one) {
  auto& fake = fake_cuda(library);
  const auto word = [&seat](int rank) -> auto& {
    return seat.board().word(10 + static_cast<std::size_t>(rank));
  };
  for (;;) {
    const int before = fake.calls("cuMemcpyAsync");
    EXPECT_TRUE(ok(one.all_reduce()));
    word(seat.rank()).store(fake.calls("cuMemcpyAsync") == before ? 1 : 0);
    expect_sum(user, one);
    if (!seat.meet()) return false;
    const bool both = word(0).load() == 1 && word(1).load() == 1;
    if (!seat.meet()) return false;
    if (both || ::testing::Test::HasFailure()) return true;
  }
}

/// How a thread of the program comes to hold the driver's lock while it waits for the stream of a call.
enum class Holder { full_queue, freeing };

class GpuLock : public ::testing::TestWithParam<Holder> {};
INSTANTIATE_TEST_SUITE_P(Holders, GpuLock, ::testing::Values(Holder::full_queue, Holder::freeing),
                         [](const auto& test) { return test.param == Holder::full_queue ? "FullQueue" : "Freeing"; });

/// The call of one rank waits for the other's, whose buffers are new to it; a thread that holds the driver's lock waits
/// for that call. So nothing that the call needs may need the driver.
TEST_P(GpuLock, IsNotNeededByACallThatWaits) {
  const Holder holder = GetParam();
  in_two_processes(silent, [holder](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    auto& fake = fake_cuda(library);
    const OneRank known(user, comm, seat.rank(), count);
    ASSERT_TRUE(ok(known.all_reduce()));  // brings what all calls need to the GPU
    expect_sum(user, known);
    const OneRank fresh(user, comm, seat.rank(), count);
    auto* const garbage = user.allocate(64);
    if (!seat.meet()) return;
    if (seat.rank() == 0) {
      ASSERT_TRUE(seat.board().wait_for(0, 1));
      ASSERT_TRUE(ok(fresh.all_reduce()));
      expect_sum(user, fresh);
      return;
    }
    ASSERT_TRUE(ok(fresh.all_reduce()));
    constexpr int most = 100;
    fake.set_queue_max(most);
    std::thread watch([&] {
      while (!fake.is_locked()) std::this_thread::yield();
      seat.board().raise(0, 1);
    });
    if (holder == Holder::freeing)
      user.free(garbage);
    else
      for (int i = 0; i < 2 * most; ++i)
        user.call<int(cuda::Address, unsigned char, std::size_t, cuda::Stream)>(
            "cuMemsetD8Async", reinterpret_cast<cuda::Address>(garbage), static_cast<unsigned char>(i), std::size_t{64},
            fresh.stream);
    watch.join();
    fake.set_queue_max(0);
    expect_sum(user, fresh);
  });
}

/// Kernels that wait for nobody need not be on the GPU as a whole: others may occupy most of it.
TEST(GpuSharing, KernelsOfAnOccupiedGpu) {
  in_two_processes(silent, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    auto& fake = fake_cuda(library);
    constexpr unsigned most = 100;
    fake.set_blocks_max(most);
    fake.occupy(most - 1);
    const OneRank one(user, comm, seat.rank(), count);
    ASSERT_TRUE(ok(one.all_reduce()));
    expect_sum(user, one);
    EXPECT_GT(launches(), 0);
  });
}

/// Calls on buffers that are too large for the arena wait until their peers have mapped them.
TEST(GpuSharing, LargeBuffers) {
  in_two_processes(silent, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    const OneRank one(user, comm, seat.rank(), large);
    ASSERT_TRUE(ok(one.all_reduce()));
    expect_sum(user, one);
    const OneRank other(user, comm, seat.rank(), large);
    const int before = fake_cuda(library).calls("cuMemcpyAsync");
    ASSERT_TRUE(ok(other.all_reduce()));
    EXPECT_EQ(fake_cuda(library).calls("cuMemcpyAsync"), before);
    expect_sum(user, other);
    user.allocate_pooled(true);
    const OneRank pooled(user, comm, seat.rank(), large);  // copied to memory that is large, too
    ASSERT_TRUE(ok(pooled.all_reduce()));
    expect_sum(user, pooled);
  });
}

/// One buffer would fit the arena, the other does not.
TEST(GpuSharing, ALargeBufferAndASmallOne) {
  in_two_processes(silent, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    constexpr std::size_t half = large / 2;
    const auto part = [](const std::vector<std::int32_t>& all, int rank) {
      const auto begin = all.begin() + rank * static_cast<std::ptrdiff_t>(half);
      return std::vector<std::int32_t>(begin, begin + half);
    };
    const OneRank one(user, comm, seat.rank(), 2 * half);
    auto* const output = reinterpret_cast<std::int32_t*>(user.allocate(half * sizeof(std::int32_t)));
    auto* const stream = tuttiCudaStream(one.stream);
    ASSERT_TRUE(ok(tuttiReduceScatter(one.input, output, half, tuttiInt32, tuttiSum, comm, stream)));
    user.synchronize(one.stream);
    EXPECT_EQ(user.get(output, half), part(sums(2 * half, 2), seat.rank()));
    ASSERT_TRUE(ok(tuttiAllGather(output, one.output, half, tuttiInt32, comm, stream)));
    expect_sum(user, one);
  });
}

/// A peer that cannot map a buffer gets a copy of it in memory that it has mapped.
TEST(GpuSharing, MemoryThatAPeerCannotMap) {
  in_two_processes(silent, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    auto& fake = fake_cuda(library);
    if (seat.rank() == 1) fake.fail("cuIpcOpenMemHandle", cuda::status::out_of_memory, 0, /*for_ever=*/true);
    const int before = fake.calls("cuIpcOpenMemHandle");
    if (!seat.meet()) return;  // a rank maps what its peer has offered before it calls itself
    const OneRank one(user, comm, seat.rank(), count);
    do {
      ASSERT_TRUE(ok(one.all_reduce()));
      expect_sum(user, one);
      seat.board().word(10).fetch_or(seat.rank() == 1 && fake.calls("cuIpcOpenMemHandle") > before ? 1 : 0);
      if (!seat.meet()) return;
    } while (seat.board().word(10).load() == 0);
    ASSERT_TRUE(ok(one.all_reduce()));
    expect_sum(user, one);
  });
}

TEST(GpuSharing, LargeMemoryThatAPeerCannotMap) {
  in_two_processes(silent, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    if (seat.rank() == 1)
      fake_cuda(library).fail("cuIpcOpenMemHandle", cuda::status::out_of_memory, 0, /*for_ever=*/true);
    if (!seat.meet()) return;
    const OneRank one(user, comm, seat.rank(), large);
    if (seat.rank() == 0) {
      EXPECT_TRUE(fails(one.all_reduce(), tuttiUnhandledCudaError, "another process could not map device memory"));
    } else {
      (void)one.all_reduce();
      user.synchronize(one.stream);
      tuttiResult_t heard = tuttiSuccess;
      while (heard == tuttiSuccess) ASSERT_TRUE(ok(tuttiCommGetAsyncError(comm, &heard)));
      EXPECT_EQ(heard, tuttiUnhandledCudaError);
    }
  });
}

/// The explanation says which calls go which way.
TEST(GpuSharing, IsExplained) {
  for (const auto& settings : {silent, always})
    in_two_processes(settings, [](Seat&, CudaUser&, tuttiComm_t comm) {
      std::array<char, 4096> text{};
      std::size_t length = 0;
      ASSERT_TRUE(ok(tuttiCommExplain(comm, "allreduce", count, tuttiInt32, text.data(), text.size(), &length)));
      const std::string_view said(text.data());
      EXPECT_NE(said.find("access the memory of peers' GPUs"), said.npos) << said;
      const bool all = std::string_view(std::getenv("TUTTI_GPU_P2P") == nullptr ? "" : "always") == "always";
      EXPECT_EQ(said.find("groups of 64 KiB and more") == said.npos, all) << said;
    });
}

/// What its owner has freed is unmapped everywhere, without any further call.
TEST(GpuSharing, FreedMemoryIsUnmapped) {
  in_two_processes(silent, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    auto& fake = fake_cuda(library);
    const int before = fake.live().mapped;
    if (!seat.meet()) return;
    const OneRank one(user, comm, seat.rank(), count);
    if (!until_mapped(seat, user, one)) return;
    EXPECT_EQ(fake.live().mapped - before, 2);
    if (!seat.meet()) return;
    user.free(one.output);
    while (fake.live().mapped - before != 1) std::this_thread::yield();  // the team's limit ends it
    if (!seat.meet()) return;
    user.free(one.input);
    while (fake.live().mapped - before != 0) std::this_thread::yield();
    if (!seat.meet()) return;
    const OneRank next(user, comm, seat.rank(), count);
    (void)until_mapped(seat, user, next);
  });
}

/// More allocations than can be offered at a time: those that were used last stay mapped.
TEST(GpuSharing, ManyAllocations) {
  in_two_processes(always, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    auto& fake = fake_cuda(library);
    const int before = fake.live().mapped;
    if (!seat.meet()) return;
    const OneRank first(user, comm, seat.rank(), 10);
    for (int i = 0; i < 150; ++i) {
      const OneRank one(user, comm, seat.rank(), 10);
      if (!until_mapped(seat, user, one)) return;
    }
    EXPECT_LE(fake.live().mapped - before, 256);
    (void)until_mapped(seat, user, first);
  });
}

int times(const std::string& text, std::string_view part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// If CUDA gives all streams one queue, streams that wait hold each other up: said once, for the second communicator.
TEST(GpuQueues, OneForSeveralCommunicators) {
  for (const char* const queues : {"1", "8"})
    launch_ranks(launch_group(2, Layout::processes, {std::string("CUDA_DEVICE_MAX_CONNECTIONS=") + queues}),
                 [queues](Seat& seat) {
                   const LogFile log;
                   const CudaUser user(library);
                   constexpr std::string_view warning = "CUDA_DEVICE_MAX_CONNECTIONS is 1";
                   std::vector<tuttiComm_t> comms;
                   for (int i = 0; i < 3; ++i) {
                     comms.push_back(seat.init_one());
                     ASSERT_NE(comms.back(), nullptr);
                     const bool told = i > 0 && std::string_view(queues) == "1";
                     EXPECT_EQ(times(log.text(), warning), told ? 1 : 0) << i;
                   }
                   destroy(comms);
                 });
}

}  // namespace
}  // namespace tutti::testing
