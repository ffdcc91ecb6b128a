// NCCL for comparison: loaded at run time, with the functions of its C interface that an all-reduce needs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "perf/gpu/team.h"

namespace perf {

/// Several ranks on one GPU, which NCCL allows since 2.30 if NCCL_MULTI_RANK_GPU_ENABLE is set; this class sets it
/// unless it is already set. The ranks' kernels wait for each other on the GPU, so each rank needs its own stream.
class NcclTeam final : public Team {
 public:
  /// `library`: libnccl.so. Uses the current GPU.
  NcclTeam(const std::string& library, std::size_t ranks);
  ~NcclTeam() override;
  NcclTeam(const NcclTeam&) = delete;
  NcclTeam& operator=(const NcclTeam&) = delete;

  void call(const Sums& sums, const GpuQueue& queue) const override;
  /// "nccl" and its version.
  std::string algorithm() const override;

 private:
  struct Functions;
  void must(int status, const char* function) const;

  std::unique_ptr<const Functions> nccl_;
  int version_ = 0;
  std::vector<void*> comms_;
};

}  // namespace perf
