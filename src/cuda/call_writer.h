// Writes the argument of a kernel: what all calls of an engine say, and what one call says.
#pragma once

#include <vector>

#include "cuda/job.h"
#include "cuda/reduction.h"
#include "kernels/area.h"

namespace tutti::cuda {

/// Each function writes into a device::Call of zeros.
struct CallWriter {
  /// The kernel that runs the plans of all ranks.
  device::Body body_of(const Job& job, std::span<const Part> parts) const;
  /// Scratch memory is that of the parts.
  void write(device::Call& call, device::Body body, const Job& job, std::span<const Part> parts,
             std::span<const device::PeerBuffers> buffers) const;
  void write(device::Call& call, const Pass& pass) const;
  /// All but the messages themselves.
  void write(device::Call& call, const MessagesJob& job) const;

  struct LocalRank {
    Rank rank = 0;
    device::Link* links = nullptr;
    device::Link* message_links = nullptr;  ///< null unless it can send and receive
    device::ErrorRecord* errors = nullptr;
  };
  std::vector<LocalRank> local;    ///< in the order of a call's parts
  int ranks = 1;                   ///< of the communicator
  int channels = 1;                ///< blocks that a rank may use
  device::Area area = {};          ///< of collectives
  device::Area message_area = {};  ///< of sends and receives
  std::uint32_t* abort = nullptr;
  std::int64_t limit_ns = 0;
  bool specialised = true;    ///< as EngineShape's
  bool synchronises = false;  ///< as EngineShape's

 private:
  static constexpr std::size_t channel_bytes_min = 16 * 1024;
  void write_common(device::Call& call, const device::Area& through) const;
  std::size_t write_windows(device::Call& call, const Job& job, std::span<const Part> parts) const;
  std::uint32_t channels_for(std::size_t tiles) const;
};

}  // namespace tutti::cuda
