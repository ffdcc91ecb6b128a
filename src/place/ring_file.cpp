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

Result<std::vector<std::vector<int>>> read_rings(const std::string& path) {
  auto text = TUTTI_TRY(read_file(path));
  auto graphs = TUTTI_TRY(topology::read_graphs(text));
  const auto graph = std::ranges::find(graphs, ring_pattern, &topology::Graph::pattern);
  if (graph == graphs.end() || graph->channels.empty()) return refused("it has no ring (a <graph> of pattern 4)");
  const std::size_t gpus = graph->channels[0].gpus.size();
  std::vector<std::vector<int>> rings;
  for (std::size_t at = 0; at < graph->channels.size(); ++at) {
    std::vector<int> sorted = graph->channels[at].gpus;
    std::ranges::sort(sorted);
    for (std::size_t i = 0; i < gpus; ++i)
      if (sorted.size() != gpus || sorted[i] != static_cast<int>(i))
        return refused(fmt::format("channel {} of its ring does not name each of {} GPUs, from 0 on, once", at, gpus));
    // NCCL writes channels twice that have twice the links.
    if (std::ranges::find(rings, graph->channels[at].gpus) == rings.end()) rings.push_back(graph->channels[at].gpus);
  }
  return rings;
}

Result<void> write_rings(const std::string& path, const std::vector<std::vector<int>>& rings) {
  topology::Graph graph{.pattern = ring_pattern, .same_channels = true, .intra_kind = "SYS", .inter_kind = "SYS"};
  for (const auto& ring : rings) graph.channels.push_back({.gpus = ring});
  return write_file(path, topology::write_graphs({&graph, 1}));
}

}  // namespace tutti
