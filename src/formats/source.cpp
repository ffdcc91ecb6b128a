#include "formats/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/unique_fd.h"

namespace tutti::formats {
namespace {

Error failed(std::string_view doing, const std::string& path) {
  return Error{.code = Code::system, .what = fmt::format("{} {}", doing, path), .sys_errno = errno};
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return failed("open", path);
  struct stat about = {};
  if (::fstat(fd.get(), &about) != 0) return failed("look at", path);
  if (S_ISDIR(about.st_mode)) return refused(path, "is a directory");

  std::string text;
  constexpr std::size_t piece = 1 << 16;
  while (true) {  // what is no regular file does not say how long it is
    const std::size_t have = text.size();
    text.resize(have + piece);
    const ssize_t got = ::read(fd.get(), text.data() + have, piece);
    if (got < 0 && errno == EINTR) {
      text.resize(have);
      continue;
    }
    if (got < 0) return failed("read", path);
    text.resize(have + static_cast<std::size_t>(got));
    if (text.size() > bytes_max) return refused(path, fmt::format("is larger than {} MiB", bytes_max >> 20));
    if (got == 0) return text;
  }
}

Result<void> write_file(const std::string& path, std::string_view bytes) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd) return failed("create", path);
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return failed("write", path);
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

Error refused(std::string_view place, std::string_view why) {
  return Error{.code = Code::invalid_argument, .what = fmt::format("{}: {}", place, why)};
}

}  // namespace tutti::formats
