#include "topology/pci.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <charconv>
#include <utility>
#include <vector>

namespace tutti::topology {
namespace {

constexpr std::uint32_t nvidia = 0x10de, amd = 0x1002;
constexpr std::size_t cpus_max = 8192;

std::optional<std::uint32_t> hex_digits(std::string_view text, std::size_t digits_max) {
  std::uint32_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || text.size() > digits_max || code != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

}  // namespace

std::optional<std::string> bus_id_of(std::string_view text) {
  std::vector<std::string_view> parts;
  std::string_view rest = text;
  for (std::size_t colon = rest.find(':'); colon != std::string_view::npos; colon = rest.find(':')) {
    parts.push_back(rest.substr(0, colon));
    rest.remove_prefix(colon + 1);
    if (parts.size() > 2) return {};
  }
  if (parts.empty()) return {};
  const std::size_t dot = rest.find('.');
  const auto device = hex_digits(rest.substr(0, dot), 2);
  const auto function =
      dot == std::string_view::npos ? std::optional<std::uint32_t>(0) : hex_digits(rest.substr(dot + 1), 1);
  const auto bus = hex_digits(parts.back(), 2);
  const auto domain = parts.size() == 2 ? hex_digits(parts.front(), 8) : std::optional<std::uint32_t>(0);
  if (!domain || !bus || !device || !function || *device > 31 || *function > 7) return {};
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", *domain, *bus, *device, *function);
}

DeviceKind kind_of(std::uint32_t pci_class, std::uint32_t vendor, std::uint32_t product) {
  const std::uint32_t major = pci_class >> 16, subclass = pci_class >> 8;
  if (subclass == 0x0604 || subclass == 0x0609) return DeviceKind::bridge;
  if (subclass == 0x0680 && vendor == nvidia) return DeviceKind::nvswitch;
  const bool by_gpu_maker = vendor == nvidia || vendor == amd || vendor == 0;
  constexpr std::uint32_t amd_computes = 0x67a0;  // Hawaii, the first that ROCm drove
  if (vendor == amd && subclass == 0x0300 && product < amd_computes) return DeviceKind::function;
  if ((subclass == 0x0300 || subclass == 0x0302) && by_gpu_maker) return DeviceKind::gpu;
  if ((subclass == 0x0380 || subclass == 0x1200) && (vendor == amd || vendor == 0)) return DeviceKind::gpu;
  if (major == 0x02 || subclass == 0x0c06) return DeviceKind::nic;
  return DeviceKind::function;
}

std::optional<std::uint32_t> hex_of(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return hex_digits(text, 8);
}

double pci_gbps(std::string_view speed, int width) {
  // As NCCL does: the text may go on behind the key.
  constexpr std::pair<std::string_view, int> keys[] = {
      {"2.5 GT/s", 15},   {"5 GT/s", 30},   {"5.0 GT/s", 30},   {"8 GT/s", 60},   {"8.0 GT/s", 60},  {"16 GT/s", 120},
      {"16.0 GT/s", 120}, {"32 GT/s", 240}, {"32.0 GT/s", 240}, {"64 GT/s", 480}, {"64.0 GT/s", 480}};
  int rate = 60;
  for (const auto& [key, value] : keys)
    if (speed.starts_with(key)) rate = value;
  return (width == 0 ? 16 : width) * rate / 80.0;
}

std::string cpu_list_of_mask(std::string_view mask) {
  std::vector<bool> bits;
  while (!mask.empty() && (mask.back() == '\n' || mask.back() == ' ')) mask.remove_suffix(1);
  while (!mask.empty()) {  // the lowest word is the last one; hwloc leaves out words of zeros, but not their commas
    const std::size_t comma = mask.rfind(',');
    std::string_view word = comma == std::string_view::npos ? mask : mask.substr(comma + 1);
    mask = comma == std::string_view::npos ? "" : mask.substr(0, comma);
    const auto value = word.empty() ? std::optional<std::uint32_t>(0) : hex_of(word);
    if (!value || bits.size() >= cpus_max) return {};
    for (int bit = 0; bit < 32; ++bit) bits.push_back((*value >> bit & 1) != 0);
  }
  std::string list;
  for (std::size_t at = 0; at < bits.size(); ++at) {
    if (!bits[at]) continue;
    std::size_t last = at;
    while (last + 1 < bits.size() && bits[last + 1]) ++last;
    if (!list.empty()) list += ',';
    list += last == at ? std::to_string(at) : fmt::format("{}-{}", at, last);
    at = last;
  }
  return list;
}

std::string mask_of_cpu_list(std::string_view list) {
  std::bitset<cpus_max> cpus;
  std::size_t top = 0;
  while (!list.empty()) {
    const std::string_view range = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), range.size() + 1));
    const std::size_t dash = range.find('-');
    const auto number = [](std::string_view text) {
      std::size_t value = cpus_max;
      std::from_chars(text.data(), text.data() + text.size(), value);
      return value;
    };
    const std::size_t first = number(range.substr(0, dash));
    const std::size_t last = dash == std::string_view::npos ? first : number(range.substr(dash + 1));
    for (std::size_t cpu = first; cpu <= last && cpu < cpus_max; ++cpu) cpus.set(cpu), top = std::max(top, cpu);
  }
  std::string mask;
  for (std::size_t word = top / 32 + 1; word-- > 0;) {
    unsigned value = 0;
    for (std::size_t bit = 0; bit < 32; ++bit) value |= static_cast<unsigned>(cpus[word * 32 + bit]) << bit;
    mask += fmt::format("{}{:08x}", mask.empty() ? "" : ",", value);
  }
  return mask;
}

}  // namespace tutti::topology
