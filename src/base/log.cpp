#include "base/log.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <utility>

#include "base/blocked_signal.h"
#include "base/descriptors.h"
#include "base/host.h"
#include "base/system.h"
#include "base/uncancelled.h"

namespace tutti {
namespace {

constexpr std::pair<std::string_view, LogTopic> topic_names[] = {
    {"INIT", LogTopic::init}, {"TOPO", LogTopic::topo}, {"NET", LogTopic::net}, {"COLL", LogTopic::coll},
    {"TUNE", LogTopic::tune}, {"ENV", LogTopic::env},   {"ALL", LogTopic::all}, {"ALLOC", LogTopic::alloc}};
constexpr unsigned default_topics = static_cast<unsigned>(LogTopic::init) | static_cast<unsigned>(LogTopic::env);

std::string_view level_name(LogLevel level) {
  constexpr std::array<std::string_view, 5> names{"", "VERSION", "WARN", "INFO", "TRACE"};
  return names[static_cast<std::size_t>(level)];
}

std::string file_name(const std::string& pattern) {
  std::string name;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'h')
      name += host_name();
    else if (next == 'p')
      name += std::to_string(::getpid());
    else
      name += pattern[i];
    if (next == 'h' || next == 'p' || next == '%') ++i;
  }
  return name;
}

/// ctime's functions may allocate; a failure of this one does no harm.
std::array<char, 16> time_of_day() {
  constexpr std::int64_t ns_per_s = 1'000'000'000;
  const std::int64_t now_ns = wall_clock_ns();
  const auto now_s = static_cast<std::time_t>(now_ns / ns_per_s);
  std::tm parts{};
  ::localtime_r(&now_s, &parts);
  std::array<char, 16> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%T", &parts);
  std::snprintf(text.data() + length, text.size() - length, ".%03u",
                static_cast<unsigned>(now_ns % ns_per_s / 1'000'000));
  return text;
}

constexpr std::int64_t ns_per_ms = 1'000'000;
constexpr std::int64_t patience_ns = 100 * ns_per_ms;

bool is_pipe(const struct stat& status) {
  return S_ISFIFO(status.st_mode);
}

bool is_null_device(const struct stat& status) {
  return S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

bool is_terminal(int fd, const struct stat& status) {
  return S_ISCHR(status.st_mode) && ::isatty(fd) != 0;
}

/// Whether it can be written to within this time.
bool becomes_writable(int fd, std::int64_t ns) {
  pollfd item{.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&item, 1, static_cast<int>((ns + ns_per_ms - 1) / ns_per_ms)) > 0;
}

/// What is left to be written of a line.
class Rest {
 public:
  void add(std::string_view text) {
    if (!text.empty() && count_ < pieces_.size())
      pieces_[count_++] = {.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  }
  bool empty() const { return next_ == count_; }
  std::span<iovec> pieces() { return std::span(pieces_).subspan(next_, count_ - next_); }
  void drop(std::size_t bytes) {
    while (!empty() && bytes >= pieces_[next_].iov_len) bytes -= pieces_[next_++].iov_len;
    if (empty()) return;
    pieces_[next_].iov_base = static_cast<char*>(pieces_[next_].iov_base) + bytes;
    pieces_[next_].iov_len -= bytes;
  }
  /// Its beginning, of at most so many bytes.
  Rest first(std::size_t bytes) const {
    Rest begin;
    for (std::size_t i = next_; i < count_ && bytes > 0; ++i) {
      const std::string_view piece(static_cast<const char*>(pieces_[i].iov_base), pieces_[i].iov_len);
      begin.add(piece.substr(0, bytes));
      bytes -= std::min(bytes, piece.size());
    }
    return begin;
  }

 private:
  std::array<iovec, LineWriter::parts_max + 1> pieces_{};
  std::size_t next_ = 0, count_ = 0;
};

// Ways to write; each returns what the system call does.

ssize_t write_as_it_is(int fd, Rest& rest) {
  return ::writev(fd, rest.pieces().data(), static_cast<int>(rest.pieces().size()));
}

ssize_t send_at_once(int fd, Rest& rest) {
  msghdr message{};
  message.msg_iov = rest.pieces().data();
  message.msg_iovlen = rest.pieces().size();
  return ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

ssize_t write_if_writable(int fd, Rest rest) {
  if (becomes_writable(fd, 0)) return write_as_it_is(fd, rest);
  errno = EAGAIN;
  return -1;
}

/// To a pipe whose writes wait. Where the kernel cannot be told not to wait (before Linux 6.4), another writer may come
/// in between and take the space.
ssize_t write_to_pipe(int fd, Rest& rest) {
  Rest whole = rest.first(PIPE_BUF);
  const ssize_t put = ::pwritev2(fd, whole.pieces().data(), static_cast<int>(whole.pieces().size()), -1, RWF_NOWAIT);
  if (put >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)) return put;
  return write_if_writable(fd, whole);
}

/// To a terminal whose writes wait: that it is writable says that it has space for one byte.
ssize_t write_to_terminal(int fd, Rest& rest) {
  return write_if_writable(fd, rest.first(1));
}

/// The pipe or terminal `fd` once more, so that only our writes do not block. None: errno says why.
UniqueFd reopened(int fd) {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", fd);
  return UniqueFd(above_stdio([&] { return ::open(path.data(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); }));
}

}  // namespace

StandardError StandardError::now() {
  struct stat status {};
  const int marks = ::fcntl(STDERR_FILENO, F_GETFD);
  const bool open = marks >= 0 && (marks & FD_CLOEXEC) == 0 && ::fstat(STDERR_FILENO, &status) == 0;
  return {.open = open, .device = status.st_dev, .inode = status.st_ino};
}

const StandardError& StandardError::at_load() {
  static const StandardError loaded = now();
  return loaded;
}

namespace {
/// At the first call it may be too late: a program that was started with 2 closed may have put a file of its own there.
[[maybe_unused]] const StandardError& looked_at_load = StandardError::at_load();
}  // namespace

bool LineWriter::is_for_lines(int fd) const {
  struct stat now {};
  if (::fstat(fd, &now) != 0) return false;
  if (is_null_device(now) || is_terminal(fd, now)) return true;
  const bool same = was_.open && now.st_dev == was_.device && now.st_ino == was_.inode;
  if (is_pipe(now) || S_ISREG(now.st_mode)) return same || !seen_closed_;
  return same && (S_ISSOCK(now.st_mode) || S_ISCHR(now.st_mode));
}

template <class Attempt>
LineWriter::Outcome LineWriter::put(int fd, std::span<const std::string_view> parts, Attempt attempt) {
  const BlockedSignal broken_pipe(SIGPIPE), beyond_limit(SIGXFSZ);
  const bool was_torn = torn_.exchange(false);
  Rest rest;
  if (was_torn) rest.add("\n");
  for (const std::string_view part : parts.first(std::min(parts.size(), parts_max))) rest.add(part);
  bool begun = false;
  std::int64_t deadline_ns = 0;
  while (!rest.empty()) {
    const ssize_t written = attempt(fd, rest);
    if (written > 0) {
      rest.drop(static_cast<std::size_t>(written));
      begun = true;
      continue;
    }
    if (written < 0 && errno == EINTR) continue;
    if (written == 0 || errno != EAGAIN || !patient_) break;
    const std::int64_t now_ns = real_system().now_ns();
    if (deadline_ns == 0) deadline_ns = now_ns + patience_ns;
    if (now_ns >= deadline_ns || !becomes_writable(fd, deadline_ns - now_ns)) break;
  }
  patient_ = rest.empty();
  if (rest.empty()) return Outcome::written;
  if (begun || was_torn) torn_ = true;
  return Outcome::lost;
}

LineWriter::Outcome LineWriter::to_stderr(std::span<const std::string_view> parts) {
  const int marks = ::fcntl(STDERR_FILENO, F_GETFD);
  // A descriptor of our own of the same file: the program may close or replace its own at any moment.
  const UniqueFd held(
      marks < 0 ? -1 : above_stdio([&] { return ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); }));
  // A file that closes on exec is one of the program's own, or holds the place of none.
  if (marks < 0 || (!held && errno == EBADF) || (marks & FD_CLOEXEC) != 0) {
    seen_closed_ = true;
    return Outcome::unwanted;
  }
  const int fd = held ? held.get() : STDERR_FILENO;  // where no descriptor is left
  if (!is_for_lines(fd)) return Outcome::unwanted;
  struct stat status {};
  ::fstat(fd, &status);
  if (S_ISSOCK(status.st_mode)) return put(fd, parts, send_at_once);
  const bool may_wait = is_pipe(status) || is_terminal(fd, status);
  if (!may_wait || (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0) return put(fd, parts, write_as_it_is);
  if (const UniqueFd own = reopened(fd)) return put(own.get(), parts, write_as_it_is);
  if (errno == ENXIO) return Outcome::lost;  // a pipe without a reader
  // It is another user's, or there is no /proc, or no descriptor is left.
  return is_pipe(status) ? put(fd, parts, write_to_pipe) : put(fd, parts, write_to_terminal);
}

LineWriter::Outcome LineWriter::write(std::span<const std::string_view> parts) noexcept {
  const Uncancelled whole;
  return file_ ? put(file_.get(), parts, write_as_it_is) : to_stderr(parts);
}

Result<unsigned> log_topics(std::string_view text) {
  if (text.empty()) return default_topics;
  const bool inverted = text.starts_with('^');
  if (inverted) text.remove_prefix(1);
  unsigned topics = 0;
  while (!text.empty()) {
    const auto name = text.substr(0, text.find(','));
    text.remove_prefix(std::min(name.size() + 1, text.size()));
    const auto* const at =
        std::ranges::find_if(topic_names, [name](const auto& one) { return same_ignoring_case(one.first, name); });
    if (at == std::end(topic_names))
      return invalid_argument(
          fmt::format("TUTTI_DEBUG_SUBSYS: \"{}\" is not one of INIT, TOPO, NET, COLL, TUNE, ENV, ALLOC, ALL", name));
    topics |= static_cast<unsigned>(at->second);
  }
  return inverted ? ~topics : topics;
}

Log::Log(LogLevel level, unsigned topics, const std::string& file_pattern, const StandardError& was)
    : level_(level), topics_(topics), origin_(fmt::format("{}:{}", host_name(), ::getpid())), lines_(was) {
  if (level == LogLevel::none || file_pattern.empty()) return;
  const std::string name = file_name(file_pattern);
  // A pipe without a reader is refused at once.
  constexpr int how = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  UniqueFd file(above_stdio([&] { return ::open(name.c_str(), how, 0666); }));
  if (!file)
    warn("log", "{}", Error{.code = Code::system, .what = "open TUTTI_DEBUG_FILE " + name, .sys_errno = errno}.text());
  lines_.use(std::move(file));
}

Log::Log(const Config& config)
    : Log(static_cast<LogLevel>(config.integer("TUTTI_DEBUG")), default_topics, config.text("TUTTI_DEBUG_FILE")) {
  if (auto topics = log_topics(config.text("TUTTI_DEBUG_SUBSYS")))
    topics_ = *topics;
  else
    warn("log", "{}", topics.error().what);
}

void Log::write(LogLevel level, std::string_view who, std::string_view text) noexcept {
  const auto time = time_of_day();
  std::array<char, 32> number{};
  const std::uint64_t lost = lost_.exchange(0);
  std::to_chars(number.data(), number.data() + number.size() - 1, lost);
  const std::array<std::string_view, 16> parts{origin_,
                                               " ",
                                               time.data(),
                                               " tutti WARN log: lines lost here, as nobody took them: ",
                                               number.data(),
                                               "\n",
                                               origin_,
                                               " ",
                                               time.data(),
                                               " tutti ",
                                               level_name(level),
                                               " ",
                                               who,
                                               ": ",
                                               text,
                                               "\n"};
  static_assert(parts.size() <= LineWriter::parts_max);
  constexpr std::size_t about_lost = 6;
  const auto outcome = lines_.write(std::span(parts).subspan(lost > 0 ? 0 : about_lost));
  if (outcome != LineWriter::Outcome::written) lost_ += lost + (outcome == LineWriter::Outcome::lost ? 1 : 0);
}

}  // namespace tutti
