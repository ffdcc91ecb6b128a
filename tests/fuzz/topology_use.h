// What the fuzz targets of recorded machines do with a machine that was read, and with a refusal.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "analysis/pictures/picture.h"
#include "analysis/pictures/report.h"
#include "topology/graph/cpus.h"
#include "topology/graph/path.h"
#include "topology/search/placement.h"
#include "topology/search/search.h"
#include "topology/search/warnings.h"
#include "topology/sources/nccl_xml.h"
#include "topology/sources/read.h"
#include "topology/sources/write.h"

namespace tutti::testing {

/// Of so many machines that libFuzzer makes one is drawn and written, which takes hundreds of times as long as reading
/// it; tests do so with all.
#ifdef TUTTI_LIBFUZZER
inline constexpr std::uint32_t one_used_of = 2048;
#else
inline constexpr std::uint32_t one_used_of = 1;
#endif

/// Decided by the text, so that what crashed once crashes again.
inline bool is_used(std::string_view text) {
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return (hash >> 8) % one_used_of == 0;
}

/// Every refusal says where or of what.
inline void check(const Error& error) {
  if (error.code == Code::invalid_argument && error.what.find(": ") != std::string::npos) return;
  std::fprintf(stderr, "refused without a place: %s\n", error.text().c_str());
  std::abort();
}

/// What was read of `text` can be printed and drawn, and is read again as a machine with as many GPUs.
inline void use(const topology::Topology& machine, std::string_view text) {
  if (!is_used(text)) return;
  if (topology::warnings(machine).size() > machine.devices.size() * 1000 + 1000) std::abort();
  if (topology::tree_text(machine).empty() && !machine.devices.empty()) std::abort();
  if (machine.gpus().size() > 6 || machine.nics().size() > 8 || machine.devices.size() > 200) return;
  if (topology::matrix_text(machine).empty()) std::abort();
  bool many = false;
  for (const topology::Link& link : machine.links) many = many || link.count > 8;
  const topology::Search found = many || machine.gpus().size() > 4 ? topology::Search{} : topology::search(machine);
  if (topology::picture(machine, found).size() < 100 || topology::json(machine, found).size() < 10) std::abort();
  const std::vector<int> gpus = machine.gpus();
  // hwloc's format names all CPUs below the highest with each CPU: 16 MiB are full at 4,000.
  for (const topology::Device& device : machine.devices)
    if (const auto cpus = topology::cpus_of_list(device.cpus); !cpus.empty() && cpus.back() >= 1024) return;
  // Partitions share an address, which it has no word for.
  for (const int gpu : gpus)
    if (!machine[gpu].partition.empty()) return;
  if (const auto again = topology::read_hwloc(topology::write_hwloc(machine));
      !again || again->gpus().size() != gpus.size())
    std::abort();
  if (machine.of_kind(topology::DeviceKind::numa).empty()) return;
  if (const auto again = topology::read_nccl(topology::write_nccl(machine));
      again && again->gpus().size() != gpus.size())
    std::abort();
}

}  // namespace tutti::testing
