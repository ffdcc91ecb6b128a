#include "topology/graph/cpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "topology/graph/pci.h"

namespace tutti::topology {
namespace {

constexpr int bits_of_a_word = 32;

/// All of `text` as a number; -1 if it is not one.
long long number(std::string_view text) {
  long long value = -1;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() ? value : -1;
}

}  // namespace

std::vector<int> cpus_of_list(std::string_view list) {
  std::vector<bool> there;  // up to the highest one: lists are short and read often
  for (std::size_t ranges = 0; !list.empty() && ranges < cpus_max; ++ranges) {
    const std::string_view range = list.substr(0, list.find_first_of(",\n"));
    list.remove_prefix(std::min(list.size(), range.size() + 1));
    const std::size_t dash = range.find('-');
    const long long first = number(range.substr(0, dash));
    const long long last = dash == std::string_view::npos ? first : number(range.substr(dash + 1));
    const long long end = std::min(last, static_cast<long long>(cpus_max) - 1) + 1;
    if (first < 0 || end <= first) continue;
    if (there.size() < static_cast<std::size_t>(end)) there.resize(static_cast<std::size_t>(end), false);
    for (long long cpu = first; cpu < end; ++cpu) there[static_cast<std::size_t>(cpu)] = true;
  }
  std::vector<int> cpus;
  for (std::size_t cpu = 0; cpu < there.size(); ++cpu)
    if (there[cpu]) cpus.push_back(static_cast<int>(cpu));
  return cpus;
}

std::string list_of_cpus(const std::vector<int>& cpus) {
  std::string list;
  for (std::size_t at = 0; at < cpus.size(); ++at) {
    const std::size_t first = at;
    while (at + 1 < cpus.size() && cpus[at + 1] == cpus[at] + 1) ++at;
    if (!list.empty()) list += ',';
    list += first == at ? std::to_string(cpus[at]) : fmt::format("{}-{}", cpus[first], cpus[at]);
  }
  return list;
}

std::string cpu_list_of_mask(std::string_view mask) {
  std::vector<int> cpus;
  int base = 0;
  while (!mask.empty() && (mask.back() == '\n' || mask.back() == ' ')) mask.remove_suffix(1);
  while (!mask.empty()) {  // the lowest word comes last; hwloc leaves out words of zeros, but not their commas
    const std::size_t comma = mask.rfind(',');
    const std::string_view word = comma == std::string_view::npos ? mask : mask.substr(comma + 1);
    mask = comma == std::string_view::npos ? "" : mask.substr(0, comma);
    const auto value = word.empty() ? std::optional<std::uint32_t>(0) : hex_of(word);
    if (!value || base >= static_cast<int>(cpus_max)) return {};
    for (int bit = 0; bit < bits_of_a_word; ++bit)
      if ((*value >> bit & 1) != 0) cpus.push_back(base + bit);
    base += bits_of_a_word;
  }
  return list_of_cpus(cpus);
}

std::string mask_of_cpus(const std::vector<int>& cpus) {
  std::vector<std::uint32_t> words(cpus.empty() ? 1 : static_cast<std::size_t>(cpus.back() / bits_of_a_word + 1), 0);
  for (const int cpu : cpus) words[static_cast<std::size_t>(cpu / bits_of_a_word)] |= 1u << (cpu % bits_of_a_word);
  std::string mask;
  std::ranges::reverse(words);
  for (const std::uint32_t word : words) mask += fmt::format("{}{:08x}", mask.empty() ? "" : ",", word);
  return mask;
}

CpuMaker maker_of(std::string_view vendor, std::string_view arch) {
  if (vendor == "GenuineIntel") return CpuMaker::intel;
  if (vendor == "AuthenticAMD" || vendor == "HygonGenuine") return CpuMaker::amd;
  if (vendor == "CentaurHauls" || vendor == "  Shanghai  ") return CpuMaker::zhaoxin;
  if (arch.starts_with("arm") || arch == "aarch64") return CpuMaker::arm;
  if (arch.starts_with("ppc")) return CpuMaker::power;
  return CpuMaker::unknown;
}

std::string common_cpus(std::string_view one, std::string_view other) {
  const std::vector<int> a = cpus_of_list(one), b = cpus_of_list(other);
  std::vector<int> both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  return list_of_cpus(both);
}

}  // namespace tutti::topology
