// Writes the argument of a kernel: what all calls of an engine say, and what one call says.
#pragma once

#include "cuda/job.h"
#include "cuda/kernel_failures.h"
#include "cuda/local_links.h"
#include "cuda/reduction.h"

namespace tutti::cuda {

/// Each function writes into a device::Call of zeros.
struct CallWriter {
  /// The kernel that runs the plans of all ranks.
  device::Body body_of(const CollectiveJob& job, Parts parts) const;
  /// Scratch memory is that of the parts.
  void write(device::Call& call, device::Body body, const CollectiveJob& job, Parts parts, Buffers buffers) const;
  void write(device::Call& call, const Pass& pass) const;
  /// All but the messages themselves.
  void write(device::Call& call, const MessagesJob& job) const;

  const EngineShape& shape;
  const LocalLinks& links;
  const KernelFailures& failures;

 private:
  static constexpr std::size_t channel_bytes_min = 16 * 1024;
  void write_common(device::Call& call, const device::Area& through) const;
  std::size_t write_windows(device::Call& call, const CollectiveJob& job, Parts parts) const;
  /// Blocks that a rank may use.
  int channels() const { return static_cast<int>(links.area.channels); }
  std::uint32_t channels_for(std::size_t tiles) const;
};

}  // namespace tutti::cuda
