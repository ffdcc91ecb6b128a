// Any call on device memory of the fake driver, by all ranks of one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/call.h"
#include "support/counts_call.h"
#include "support/gpu_ranks.h"

namespace tutti::testing {

/// All ranks of `comms` in one group; "" or what was wrong.
inline std::string run_on_gpu(const Call& call, const Seat& seat, const std::vector<tuttiComm_t>& comms,
                              const CudaUser& user, cuda::Stream stream, int times) {
  std::vector<std::unique_ptr<CallOnRank>> ranks;
  for (const int rank : seat.here()) ranks.push_back(std::make_unique<CallOnRank>(call, rank, seat.ranks()));
  for (int time = 0; time < times; ++time) {
    for (auto& rank : ranks) rank->fill(call.seed + static_cast<std::uint64_t>(time));
    if (!ok(tuttiGroupStart())) return "no group";
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (const auto submitted = ok(ranks[i]->submit(comms[i], tuttiCudaStream(stream))); !submitted)
        return submitted.message();
    if (const auto ended = ok(tuttiGroupEnd()); !ended) return ended.message();
    user.synchronize(stream);
    for (auto& rank : ranks)
      if (auto wrong = rank->check(); !wrong.empty()) return wrong;
  }
  return "";
}

/// The same of one with a count per rank, once.
inline std::string run_counts_on_gpu(const CountsCall& call, const Seat& seat, const std::vector<tuttiComm_t>& comms,
                                     const CudaUser& user, cuda::Stream stream) {
  std::vector<std::unique_ptr<CountsOnRank>> ranks;
  for (const int rank : seat.here()) ranks.push_back(std::make_unique<CountsOnRank>(call, rank, seat.ranks()));
  if (!ok(tuttiGroupStart())) return "no group";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (const auto submitted = ok(ranks[i]->submit(comms[i], tuttiCudaStream(stream))); !submitted)
      return submitted.message();
  if (const auto ended = ok(tuttiGroupEnd()); !ended) return ended.message();
  user.synchronize(stream);
  for (auto& rank : ranks)
    if (auto wrong = rank->check(); !wrong.empty()) return wrong;
  return "";
}

}  // namespace tutti::testing
