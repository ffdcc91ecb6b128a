#include "tune/keep.h"

#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <vector>

#include <fmt/format.h>

namespace tutti {
namespace {

constexpr std::string_view format_line = "tutti machine 1";

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown processor";
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

Error damaged(std::string what) {
  return Error{.code = Code::invalid_argument, .what = std::move(what)};
}

}  // namespace

std::string fingerprint(int cores, int library_version) {
  utsname system{};
  ::uname(&system);
  std::string text =
      fmt::format("{}, {} cores, {} {}, tutti {}", processor(), cores, system.sysname, system.release, library_version);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string machine_file(const std::string& folder, std::string_view fingerprint) {
  return fmt::format("{}/machine-{:016x}", folder, hash_of(fingerprint));
}

std::string to_text(const Machine& machine, std::string_view fingerprint) {
  std::string text = fmt::format("{}\n{}\n", format_line, fingerprint);
  for (const double number : machine.numbers()) text += fmt::format("{}\n", number);
  return text;
}

Result<Machine> from_text(std::string_view text, std::string_view fingerprint) {
  if (next_line(text) != format_line) return damaged("another format");
  if (next_line(text) != fingerprint) return damaged("measured elsewhere");
  std::vector<double> numbers;
  while (!text.empty() && numbers.size() <= Machine::count) {
    const std::string_view line = next_line(text);
    double number = 0;
    const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (problem != std::errc() || end != line.data() + line.size()) return damaged("a line that is not a number");
    numbers.push_back(number);
  }
  auto machine = Machine::of(numbers);
  if (!machine) return damaged(machine.error().what);
  return machine;
}

}  // namespace tutti
