#include "topology/sources/xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/file.h"
#include "topology/graph/pci.h"

namespace tutti::topology {
namespace {

constexpr std::size_t text_shown_max = 40, text_max = 255;

}  // namespace

Result<std::unique_ptr<Xml>> Xml::parse(std::string_view text) {
  auto xml = std::make_unique<Xml>();
  const auto refused = [](int line, std::string_view why) {
    return Error{.code = Code::invalid_argument, .what = fmt::format("line {}: {}", line, why)};
  };
  if (text.size() > file_bytes_max)
    return refused(1, fmt::format("the file is larger than {} MiB", file_bytes_max >> 20));
  for (std::size_t at = 0; at < text.size(); ++at)
    if (text[at] == '\n') xml->ends_.push_back(at);
  const pugi::xml_parse_result parsed =
      xml->document_.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!parsed)
    return refused(xml->line(parsed.offset), fmt::format("not XML: {} (byte {})", parsed.description(), parsed.offset));
  if (!xml->root()) return refused(1, "not XML: there is no element");
  return xml;
}

int Xml::line(std::ptrdiff_t offset) const {
  return 1 + static_cast<int>(std::ranges::lower_bound(ends_, static_cast<std::size_t>(offset)) - ends_.begin());
}

void Xml::refuse(const pugi::xml_node& node, std::string_view why) {
  if (!failed()) error_ = fmt::format("line {}: {}", line(node.offset_debug()), why);
}

std::optional<long long> Xml::number(const pugi::xml_node& node, const char* name, long long low, long long high) {
  const pugi::xml_attribute attribute = node.attribute(name);
  const std::string_view text = attribute.value();
  if (text.empty()) return {};
  long long value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  // NCCL writes some numbers as fractions, "0.000000".
  double fraction = 0;
  const auto [end_fraction, code_fraction] = std::from_chars(text.data(), text.data() + text.size(), fraction);
  if (code_fraction == std::errc() && end_fraction == text.data() + text.size() && std::isfinite(fraction) &&
      end != end_fraction && std::abs(fraction) < 1e15)
    value = static_cast<long long>(fraction);
  else if (code != std::errc() || end != text.data() + text.size()) {
    refuse(node, fmt::format("<{}>: {} is \"{}\", not a number", node.name(), name, text.substr(0, text_shown_max)));
    return {};
  }
  if (value < low || value > high) {
    refuse(node, fmt::format("<{}>: {} {} is not one of {} … {}", node.name(), name, text.substr(0, text_shown_max),
                             low, high));
    return {};
  }
  return value;
}

std::uint32_t Xml::hex_or_zero(const pugi::xml_node& node, const char* name) {
  const std::string_view text = node.attribute(name).value();
  if (text.empty()) return 0;
  const auto value = hex_of(text);
  if (!value)
    refuse(node, fmt::format("<{}>: {} is \"{}\", not hexadecimal", node.name(), name, text.substr(0, text_shown_max)));
  return value.value_or(0);
}

std::string Xml::text(const pugi::xml_node& node, const char* name) {
  std::string text = node.attribute(name).value();
  if (text.size() > text_max) refuse(node, fmt::format("<{}>: {} is longer than {}", node.name(), name, text_max));
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text;
}

std::vector<pugi::xml_node> elements(const pugi::xml_node& node) {
  std::vector<pugi::xml_node> found;
  for (const pugi::xml_node& child : node.children())
    if (child.type() == pugi::node_element) found.push_back(child);
  return found;
}

}  // namespace tutti::topology
