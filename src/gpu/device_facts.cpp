#include "gpu/device_facts.h"

#include <fmt/format.h>

namespace tutti {

std::string text_of(const DeviceFacts& facts) {
  const std::string by_host =
      "by a copy to host memory that peers can map, then as a call on memory from tuttiMemAlloc, then by a copy back";
  switch (facts.reach) {
    case DeviceReach::none: return by_host;
    case DeviceReach::single_launch: return "by a kernel, through the memory of the GPU";
    case DeviceReach::synchronising:
      return "by kernels that wait for each other on the GPUs" +
             (facts.messages_by_kernels ? std::string() : "; sends and receives " + by_host);
    case DeviceReach::released: break;
  }
  const std::string by_peers = "by kernels of each rank, which access the memory of peers' GPUs";
  if (facts.released_bytes_min == 0) return by_peers;
  return fmt::format("groups of {} KiB and more {}; smaller ones {}", facts.released_bytes_min / 1024, by_peers,
                     by_host);
}

}  // namespace tutti
