// The machine's numbers: read from the file, or measured now.
#pragma once

#include <sched.h>

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "algorithms/machine.h"
#include "base/log.h"

namespace tutti {

/// A process's knowledge of its machine. Thread-safe.
class Tune {
 public:
  /// Measures nothing: uses the defaults of Machine.
  Tune() = default;
  /// The numbers are given, for every machine.
  explicit Tune(const Machine& given) : given_(given) {}
  /// How the numbers are found. Nothing: other work made that impossible, or there is a single core.
  struct Measure {
    std::function<std::optional<Machine>(const cpu_set_t&)> machine;
    std::function<std::optional<double>(const cpu_set_t&)>
        hop_us;  ///< Machine::hop_us alone, in a fraction of the time
  };
  /// `folder`: where numbers are kept; empty: nowhere. Numbers are kept for several distances of the cores: a virtual
  /// machine's cores move, and are near to each other at one start and far at the next.
  Tune(std::string folder, int library_version, Measure measure);

  /// The numbers for ranks that share `cpus`. The first call may take some tenths of a second. A problem with the file
  /// or its folder only causes a log line.
  Machine machine(const cpu_set_t& cpus, Log& log);

 private:
  Machine make(const cpu_set_t& cpus, Log& log) const;
  std::optional<Machine> kept(const std::string& path, const std::string& mine, Log& log) const;

  std::optional<Machine> given_;
  std::string folder_;
  int library_version_ = 0;
  Measure measure_;
  std::mutex mutex_;
  std::optional<Machine> known_;
  int cores_ = 0;  ///< number of cores for which it is valid
};

/// $TUTTI_CACHE_DIR, else $XDG_CACHE_HOME/tutti, else $HOME/.cache/tutti; null or empty means unset. Empty if none is
/// set.
std::string cache_folder(const std::string& setting, const char* xdg_cache_home, const char* home);

}  // namespace tutti
