#include "base/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>

#include "base/uncancelled.h"

namespace tutti {
namespace {

constexpr int stdio_end = STDERR_FILENO + 1;

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

bool all_open() {
  return is_open(STDIN_FILENO) && is_open(STDOUT_FILENO) && is_open(STDERR_FILENO);
}

class KeptErrno {
 public:
  ~KeptErrno() { errno = kept_; }

 private:
  int kept_ = errno;
};

/// What stands in for standard streams that are closed.
class StandIns {
 public:
  bool hold() {
    const std::lock_guard lock(mutex_);
    if (users_ == 0 && all_open()) return false;
    ++users_;
    for (int tries = 0; tries < stdio_end && !all_open(); ++tries) fill_one();
    return true;
  }

  void let_go() {
    const std::lock_guard lock(mutex_);
    if (--users_ > 0) return;
    for (int fd = 0; fd < stdio_end; ++fd)
      if (is_ours(fd)) ::close(fd);
    files_ = {};
  }

 private:
  struct File {
    bool opened = false;
    dev_t device = 0;
    ino_t inode = 0;
  };

  void fill_one() {
    int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);  // who prints gets the error that a closed stream gives
    if (fd < 0) fd = ::open("/", O_PATH | O_CLOEXEC);    // where /dev is empty
    struct stat status {};
    if (fd < 0 || ::fstat(fd, &status) != 0 || fd >= stdio_end) {
      if (fd >= 0) ::close(fd);
      return;
    }
    files_[static_cast<std::size_t>(fd)] = {.opened = true, .device = status.st_dev, .inode = status.st_ino};
  }

  /// Not if the program has put a file of its own there: dup2 clears the mark.
  bool is_ours(int fd) const {
    const File& file = files_[static_cast<std::size_t>(fd)];
    struct stat status {};
    const int marks = ::fcntl(fd, F_GETFD);
    return file.opened && marks >= 0 && (marks & FD_CLOEXEC) != 0 && ::fstat(fd, &status) == 0 &&
           status.st_dev == file.device && status.st_ino == file.inode;
  }

  std::mutex mutex_;
  int users_ = 0;
  std::array<File, stdio_end> files_{};
};

/// The standard streams are the process's, so this is too. Never destroyed: threads may hold them while it exits.
StandIns& stand_ins() {
  static auto& all = *new StandIns;
  return all;
}

}  // namespace

DescriptorLimit raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  DescriptorLimit raised{.before = limit.rlim_cur, .now = limit.rlim_cur};
  if (limit.rlim_cur >= limit.rlim_max) return raised;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) raised.now = limit.rlim_cur;
  return raised;
}

int above_stdio(int fd) {
  if (fd < 0 || fd >= stdio_end) return fd;
  const Uncancelled whole;
  const int before = errno;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, stdio_end);
  const int why = moved < 0 ? errno : before;
  ::close(fd);
  errno = why;
  return moved;
}

HeldStdio::HeldStdio() {
  const Uncancelled whole;
  const KeptErrno kept;
  holds_ = stand_ins().hold();
}

HeldStdio::~HeldStdio() {
  if (!holds_) return;
  const Uncancelled whole;
  const KeptErrno kept;
  stand_ins().let_go();
}

bool SpareDescriptor::give() {
  const bool had = static_cast<bool>(fd_);
  fd_.reset();
  return had;
}

void SpareDescriptor::take() {
  if (!fd_) fd_ = UniqueFd(above_stdio([] { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }));
}

}  // namespace tutti
