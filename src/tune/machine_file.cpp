#include "tune/machine_file.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"

namespace tutti {
namespace {

constexpr std::string_view format_line = "tutti machine 2";
constexpr std::string_view tried_line = "tutti machine not measured 1";

std::string processor() {
  std::istringstream file(content_of("/proc/cpuinfo"));
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

constexpr std::size_t machine_file_bytes_max = 64 * 1024;

Error damaged(std::string what) {
  return Error{.code = Code::invalid_argument, .what = std::move(what)};
}

constexpr std::string_view contradicted_line = "contradicted ", measured_line = "measured ", again_word = "again ";

std::string utc_text(std::int64_t now_s) {
  const auto seconds = static_cast<std::time_t>(now_s);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec);
}

/// 0: not a time.
std::int64_t seconds_of(std::string_view utc_text) {
  std::tm utc{};
  const std::string text(utc_text);
  const char* const end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return end == nullptr || *end != '\0' ? 0 : std::max<std::int64_t>(::timegm(&utc), 0);
}

struct Parsed {
  MachineRecord kept;
  std::string_view made_for;
  std::size_t named = 0;  ///< how many numbers
};

/// One line "name value" after another, the numbers by index.
Result<void> parse_number(std::string_view line, std::array<double, Machine::count>& numbers,
                          std::array<bool, Machine::count>& given) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view name = line.substr(0, space), value = line.substr(std::min(space + 1, line.size()));
  const auto& names = Machine::names();
  const auto known = std::ranges::find(names, name);
  if (known == names.end()) return damaged(fmt::format("\"{}\" is not a number of a machine", name));
  const auto index = static_cast<std::size_t>(known - names.begin());
  if (std::exchange(given[index], true)) return damaged(fmt::format("{} is given twice", name));
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), numbers[index]);
  if (problem != std::errc() || end != value.data() + value.size() || value.empty())
    return damaged(fmt::format("\"{}\" is not a value for {}", value, name));
  return {};
}

Result<Parsed> parse(std::string_view text) {
  if (next_line(text) != format_line) return damaged(fmt::format("line 1 is not \"{}\"", format_line));
  Parsed parsed;
  auto numbers = parsed.kept.machine.numbers();
  std::array<bool, Machine::count> given{};
  for (int number = 2; !text.empty(); ++number) {
    const std::string_view line = next_line(text);
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with("for ")) {
      parsed.made_for = line.substr(4);
    } else if (line.starts_with(measured_line)) {
      std::string_view when = line.substr(measured_line.size());
      parsed.kept.again = when.starts_with(again_word);
      if (parsed.kept.again) when.remove_prefix(again_word.size());
      parsed.kept.measured_s = seconds_of(when);
    } else if (line.starts_with(contradicted_line)) {
      parsed.kept.contradicted = line.substr(contradicted_line.size());
    } else if (auto read = parse_number(line, numbers, given); !read) {
      return damaged(fmt::format("line {}: {}", number, read.error().what));
    }
  }
  auto machine = Machine::of(numbers);
  if (!machine) return damaged(machine.error().what);
  parsed.kept.machine = *machine;
  parsed.named = static_cast<std::size_t>(std::ranges::count(given, true));
  return parsed;
}

}  // namespace

std::string tried_file(const std::string& folder, std::string_view fingerprint) {
  return fmt::format("{}/tried-{:016x}", folder, hash_of(fingerprint));
}

std::string tried_text(std::string_view fingerprint, std::int64_t now_s) {
  return fmt::format("{}\nfor {}\nother work used the cores {}\n", tried_line, fingerprint, utc_text(now_s));
}

std::optional<std::int64_t> tried_in(std::string_view text, std::string_view fingerprint) {
  if (next_line(text) != tried_line || next_line(text) != fmt::format("for {}", fingerprint)) return std::nullopt;
  const std::string_view line = next_line(text);
  const std::int64_t tried_s = seconds_of(line.substr(line.rfind(' ') + 1));
  return tried_s == 0 ? std::nullopt : std::optional(tried_s);
}

std::int64_t seconds_since_1970() {
  return std::time(nullptr);
}

std::string machine_name(int cores) {
  utsname system{};
  ::uname(&system);
  std::string text = fmt::format("{}, {} cores, {} {}", processor(), cores, system.sysname, system.release);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string fingerprint(int cores, int library_version) {
  return fmt::format("{}, tutti {}", machine_name(cores), library_version);
}

std::string machine_file(const std::string& folder, std::string_view fingerprint, int nth) {
  return fmt::format("{}/machine-{:016x}-{}", folder, hash_of(fingerprint), nth);
}

std::string to_text(const Machine& machine, std::string_view fingerprint, std::int64_t now_s, bool again) {
  std::string text = fmt::format("{}\nfor {}\n{}{}{}\n", format_line, fingerprint, measured_line,
                                 again ? again_word : "", utc_text(now_s));
  const auto numbers = machine.numbers();
  for (std::size_t i = 0; i < numbers.size(); ++i) text += fmt::format("{} {:.6g}\n", Machine::names()[i], numbers[i]);
  return text;
}

std::string with_contradiction(std::string_view text, std::int64_t now_s, std::string_view seen) {
  return fmt::format("{}{}{}: {}\n", text, contradicted_line, utc_text(now_s), seen);
}

Result<MachineRecord> from_text(std::string_view text, std::string_view fingerprint) {
  auto parsed = TUTTI_TRY(parse(text));
  if (parsed.made_for != fingerprint) return damaged("measured elsewhere");
  if (parsed.named != Machine::count) return damaged("numbers are missing");
  return parsed.kept;
}

bool may_be_contradicted(const MachineRecord& kept, std::int64_t now_s) {
  constexpr std::int64_t hour_s = 3600, week_s = 7 * 24 * hour_s;
  const std::int64_t age_s = now_s - kept.measured_s;
  return age_s < 0 || age_s >= (kept.again ? week_s : hour_s);
}

Result<Machine> read_machine_file(const std::string& path) {
  auto text = read_file(path, machine_file_bytes_max);
  if (!text) return std::move(text).error().during("read TUTTI_MACHINE_FILE");
  auto parsed = parse(*text);
  if (!parsed) return damaged(fmt::format("TUTTI_MACHINE_FILE={}: {}", path, parsed.error().what));
  return parsed->kept.machine;
}

}  // namespace tutti
