#include "topology/sources/read.h"

#include <fmt/format.h>

#include "base/file.h"
#include "topology/sources/hwloc_source.h"
#include "topology/sources/nccl_xml.h"
#include "topology/sources/xml.h"

namespace tutti::topology {
namespace {

constexpr std::string_view synthetic = "synthetic:";

/// The name of the first element; empty if the text is not XML.
std::string_view root_of(std::string_view text) {
  while (true) {
    const std::size_t open = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    if (open == std::string_view::npos || text[open] != '<') return {};
    text.remove_prefix(open);
    const bool comment = text.starts_with("<!--");
    if (!comment && !text.starts_with("<?") && !text.starts_with("<!")) break;
    const std::size_t end = text.find(comment ? "-->" : ">");
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + (comment ? 3 : 1));
  }
  text.remove_prefix(1);
  return text.substr(0, text.find_first_of(" \t\r\n/>"));
}

Result<Topology> read_any(std::string_view text) {
  const std::string_view root = root_of(text);
  if (root == "topology") return read_hwloc(text);
  if (root == "system" || root == "cpu" || root == "pci") return read_nccl(text);
  const auto refused = [](std::string_view why) {
    return Error{.code = Code::invalid_argument, .what = fmt::format("line 1: {}", why)};
  };
  if (root == "graphs") return refused("these are channels that NCCL chose, not a machine");
  if (!root.empty())
    return refused(fmt::format("<{}> is not a machine written by NCCL, RCCL or hwloc", root.substr(0, 40)));
  if (text.starts_with("<") || text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return refused("there is nothing in it");
  auto matrix = read_smi(text);
  if (matrix || matrix.error().what.find("no matrix") == std::string::npos) return matrix;
  return refused("neither XML nor a matrix of nvidia-smi topo -m");
}

}  // namespace

Result<Topology> read(std::string_view text, const std::string& origin) {
  auto topology = read_any(text);
  if (!topology) return std::move(topology).error().during(origin);
  if (const std::size_t count = topology->gpus().size(); count > machine_gpus_max)
    return Error{
        .code = Code::invalid_argument,
        .what = fmt::format("{}: {} GPUs; at most {} can be shown, leave some out", origin, count, machine_gpus_max)};
  topology->origin = origin;
  return topology;
}

Result<Topology> read_machine(const std::string& path, FileKind kind) {
  if (path.starts_with(synthetic)) {
    auto topology = read_synthetic(std::string_view(path).substr(synthetic.size()));
    if (topology) topology->origin = path;
    return topology;
  }
  const auto text = TUTTI_TRY(read_file(path, file_bytes_max, kind));
  return read(text, path);
}

}  // namespace tutti::topology
