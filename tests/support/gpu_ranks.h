// Ranks with buffers on the fake driver's GPUs, for tests of the C API.
#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/entries.h"
#include "support/cuda_user.h"
#include "support/launch_ranks.h"

namespace tutti::testing {

/// The real driver instead, for those tests that the fake is not told anything in: tools/gpu-check names them.
inline const char* const real_library = std::getenv("TUTTI_TEST_CUDA");
inline const char* const library = real_library != nullptr ? real_library : TUTTI_FAKE_CUDA;

inline Team launch_group(int ranks, Layout layout, const std::vector<std::string>& more = {}) {
  Team team{.ranks = ranks, .layout = layout};
  for (const char* const name : {"TUTTI_CUDA_LIBRARY=", "TUTTI_CUDA_KERNELS="}) {
    team.environment.emplace_back(name);
    if (real_library == nullptr) team.environment.back() += library;
  }
  for (const std::string& setting : more) team.environment.push_back(setting);
  return team;
}

/// What an all-reduce of int32 means, whatever the plan: the host's half is tested without the kernels.
inline cuda::Status sum_kernel(const std::string&, const std::byte* argument, unsigned, unsigned) {
  device::Call call;
  std::memcpy(&call, argument, sizeof call);
  if (std::atomic_ref<std::uint32_t>(*call.abort).load(std::memory_order_acquire) != 0) return 0;
  std::vector<std::int32_t> sum(call.cut.count, 0);
  for (unsigned rank = 0; rank < call.ranks; ++rank)
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += reinterpret_cast<const std::int32_t*>(call.buffers[rank].input)[i];
  for (unsigned i = 0; i < call.local_ranks; ++i)
    std::memcpy(call.local[i].output, sum.data(), sum.size() * sizeof(std::int32_t));
  return 0;
}

inline std::vector<std::int32_t> numbers(std::size_t count, int rank, int round = 0) {
  std::vector<std::int32_t> all(count);
  std::iota(all.begin(), all.end(), 1000 * rank + 7 * round);
  return all;
}

inline std::vector<std::int32_t> sums(std::size_t count, int ranks, int round = 0) {
  std::vector<std::int32_t> all(count, 0);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto one = numbers(count, rank, round);
    for (std::size_t i = 0; i < count; ++i) all[i] += one[i];
  }
  return all;
}

/// Kernels launched in this process.
inline int launches() {
  return fake_cuda(library).calls("cuLaunchKernel") + fake_cuda(library).calls("cuLaunchCooperativeKernel");
}

/// A rank's buffers on the GPU, its stream, and its all-reduce.
struct OneRank {
  OneRank(CudaUser& on, tuttiComm_t with, int number, std::size_t elements)
      : user(&on), comm(with), rank(number), count(elements), stream(on.stream()) {
    input = on.put(numbers(count, rank));
    output = on.put(std::vector<std::int32_t>(count, -1));
  }
  tuttiResult_t all_reduce() const {
    return tuttiAllReduce(input, output, count, tuttiInt32, tuttiSum, comm, tuttiCudaStream(stream));
  }
  CudaUser* user;
  tuttiComm_t comm;
  int rank;
  std::size_t count;
  cuda::Stream stream;
  std::int32_t* input = nullptr;
  std::int32_t* output = nullptr;
};

/// Of a seat that drives all ranks: all of them in one group.
inline void all_reduce(const std::vector<OneRank>& ranks) {
  ASSERT_TRUE(ok(tuttiGroupStart()));
  for (const OneRank& one : ranks) ASSERT_TRUE(ok(one.all_reduce()));
  ASSERT_TRUE(ok(tuttiGroupEnd()));
}

inline std::vector<OneRank> make_ranks(CudaUser& user, const Seat& seat, const std::vector<tuttiComm_t>& comms,
                                       std::size_t count) {
  std::vector<OneRank> ranks;
  for (std::size_t i = 0; i < comms.size(); ++i) ranks.emplace_back(user, comms[i], seat.here()[i], count);
  return ranks;
}

inline void destroy(const std::vector<tuttiComm_t>& comms) {
  for (auto* const comm : comms) EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
}

}  // namespace tutti::testing
