// Reads and writes the channels of NCCL_GRAPH_DUMP_FILE and NCCL_GRAPH_FILE.
#include <fmt/format.h>

#include <charconv>

#include "topology/graph/pci.h"
#include "topology/sources/nccl_xml.h"
#include "topology/sources/xml.h"

namespace tutti::topology {
namespace {

constexpr int channels_max = 4096, channel_devices_max = 4096;

void check_rate(Xml& xml, const pugi::xml_node& node, const char* name) {
  const std::string text = xml.text(node, name);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!text.empty() && (code != std::errc() || end != text.data() + text.size() || !(value >= 0) || value > 1e6))
    xml.refuse(node, fmt::format("{} is \"{}\", not a rate", name, text.substr(0, 40)));
}

/// What is not used must be sound too.
void check_unused(Xml& xml, const pugi::xml_node& graph) {
  xml.number(graph, "crossnic", 0, 2);
  xml.number(graph, "samechannels", 0, 1);
  check_rate(xml, graph, "speedintra");
  check_rate(xml, graph, "speedinter");
  xml.text(graph, "typeintra");
  xml.text(graph, "typeinter");
}

std::vector<int> channel(Xml& xml, const pugi::xml_node& node) {
  std::vector<int> gpus;
  for (const pugi::xml_node& device : elements(node)) {
    if (static_cast<int>(gpus.size()) > channel_devices_max) {
      xml.refuse(device, fmt::format("a channel of more than {} devices", channel_devices_max));
      return gpus;
    }
    // Numbers here are hexadecimal if they begin with 0x.
    const std::string text = xml.text(device, "dev");
    const bool hex = text.starts_with("0x");
    int dev = -1;
    const char* const first = text.data() + (hex ? 2 : 0);
    const auto [end, code] = std::from_chars(first, text.data() + text.size(), dev, hex ? 16 : 10);
    if (code != std::errc() || end != text.data() + text.size() || dev < 0)
      xml.refuse(device, fmt::format("<{}>: dev \"{}\" is not a number", device.name(), text.substr(0, 40)));
    if (std::string_view(device.name()) == "gpu") gpus.push_back(dev);
  }
  return gpus;
}

}  // namespace

Result<std::vector<Graph>> read_graphs(std::string_view text) {
  auto parsed = TUTTI_TRY(Xml::parse(text));
  Xml& xml = *parsed;
  if (std::string_view(xml.root().name()) != "graphs") xml.refuse(xml.root(), "the file is not a <graphs>");
  std::vector<Graph> graphs;
  int channels = 0;
  for (const pugi::xml_node& node : elements(xml.root())) {
    xml.number(node, "id", 0, 1000);
    Graph graph{.pattern = xml.number_or(0, node, "pattern", 0, 1000), .channels = {}};
    check_unused(xml, node);
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

std::string write_rings(std::span<const std::vector<int>> rings) {
  std::string text = fmt::format(
      "<graphs version=\"1\">\n"
      "  <graph id=\"0\" pattern=\"{}\" crossnic=\"0\" nchannels=\"{}\" speedintra=\"0\" speedinter=\"0\" "
      "latencyinter=\"0\" typeintra=\"SYS\" typeinter=\"SYS\" samechannels=\"1\">\n",
      ring_pattern, rings.size());
  for (const std::vector<int>& ring : rings) {
    text += "    <channel>\n";
    for (const int gpu : ring) text += fmt::format("      <gpu dev=\"{}\"/>\n", gpu);
    text += "    </channel>\n";
  }
  return text + "  </graph>\n</graphs>\n";
}

}  // namespace tutti::topology
