// Ranks whose kernels meet those of other processes and GPUs: the kernels' own bodies on threads of the CPU, over the
// fake driver's shareable memory.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/gpu_ranks.h"
#include "support/host_kernels.h"

namespace tutti::testing {

/// Where the ranks of a team are: each in a process; all in one; two in a process, with a GPU each, or with one; all in
/// one process on one GPU, each with a launch of its own.
enum class Seating { processes, threads, pairs, pairs_on_a_gpu, apart };
inline const char* name(Seating seating) {
  constexpr const char* names[] = {"processes", "threads", "pairs", "pairs_on_a_gpu", "apart"};
  return names[static_cast<std::size_t>(seating)];
}

inline FakeKernel bodies() {
  return [](const std::string& name, const std::byte* argument, unsigned, unsigned) {
    device::Call call;
    std::memcpy(&call, argument, sizeof call);
    EXPECT_TRUE(launch_by_name(name, call));
    return 0;
  };
}

inline Team team_of(int ranks, Seating seating, std::vector<std::string> more = {}) {
  more.emplace_back("TUTTI_MAX_CTAS=2");  // each thread of a block is one of this machine's
  if (std::ranges::none_of(more, [](const std::string& one) { return one.starts_with("TUTTI_DEBUG="); }))
    more.emplace_back("TUTTI_DEBUG=WARN");
  if (seating == Seating::apart) more.emplace_back("TUTTI_GPU_P2P=apart");
  const bool threads = seating == Seating::threads || seating == Seating::apart;
  const Layout layout = seating == Seating::processes ? Layout::processes : threads ? Layout::threads : Layout::pairs;
  return launch_group(ranks, layout, more);
}

/// The process's GPUs, before anything else of a seat; all of its seats call this. Returns the seat's GPU.
inline int choose_gpu(Seat& seat, Seating seating, FakeKernel kernel = bodies()) {
  auto& fake = fake_cuda(library);
  const int rank = seat.rank();
  const bool pairs = seating == Seating::pairs || seating == Seating::pairs_on_a_gpu;
  const bool first = seating == Seating::processes || rank == 0 || (pairs && rank % 2 == 0);
  if (first) {
    fake.set_shareable(true);
    fake.set_kernel(std::move(kernel));
    if (seating == Seating::threads) fake.set_devices(seat.ranks());
    if (seating == Seating::pairs) fake.set_devices(2);
    if (seating == Seating::processes) fake.set_first_device(rank);
    if (seating == Seating::pairs) fake.set_first_device(rank);
    if (seating == Seating::pairs_on_a_gpu) fake.set_first_device(rank / 2);
  }
  if (seating == Seating::threads) return rank;
  return seating == Seating::pairs ? rank % 2 : 0;
}

/// Calls that the stream waits for the host in.
inline int waits_for_host() {
  return fake_cuda(library).calls("cuStreamWaitValue32");
}

using MeetingBody = std::function<void(Seat&, CudaUser&, tuttiComm_t)>;

/// Each rank with its own GPU (or its share of one) and a communicator of all.
inline void in_seats(const Team& team, Seating seating, const MeetingBody& body,
                     const std::function<FakeKernel()>& kernel = bodies) {
  launch_ranks(team, [&](Seat& seat) {
    const int gpu = choose_gpu(seat, seating, kernel());
    if (!seat.meet()) return;
    CudaUser user(library, gpu);
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    body(seat, user, comm);
    if (!seat.meet()) return;
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    if (!seat.meet()) return;
    EXPECT_EQ(fake_cuda(library).live().misuse, 0);
    EXPECT_EQ(fake_cuda(library).live().mapped, 0);
  });
}

/// Waits for an error that nobody asked for; the team's limit ends it.
inline tuttiResult_t await_error(tuttiComm_t comm) {
  tuttiResult_t result = tuttiSuccess;
  while (result == tuttiSuccess && !::testing::Test::HasFailure()) {
    EXPECT_TRUE(ok(tuttiCommGetAsyncError(comm, &result)));
    std::this_thread::yield();
  }
  return result;
}

inline void expect_sum(const OneRank& one, int ranks, int round = 0) {
  one.user->synchronize(one.stream);
  ASSERT_EQ(one.user->get(one.output, one.count), sums(one.count, ranks, round));
}

}  // namespace tutti::testing
