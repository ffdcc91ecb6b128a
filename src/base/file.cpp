#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "base/blocked_signal.h"
#include "base/descriptors.h"
#include "base/unique_fd.h"

namespace tutti {
namespace {

constexpr std::string_view writing = "write (EFBIG: raise ulimit -f)";

Error failed(std::string_view doing, const std::string& path) {
  return Error{.code = Code::system, .what = fmt::format("{} {}", doing, path), .sys_errno = errno};
}

Error refused(const std::string& path, std::string_view why) {
  return invalid_argument(fmt::format("{}: {}", path, why));
}

std::string size_of(std::size_t bytes) {
  return bytes >= 1 << 20 ? fmt::format("{} MiB", bytes >> 20) : fmt::format("{} KiB", bytes >> 10);
}

/// /dev/null, which programs use to read nothing.
bool is_null_device(const struct stat& status) {
  return S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

bool is_regular(const struct stat& status) {
  return S_ISREG(status.st_mode) || is_null_device(status);
}

constexpr std::string_view not_regular = "is not a regular file";

/// Flags with which opening a pipe or a terminal neither waits nor changes anything.
int unhurried(FileKind kind) {
  return kind == FileKind::regular ? O_NONBLOCK | O_NOCTTY : 0;
}

/// False: errno has the reason.
bool write_all(int fd, std::string_view text) {
  const BlockedSignal beyond_limit(SIGXFSZ);
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t bytes_max, FileKind kind) {
  const UniqueFd fd(above_stdio([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | unhurried(kind)); }));
  if (!fd) return failed("open", path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return failed("look at", path);
  if (S_ISDIR(status.st_mode)) return refused(path, "is a directory");
  if (kind == FileKind::regular && !is_regular(status)) return refused(path, not_regular);

  std::string text;
  const std::size_t piece = std::min<std::size_t>(bytes_max + 1, 1 << 16);
  while (true) {  // pipes have no size, and files of /sys report more than their content
    const std::size_t have = text.size();
    text.resize(have + piece);
    const ssize_t got = ::read(fd.get(), text.data() + have, piece);
    if (got < 0 && errno != EINTR) return failed("read", path);
    text.resize(have + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (text.size() > bytes_max) return refused(path, fmt::format("is larger than {}", size_of(bytes_max)));
    if (got == 0) return text;
  }
}

std::string content_of(const std::string& path) {
  auto text = read_file(path);
  return text ? *std::move(text) : std::string();
}

std::vector<std::string> names_in(const std::string& folder) {
  struct Close {
    void operator()(DIR* open) const { ::closedir(open); }
  };
  std::vector<std::string> names;
  UniqueFd fd(above_stdio([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  const std::unique_ptr<DIR, Close> open(fd ? ::fdopendir(fd.get()) : nullptr);
  if (open) (void)fd.release();
  while (const dirent* entry = open ? ::readdir(open.get()) : nullptr)
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  std::ranges::sort(names);
  return names;
}

Result<void> write_file(const std::string& path, std::string_view text, FileKind kind) {
  // Nothing is cut off before it is known what it is.
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (kind == FileKind::stream ? O_TRUNC : 0) | unhurried(kind);
  const UniqueFd fd(above_stdio([&] { return ::open(path.c_str(), flags, 0666); }));
  if (!fd && errno == ENXIO) return refused(path, not_regular);  // a pipe without a reader, or a socket
  if (!fd) return failed("create", path);
  if (kind == FileKind::regular) {
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) return failed("look at", path);
    if (!is_regular(status)) return refused(path, not_regular);
    if (S_ISREG(status.st_mode) && ::ftruncate(fd.get(), 0) != 0) return failed("empty", path);
  }
  if (!write_all(fd.get(), text)) return failed(writing, path);
  return {};
}

Result<void> refuse_irregular(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || is_regular(status)) return {};
  return refused(path, S_ISDIR(status.st_mode) ? "is a directory" : not_regular);
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
  const UniqueFd fd(above_stdio([&] { return ::mkostemp(name.data(), O_CLOEXEC); }));
  if (!fd) return failed("create", name);
  const auto give_up = [&](std::string_view what) {
    Error error = failed(what, name);
    ::unlink(name.c_str());
    return error;
  };
  if (!write_all(fd.get(), text)) return give_up(writing);
  if (::rename(name.c_str(), path.c_str()) != 0) return give_up("rename");
  return {};
}

}  // namespace tutti
