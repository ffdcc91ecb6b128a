#include "place/ring_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "topology/sources/nccl_xml.h"

namespace tutti {
namespace {

constexpr int ring_pattern = 4;  // as NCCL numbers them

Error refused(std::string what) {
  return {.code = Code::invalid_argument, .what = std::move(what)};
}

}  // namespace

Result<std::vector<int>> read_ring(const std::string& path) {
  auto text = read_file(path);
  if (!text) return std::move(text).error();
  auto graphs = topology::read_graphs(*text);
  if (!graphs) return std::move(graphs).error();
  const auto ring = std::ranges::find(*graphs, ring_pattern, &topology::Graph::pattern);
  if (ring == graphs->end() || ring->channels.empty()) return refused("it has no ring (a <graph> of pattern 4)");
  std::vector<int> order = ring->channels[0].gpus, sorted = order;
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int>(i))
      return refused(fmt::format("its first channel does not name each of {} GPUs, from 0 on, once", sorted.size()));
  return order;
}

Result<void> write_ring(const std::string& path, const std::vector<int>& ring) {
  const topology::Graph graph{.pattern = ring_pattern,
                              .same_channels = true,
                              .intra_kind = "SYS",
                              .inter_kind = "SYS",
                              .channels = {{.gpus = ring}}};
  return write_file(path, topology::write_graphs({&graph, 1}));
}

}  // namespace tutti
