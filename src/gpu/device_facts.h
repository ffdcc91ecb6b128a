// What a communicator's start has found out about its GPUs, as far as it decides by which path calls go. Equal on all
// ranks that have a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti {

/// How kernels of the ranks' GPUs work together.
enum class DeviceReach : std::uint8_t {
  none,           ///< not at all: calls on device memory go through the host
  single_launch,  ///< all ranks share one GPU and process: one launch serves all
  synchronising,  ///< kernels wait for each other: each GPU's have met those of all others
  released,       ///< kernels access peers' memory, but may not wait for each other: the host releases them
};

struct DeviceFacts {
  DeviceReach reach = DeviceReach::none;
  bool messages_by_kernels = false;    ///< synchronising kernels also carry out sends and receives
  bool windows = false;                ///< synchronising kernels may access peers' buffers
  std::size_t released_bytes_min = 0;  ///< of a group: smaller ones are faster through the host
  std::size_t window_bytes_min = 0;    ///< likewise: finding out whether all ranks offer their buffers costs more
};

}  // namespace tutti
