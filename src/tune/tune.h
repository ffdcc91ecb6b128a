// The machine's numbers: kept from before, or measured now.
#pragma once

#include <sched.h>

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "algorithms/machine.h"
#include "base/log.h"

namespace tutti {

/// What a process knows of its machine. Thread-safe.
class Tune {
 public:
  /// Measures nothing: the defaults of Machine.
  Tune() = default;
  /// `folder`: where numbers are kept; empty: nowhere. `measure`: takes them; nothing: it could not, for other work.
  using Measure = std::function<std::optional<Machine>(const cpu_set_t&)>;
  Tune(std::string folder, int library_version, Measure measure);

  /// For ranks on `cpus` all together. The first time it may take some tenths of a second. What is wrong with the file
  /// or its folder costs a line in the log, not more.
  Machine machine(const cpu_set_t& cpus, Log& log);

 private:
  Machine make(const cpu_set_t& cpus, Log& log) const;

  std::string folder_;
  int library_version_ = 0;
  Measure measure_;
  std::mutex mutex_;
  std::optional<Machine> known_;
  int cores_ = 0;  ///< that it is known for
};

/// $TUTTI_CACHE_DIR, else $XDG_CACHE_HOME/tutti, else $HOME/.cache/tutti; null or empty: not given. Empty without any.
std::string cache_folder(const std::string& setting, const char* xdg_cache_home, const char* home);

}  // namespace tutti
