// PCI addresses, classes and link rates, in the notations of the various sources.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "topology/graph/topology.h"

namespace tutti::topology {

/// "0000:81:00.0" from any notation: 00000000:81:00.0, 81:00.0, upper case, without a function. Nothing if it is not an
/// address.
std::optional<std::string> bus_id_of(std::string_view text);

/// The kind of a function by class (0x030200), vendor and product: gpu, nvswitch, nic, bridge, else function. Devices
/// that only drive a display are not GPUs: older AMD devices, and those on server boards.
DeviceKind kind_of(std::uint32_t pci_class, std::uint32_t vendor, std::uint32_t product);

/// "0x10de", "10de"; nothing if it is not a number.
std::optional<std::uint32_t> hex_of(std::string_view text);

/// GB/s of a PCI link in each direction, by NCCL's table, which subtracts headers. `speed` begins like "16 GT/s" or
/// "16.0 GT/s PCIe"; otherwise 8 GT/s is assumed. Width 0 means 16.
double pci_gbps(std::string_view speed, int width);

}  // namespace tutti::topology
