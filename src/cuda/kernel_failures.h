// Makes the kernels of an engine give up, and says why they did.
#pragma once

#include <optional>
#include <vector>

#include "cuda/resources.h"
#include "kernels/entries.h"
#include "plan/types.h"

namespace tutti::cuda {

/// What kernels and the host share in pinned memory: the abort word, and a record for each local rank and channel.
/// Thread-safe.
class KernelFailures {
 public:
  KernelFailures() = default;
  /// `limit_ns`: how long a kernel waits for a peer. The context must be current. Errors: cuda.
  static Result<KernelFailures> make(const SharedGpu& gpu, std::vector<Rank> local, int channels,
                                     std::int64_t limit_ns);

  /// Makes waiting kernels give up soon.
  void abort();
  /// Some ranks make no calls any more, though others may: makes kernels give up that wait for long
  /// (device::AbortWord::some_gone).
  void say_some_gone();

  /// Why a kernel gave up: which rank waited for which peer, on which channel, at which step. Empty if none did.
  std::optional<Error> trouble() const;
  /// Two ranks whose calls differ, found by the kernel of one of them.
  struct Difference {
    Rank rank = 0;
    Rank peer = 0;
    std::uint64_t own = 0;  ///< CollectiveJob::signature
    std::uint64_t theirs = 0;
  };
  std::optional<Difference> difference() const;

  // ---- At addresses of the GPU ----

  std::uint32_t* abort_word() const { return reinterpret_cast<std::uint32_t*>(shared_.device()); }
  device::ErrorRecord* records(std::size_t local) const { return records(shared_.device(), local); }

 private:
  struct Found {
    const device::ErrorRecord* record = nullptr;  // null: none
    std::uint32_t state = 0;
    Rank rank = 0;
    int channel = 0;
  };
  Found worst_record() const;
  device::ErrorRecord* records(std::byte* base, std::size_t local) const {
    return reinterpret_cast<device::ErrorRecord*>(base + records_offset) + local * static_cast<std::size_t>(channels_);
  }
  static constexpr std::size_t records_offset = 128;  // the abort word has a cache line to itself

  PinnedMemory shared_;  // the abort word, then the records
  std::vector<Rank> local_;
  int channels_ = 0;
  std::int64_t limit_ns_ = 0;
  Ordinal ordinal_ = 0;
};

}  // namespace tutti::cuda
