// A rank's GPU during the start: whether it can access the memory of the others' GPUs, and whether its kernels run at
// the same time as theirs.
#pragma once

#include <cstdint>
#include <memory>

#include "call/operation.h"
#include "gpu/gpu_context.h"
#include "init/peer_info.h"
#include "init/phases/gpu_proof.h"

namespace tutti::start {

struct Facts;

/// To be called in this order.
class GpuSetup {
 public:
  /// Writes this rank's GPU into its greeting. One that cannot be shared does not keep its rank from joining.
  void offer(const Facts& facts, PeerInfo& info);
  /// Tests access to the memory of all others, then launches a kernel that waits for those of all others, where kernels
  /// may do so. Needs the areas of all ranks.
  void reach(const Facts& facts);
  /// Whether such a kernel is under way, or has met all others.
  bool synchronizes() const { return group_ != nullptr; }
  /// `done`: the kernel has ended, or will not; synchronizes() says how it went.
  Progress advance(const Facts& facts);
  /// When to look again: kernels ring no doorbell.
  static std::int64_t next_look_ns(const Facts& facts);
  /// Whether this rank's GPU can access the memory of all others.
  bool reaches() const { return reaches_ && proof_ != nullptr; }

  /// Once all ranks have said what they can: what the communicator keeps of it.
  GpuStart keep(bool all_reach, bool all_synchronize);

 private:
  void launch(const Facts& facts, int channels);
  void give_up(const Facts& facts, const Error& why);

  /// Kept until all ranks have finished their tests.
  std::unique_ptr<GpuProof> proof_;
  bool reaches_ = true;
  std::shared_ptr<LaunchGroup> group_;  ///< whose kernels synchronise with those of other ranks; null: they do not
  std::int64_t until_ns_ = 0;           ///< of the wait for the kernel; 0: it has not begun
};

}  // namespace tutti::start
