#include "tune/keep.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "base/unique_fd.h"

namespace tutti {
namespace {

constexpr std::string_view format_line = "tutti machine 1";
constexpr std::size_t file_bytes_max = 16 * 1024;

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

Error failed(std::string_view what, const std::string& path) {
  return Error{.code = Code::system, .what = fmt::format("{} {}", what, path), .sys_errno = errno};
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
    if (problem != std::errc() || end != line.data() + line.size()) return damaged("a line that is no number");
    numbers.push_back(number);
  }
  auto machine = Machine::of(numbers);
  if (!machine) return damaged(machine.error().what);
  return machine;
}

Result<std::string> read_small_file(const std::string& path) {
  // Not to be held up by a pipe that somebody put there.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return failed("open", path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return failed("look at", path);
  if (!S_ISREG(status.st_mode) || status.st_size > static_cast<off_t>(file_bytes_max))
    return Error{.code = Code::system, .what = path + " is no small file", .sys_errno = EINVAL};
  std::string text(file_bytes_max, '\0');
  std::size_t used = 0;
  while (used < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("read", path);
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  text.resize(used);
  return text;
}

Result<void> write_atomically(const std::string& path, std::string_view text) {
  std::error_code problem;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::filesystem::create_directories(folder, problem);
  if (problem) {
    errno = problem.value();
    return failed("make", folder.string());
  }
  std::string name = path + ".XXXXXX";
  const UniqueFd fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd) return failed("create", name);
  const auto give_up = [&](std::string_view what) {
    Error error = failed(what, name);
    ::unlink(name.c_str());
    return error;
  };
  while (!text.empty()) {
    const ssize_t put = ::write(fd.get(), text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return give_up("write");
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  if (::rename(name.c_str(), path.c_str()) != 0) return give_up("rename");
  return {};
}

}  // namespace tutti
