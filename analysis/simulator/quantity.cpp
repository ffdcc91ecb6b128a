#include "analysis/simulator/quantity.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <span>

namespace tutti::simulator {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kib = 1024, mib = kib * kib, gib = mib * kib;
constexpr Unit sizes[] = {{"", 1},      {"B", 1},     {"K", kib},       {"M", mib},   {"G", gib},
                          {"KB", 1e3},  {"MB", 1e6},  {"GB", 1e9},      {"TB", 1e12}, {"KiB", kib},
                          {"MiB", mib}, {"GiB", gib}, {"TiB", gib* kib}};
constexpr Unit times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
constexpr Unit rates[] = {{"KB/s", 1e-6},     {"MB/s", 1e-3},  {"GB/s", 1},      {"TB/s", 1e3},
                          {"Mb/s", 1e-3 / 8}, {"Gb/s", 0.125}, {"Tb/s", 1e3 / 8}};
constexpr Unit numbers[] = {{"", 1}};

Result<double> parse(std::string_view word, std::span<const Unit> units, std::string_view like) {
  double number = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), number);
  const std::string_view rest(end, static_cast<std::size_t>(word.data() + word.size() - end));
  if (problem == std::errc() && std::isfinite(number) && number >= 0)
    for (const Unit& unit : units)
      if (unit.name == rest) return number * unit.factor;
  return invalid_argument(fmt::format("\"{}\" is not {}", word, like));
}

}  // namespace

Result<double> parse_bytes(std::string_view word) {
  return parse(word, sizes, "a size like 4096, 64KiB or 1GB");
}

Result<double> parse_time(std::string_view word) {
  return parse(word, times, "a time like 936ns, 1.5us or 2ms");
}

Result<double> parse_rate(std::string_view word) {
  auto rate = parse(word, rates, "a rate like 50GB/s or 400Gb/s");
  if (rate && *rate == 0) return invalid_argument(fmt::format("\"{}\" is a rate of zero", word));
  return rate;
}

Result<double> parse_number(std::string_view word) {
  return parse(word, numbers, "a number");
}

}  // namespace tutti::simulator
