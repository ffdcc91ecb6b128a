// PCI addresses, classes and link rates, as the many sources spell them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "topology/graph/topology.h"

namespace tutti::topology {

/// "0000:81:00.0" of any spelling: 00000000:81:00.0, 81:00.0, upper case, no function. Nothing where it is no address.
std::optional<std::string> bus_id_of(std::string_view text);

/// What a function is by class (0x030200), vendor and product: gpu, nvswitch, nic, bridge, else function. What only
/// drives a screen is no GPU: older cards of AMD, and what server boards have.
DeviceKind kind_of(std::uint32_t pci_class, std::uint32_t vendor, std::uint32_t product);

/// "0x10de", "10de": nothing where it is no number.
std::optional<std::uint32_t> hex_of(std::string_view text);

/// GB/s each way that a PCI link gives: NCCL's table, which leaves out what headers take. `speed` begins like
/// "16 GT/s" or "16.0 GT/s PCIe", 8 GT/s where it does not; width 0 is 16.
double pci_gbps(std::string_view speed, int width);

}  // namespace tutti::topology
