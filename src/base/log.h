// Log lines with a level, and the rank and communicator they concern. Never on the data path of a successful call.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/config.h"
#include "base/unique_fd.h"

namespace tutti {

/// In the order of TUTTI_DEBUG's choices.
enum class LogLevel { none, version, warn, info, trace };
enum class LogTopic : unsigned { init = 1, topo = 2, net = 4, coll = 8, tune = 16, env = 32, alloc = 64, all = ~0u };

/// Parses TUTTI_DEBUG_SUBSYS: "INIT,NET", "^COLL" (all but), case-insensitive; empty: INIT,ENV. Errors:
/// invalid_argument (an unknown name).
Result<unsigned> log_topics(std::string_view text);

/// What descriptor 2 is at some moment.
struct StandardError {
  bool open = false;  ///< a file that does not close on exec, as no standard stream does
  dev_t device = 0;
  ino_t inode = 0;

  static StandardError now();
  /// When the library was loaded: in a program that is linked with it, before the program could open a file.
  static const StandardError& at_load();
};

/// Where lines for people go: standard error, or a file. A writer neither waits for a reader that sleeps nor dies of
/// one that is gone: pipes and terminals are written to without blocking, through a descriptor of our own where the
/// program's blocks, as the program shares the mark with us. Thread-safe.
class LineWriter {
 public:
  /// Standard error: the file that it was. Once the program has put another file there, a terminal, a pipe, a regular
  /// file or /dev/null, but never a socket or a device; once it was seen closed, a terminal or /dev/null alone, as
  /// other files are likely there by accident.
  explicit LineWriter(const StandardError& was = StandardError::at_load()) : was_(was), seen_closed_(!was.open) {}
  /// From now on a file, opened with O_NONBLOCK. Before any other thread writes.
  void use(UniqueFd file) { file_ = std::move(file); }

  static constexpr std::size_t parts_max = 20;
  enum class Outcome {
    written,
    lost,     ///< nobody reads, or there is no space left
    unwanted  ///< standard error is closed, or is not for lines
  };
  /// The parts as one write, so that lines of several processes do not mix; at most `parts_max`. A reader that is
  /// merely slow is waited for, for a tenth of a second; after that nobody waits until a line fits again.
  Outcome write(std::span<const std::string_view> parts) noexcept;
  Outcome write(std::string_view text) noexcept { return write(std::span(&text, 1)); }

 private:
  bool is_for_lines(int fd) const;
  Outcome to_stderr(std::span<const std::string_view> parts);
  template <class Attempt>
  Outcome put(int fd, std::span<const std::string_view> parts, Attempt attempt);

  UniqueFd file_;  ///< none: standard error
  StandardError was_;
  std::atomic<bool> seen_closed_;
  std::atomic<bool> patient_ = true;
  std::atomic<bool> torn_ = false;  ///< the last line has no end
};

/// Writes log lines; thread-safe.
class Log {
 public:
  /// `file_pattern` empty: stderr; otherwise a file to append to, with %h for the host and %p for the pid. If the file
  /// cannot be opened, one warning says so, and lines go to stderr.
  Log(LogLevel level, unsigned topics, const std::string& file_pattern,
      const StandardError& was = StandardError::at_load());
  /// From TUTTI_DEBUG, TUTTI_DEBUG_SUBSYS and TUTTI_DEBUG_FILE. Topics that do not parse give one warning.
  explicit Log(const Config& config);

  bool on(LogLevel level, LogTopic topic) const {
    return level <= level_ && (level <= LogLevel::warn || (topics_ & static_cast<unsigned>(topic)) != 0);
  }
  /// "host:pid 12:04:07.113 tutti INFO who: text". Lines that cannot be written are lost; the next one that can says
  /// how many.
  void write(LogLevel level, std::string_view who, std::string_view text) noexcept;

  template <class... Args>
  void info(LogTopic topic, std::string_view who, fmt::format_string<Args...> format, Args&&... args) {
    if (on(LogLevel::info, topic)) write(LogLevel::info, who, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void warn(std::string_view who, fmt::format_string<Args...> format, Args&&... args) {
    if (on(LogLevel::warn, LogTopic::all)) write(LogLevel::warn, who, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  LogLevel level_;
  unsigned topics_;
  std::string origin_;  ///< host:pid
  LineWriter lines_;
  std::atomic<std::uint64_t> lost_ = 0;
};

}  // namespace tutti
