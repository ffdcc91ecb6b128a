// Log lines with a level, and the rank and communicator they concern. Never on the data path of a successful call.
#pragma once

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

/// Writes log lines; thread-safe. A line is one write, so that lines of several processes do not mix.
class Log {
 public:
  /// `file_pattern` empty: stderr; otherwise a file to append to, with %h for the host and %p for the pid. If the file
  /// cannot be opened, one warning says so, and lines go to stderr.
  Log(LogLevel level, unsigned topics, const std::string& file_pattern);
  /// From TUTTI_DEBUG, TUTTI_DEBUG_SUBSYS and TUTTI_DEBUG_FILE. Topics that do not parse give one warning.
  explicit Log(const Config& config);

  bool on(LogLevel level, LogTopic topic) const {
    return level <= level_ && (level <= LogLevel::warn || (topics_ & static_cast<unsigned>(topic)) != 0);
  }
  /// "host:pid 12:04:07.113 tutti INFO who: text". A line that cannot be written is lost.
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
  UniqueFd file_;       ///< none: stderr
};

}  // namespace tutti
