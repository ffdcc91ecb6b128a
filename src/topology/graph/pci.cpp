#include "topology/graph/pci.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>
#include <vector>

namespace tutti::topology {
namespace {

constexpr std::uint32_t nvidia = 0x10de, amd = 0x1002;

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
  constexpr std::uint32_t amd_computes = 0x67a0;  // Hawaii, the first that ROCm supported
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
  // As NCCL does: the text may continue after the key.
  constexpr std::pair<std::string_view, int> keys[] = {
      {"2.5 GT/s", 15},   {"5 GT/s", 30},     {"5.0 GT/s", 30},   {"8 GT/s", 60},     {"8.0 GT/s", 60},
      {"16 GT/s", 120},   {"16.0 GT/s", 120}, {"32 GT/s", 240},   {"32.0 GT/s", 240}, {"64 GT/s", 480},
      {"64.0 GT/s", 480}, {"128 GT/s", 960},  {"128.0 GT/s", 960}};
  int rate = 60;
  for (const auto& [key, value] : keys)
    if (speed.starts_with(key)) rate = value;
  return (width == 0 ? 16 : width) * rate / 80.0;
}

}  // namespace tutti::topology
