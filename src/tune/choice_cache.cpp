#include "tune/choice_cache.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/descriptors.h"
#include "base/file.h"
#include "base/system.h"

namespace tutti {
namespace {

constexpr std::string_view prefix = "choice-";
constexpr std::size_t file_max = 64 * 1024;

/// FNV-1a. `seed`: two of them make a collision of all 128 bits as good as impossible.
std::uint64_t hash_of(std::string_view text, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325U ^ seed;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash ^ hash >> 29;
}

}  // namespace

ChoiceCache::Name ChoiceCache::name(std::string_view grounds) const {
  const std::string all = fmt::format("{}\n{}", build_, grounds);
  const std::uint64_t one = hash_of(all, 0), two = hash_of(all, 0x9e3779b97f4a7c15U);
  return {.path = fmt::format("{}/{}{:016x}", folder_, prefix, one),
          .head = fmt::format("tutti choice 1\nof {}\non {:016x}{:016x}\n", build_, one, two)};
}

std::optional<std::string> ChoiceCache::find(std::string_view grounds) {
  const Name mine = name(grounds);
  if (auto known = read(mine)) return known;
  wait_for_turn();
  auto known = read(mine);
  if (known) turn_.reset();
  return known;
}

/// The system ends the lock of a process that dies. Without a lock, or when patience ends, several make the choice.
void ChoiceCache::wait_for_turn() {
  turn_ = UniqueFd(above_stdio([&] {
    return ::open(fmt::format("{}/choices.lock", folder_).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  }));
  if (!turn_) return;
  std::vector<PollItem> nothing;
  System& system = real_system();  // of the machine that other processes share
  const std::int64_t deadline = system.now_ns() + patience_ns_;
  while (::flock(turn_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || system.now_ns() >= deadline) return turn_.reset();
    system.poll(nothing, 300'000);
  }
}

std::optional<std::string> ChoiceCache::read(const Name& mine) {
  const auto file = read_file(mine.path, file_max);
  if (!file || !file->starts_with(mine.head)) return std::nullopt;
  // The last line is a sum of all before it.
  const std::size_t end = file->rfind("sum ");
  if (end == std::string::npos || end < mine.head.size()) return std::nullopt;
  const std::string_view summed = std::string_view(*file).substr(0, end);
  if (file->substr(end) != fmt::format("sum {:016x}\n", hash_of(summed, 0))) return std::nullopt;
  return file->substr(mine.head.size(), end - mine.head.size());
}

Result<void> ChoiceCache::keep(std::string_view grounds, std::string_view text) {
  const UniqueFd until_kept = std::exchange(turn_, UniqueFd());
  make_room();
  const Name mine = name(grounds);
  const std::string summed = fmt::format("{}{}", mine.head, text);
  return write_atomically(mine.path, fmt::format("{}sum {:016x}\n", summed, hash_of(summed, 0)));
}

/// Choices of machines, jobs and builds that are no more.
void ChoiceCache::make_room() const {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (const std::string& name : names_in(folder_))
    if (const fs::path path = fs::path(folder_) / name; name.starts_with(prefix))
      files.emplace_back(fs::last_write_time(path, ignored), path);
  if (files.size() < files_max) return;
  const auto half = files.begin() + static_cast<std::ptrdiff_t>(files.size() / 2);
  std::ranges::nth_element(files, half);
  for (auto file = files.begin(); file != half; ++file) fs::remove(file->second, ignored);
}

}  // namespace tutti
