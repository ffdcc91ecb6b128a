// Reads and writes the channels of NCCL_GRAPH_DUMP_FILE and NCCL_GRAPH_FILE.
#include <fmt/format.h>

#include <charconv>

#include "topology/graph/pci.h"
#include "topology/sources/nccl_xml.h"
#include "topology/sources/xml.h"

namespace tutti::topology {
namespace {

constexpr int channels_max = 4096, channel_devices_max = 4096;

double gbps(Xml& xml, const pugi::xml_node& node, const char* name) {
  const std::string text = xml.text(node, name);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!text.empty() && (code != std::errc() || end != text.data() + text.size() || !(value >= 0) || value > 1e6))
    xml.refuse(node, fmt::format("{} is \"{}\", not a rate", name, text.substr(0, 40)));
  return value;
}

GraphChannel channel(Xml& xml, const pugi::xml_node& node) {
  GraphChannel read;
  for (const pugi::xml_node& device : elements(node)) {
    if (static_cast<int>(read.gpus.size()) > channel_devices_max) {
      xml.refuse(device, fmt::format("a channel of more than {} devices", channel_devices_max));
      return read;
    }
    // Numbers here are hexadecimal if they begin with 0x.
    const std::string text = xml.text(device, "dev");
    const bool hex = text.starts_with("0x");
    int dev = -1;
    const char* const first = text.data() + (hex ? 2 : 0);
    const auto [end, code] = std::from_chars(first, text.data() + text.size(), dev, hex ? 16 : 10);
    if (code != std::errc() || end != text.data() + text.size() || dev < 0)
      xml.refuse(device, fmt::format("<{}>: dev \"{}\" is not a number", device.name(), text.substr(0, 40)));
    const std::string_view what = device.name();
    if (what == "gpu") read.gpus.push_back(dev);
    if (what == "net") (read.gpus.empty() ? read.net_in : read.net_out) = dev;
  }
  return read;
}

}  // namespace

Result<std::vector<Graph>> read_graphs(std::string_view text) {
  auto parsed = TUTTI_TRY(Xml::parse(text));
  Xml& xml = *parsed;
  if (std::string_view(xml.root().name()) != "graphs") xml.refuse(xml.root(), "the file is not a <graphs>");
  std::vector<Graph> graphs;
  int channels = 0;
  for (const pugi::xml_node& node : elements(xml.root())) {
    Graph graph{.id = xml.number_or(0, node, "id", 0, 1000),
                .pattern = xml.number_or(0, node, "pattern", 0, 1000),
                .cross_nic = xml.number_or(0, node, "crossnic", 0, 2),
                .same_channels = xml.number_or(0, node, "samechannels", 0, 1) == 1,
                .intra_gbps = gbps(xml, node, "speedintra"),
                .inter_gbps = gbps(xml, node, "speedinter"),
                .intra_kind = xml.text(node, "typeintra"),
                .inter_kind = xml.text(node, "typeinter")};
    for (const pugi::xml_node& child : elements(node)) {
      if (++channels > channels_max) xml.refuse(child, fmt::format("there are more than {} channels", channels_max));
      if (xml.failed()) return xml.error();
      graph.channels.push_back(channel(xml, child));
    }
    graphs.push_back(std::move(graph));
  }
  if (xml.failed()) return xml.error();
  return graphs;
}

std::string write_graphs(std::span<const Graph> graphs) {
  std::string text = "<graphs version=\"1\">\n";
  for (const Graph& graph : graphs) {
    text += fmt::format(
        "  <graph id=\"{}\" pattern=\"{}\" crossnic=\"{}\" nchannels=\"{}\" speedintra=\"{}\" speedinter=\"{}\" "
        "latencyinter=\"0\" typeintra=\"{}\" typeinter=\"{}\" samechannels=\"{}\">\n",
        graph.id, graph.pattern, graph.cross_nic, graph.channels.size(), graph.intra_gbps, graph.inter_gbps,
        graph.intra_kind, graph.inter_kind, graph.same_channels ? 1 : 0);
    for (const GraphChannel& one : graph.channels) {
      text += "    <channel>\n";
      if (one.net_in >= 0) text += fmt::format("      <net dev=\"{}\"/>\n", one.net_in);
      for (const int gpu : one.gpus) text += fmt::format("      <gpu dev=\"{}\"/>\n", gpu);
      if (one.net_out >= 0) text += fmt::format("      <net dev=\"{}\"/>\n", one.net_out);
      text += "    </channel>\n";
    }
    text += "  </graph>\n";
  }
  return text + "</graphs>\n";
}

}  // namespace tutti::topology
