#include "analysis/pictures/picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "topology/graph/path.h"
#include "topology/search/warnings.h"

namespace tutti::topology {
namespace {

constexpr double margin = 28, tree_width = 1500;
constexpr std::size_t matrix_max = 40;  // larger ones are unreadable

constexpr std::string_view style =
    "text{font-family:Inter,'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#2b2f36}\n"
    ".head{font-size:20px;font-weight:600}.sub{font-size:12px;fill:#6b7280}\n"
    ".title{font-size:12px;font-weight:600;fill:#3f4652}.text{font-size:11px;fill:#3f4652}\n"
    ".name{font-size:12px;font-weight:600}.plain{font-weight:500}.small{font-size:9.5px;fill:#6b7280}\n"
    ".switch-name{font-size:10px;font-weight:600;fill:#ffffff}.cell{font-size:9px}\n"
    ".package{fill:#eef1f6;stroke:#aab4c5;stroke-width:1.4}.numa{fill:#ffffff;stroke:#c5cddb;stroke-width:1.2}\n"
    ".cpu{fill:#b9c6dd}.bar{fill:#66738a}.switch{fill:#55627a}.root{fill:#8793a8}\n"
    ".gpu{fill:#e4f4e6;stroke:#3c9a55;stroke-width:1.4}.nic{fill:#fdf1dc;stroke:#d49a32;stroke-width:1.4}\n"
    ".function{fill:#f3f4f6;stroke:#c4c9d1}.pci{stroke:#66738a;stroke-linecap:butt}.unknown{stroke-dasharray:2 2}\n"
    ".cpus{stroke:#8793a8}.band{stroke:#d5dae3;stroke-linecap:round}.odd{stroke:#f0b8a8}\n"
    ".warn{fill:#fff6e0;stroke:#e0b64f}.warning{font-size:11px;fill:#7a5a10}\n"
    ".LOC{fill:#eceff3}.NV{fill:#b8e0bf}.PIX{fill:#d9efc2}.PXB{fill:#eef3bd}.PHB{fill:#fdeab0}.NODE{fill:#fbd7a5}\n"
    ".SYS{fill:#f4c1a9}.DIS{fill:#e5e7eb}\n";

std::string_view style_of(std::string_view cell) {
  if (cell == "X") return "LOC";
  if (cell.starts_with("NV")) return "NV";
  for (const std::string_view kind : {"PIX", "PXB", "PHB", "NODE", "SYS"})
    if (cell == kind) return kind;
  return "DIS";
}

std::string summary(const Topology& topology) {
  std::string text;
  const auto add = [&](DeviceKind kind, std::string_view one, std::string_view many) {
    const std::size_t count = topology.of_kind(kind).size();
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : " · ", count, count == 1 ? one : many);
  };
  add(DeviceKind::package, "CPU package", "CPU packages");
  add(DeviceKind::numa, "NUMA node", "NUMA nodes");
  add(DeviceKind::gpu, "GPU", "GPUs");
  add(DeviceKind::nvswitch, "NVSwitch", "NVSwitches");
  add(DeviceKind::nic, "NIC", "NICs");
  if (!topology.nvlink_known && !topology.gpus().empty()) text += " · NVLinks are not known";
  return text;
}

Box draw_warnings(Canvas& canvas, const Topology& topology, Point corner, double width) {
  const std::vector<std::string> lines = warnings(topology);
  if (lines.empty()) return {corner.x, corner.y, 0, 0};
  constexpr std::size_t shown_max = 8;
  const std::size_t shown = std::min(lines.size(), shown_max);
  double widest = 0;
  for (std::size_t at = 0; at < shown; ++at) widest = std::max(widest, text_width(lines[at], 11));
  const Box box{corner.x, corner.y, std::min(width, widest + 24),
                16.0 * static_cast<double>(shown + (lines.size() > shown ? 1 : 0)) + 14};
  canvas.rectangle(box, 8, "warn");
  for (std::size_t at = 0; at < shown; ++at)
    canvas.text({corner.x + 12, corner.y + 20 + 16.0 * static_cast<double>(at)},
                shortened(lines[at], static_cast<std::size_t>(width / 6)), "warning");
  if (lines.size() > shown)
    canvas.text({corner.x + 12, corner.y + 20 + 16.0 * static_cast<double>(shown)},
                fmt::format("and {} more", lines.size() - shown), "warning");
  return box;
}

/// The matrix of paths. Returns the area used.
Box draw_matrix(Canvas& canvas, const Topology& topology, Point corner) {
  const std::vector<int> devices = matrix_devices(topology);
  if (devices.size() < 2 || devices.size() > matrix_max) return {corner.x, corner.y, 0, 0};
  constexpr double cell_width = 36, cell_height = 20, names = 70, top = 22;
  for (std::size_t row = 0; row < devices.size(); ++row) {
    const double y = corner.y + top + static_cast<double>(row) * cell_height;
    canvas.text({corner.x + names - 6, y + 14}, shortened(topology[devices[row]].name, 11), "small", "end");
    for (std::size_t column = 0; column < devices.size(); ++column) {
      const double x = corner.x + names + static_cast<double>(column) * cell_width;
      if (row == 0)
        canvas.text({x + cell_width / 2, corner.y + 16}, shortened(topology[devices[column]].name, 7), "cell",
                    "middle");
      const std::string kind = cell(topology, devices[row], devices[column]);
      canvas.rectangle({x, y, cell_width - 1.5, cell_height - 1.5}, 2, style_of(kind));
      if (kind != "X") canvas.text({x + cell_width / 2 - 1, y + 13}, kind, "cell", "middle");
    }
  }
  const auto count = static_cast<double>(devices.size());
  return {corner.x, corner.y, names + count * cell_width, top + count * cell_height};
}

}  // namespace

std::string picture(const Topology& topology, const Search& search) {
  Canvas canvas;
  const std::string named = topology.origin == "live"
                                ? "This machine"
                                : shortened(topology.origin.substr(topology.origin.rfind('/') + 1), 80);
  canvas.text({margin, margin + 16}, named, "head");
  canvas.text({margin, margin + 36}, summary(topology), "sub");
  const Box tree = draw_tree(canvas, topology, {margin, margin + 54}, tree_width);
  double width = std::max(tree.width, 420.0), y = tree.y + tree.height + 34;
  const Box links = draw_links(canvas, topology, search, {margin, y});
  width = std::max(width, links.width);
  Canvas unseen;
  const Box probe = draw_matrix(unseen, topology, {});
  const bool beside = links.width > 0 && links.width + 40 + probe.width <= std::max(width, tree_width);
  const Point corner =
      beside ? Point{margin + links.width + 40, y} : Point{margin, links.width > 0 ? y + links.height + 30 : y};
  const Box matrix = draw_matrix(canvas, topology, corner);
  width = std::max(width, matrix.x + matrix.width - margin);
  if (links.width > 0) y = links.y + links.height + 26;
  if (matrix.width > 0) y = std::max(y, matrix.y + matrix.height + 26);
  const Box words = draw_warnings(canvas, topology, {margin, y}, width);
  return canvas.finish(width + 2 * margin, words.y + words.height + (words.width > 0 ? margin : 0), style, named);
}

}  // namespace tutti::topology
