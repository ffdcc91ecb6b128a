// The machine's numbers: read from the file, or measured now.
#pragma once

#include <sched.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "base/log.h"
#include "choice/machine.h"
#include "tune/machine_file.h"

namespace tutti {

struct MeasuredNumbers {
  Machine machine;
  bool quiet = true;  ///< other work did not interrupt it often, so the numbers are worth keeping
};

/// A process's knowledge of its machine. Thread-safe.
class Tune {
 public:
  /// Measures nothing: uses the defaults of Machine.
  Tune() = default;
  /// The numbers are given, for every machine.
  explicit Tune(const Machine& given) : given_(given) {}
  /// How the numbers are found. Nothing: other work made that impossible, or there is a single core.
  struct Measure {
    std::function<std::optional<MeasuredNumbers>(const cpu_set_t&)> machine;
    std::function<std::optional<double>(const cpu_set_t&)>
        hop_us;  ///< Machine::hop_us alone, in a fraction of the time
    std::function<std::int64_t()> now_s = seconds_since_1970;
  };
  /// `folder`: where numbers are kept; empty: nowhere. Numbers are kept for several distances of the cores: a virtual
  /// machine's cores move, and are near to each other at one start and far at the next.
  Tune(std::string folder, int library_version, Measure measure);

  /// The numbers for ranks that share `cpus`. The first call may take some tenths of a second, and a second at most.
  /// What other work kept from being measured is tried again after an hour, also by other processes; what was measured
  /// beside other work is used and not kept. A problem with the file or its folder only causes a log line.
  Machine machine(const cpu_set_t& cpus, Log& log);

  /// Calls took times that contradict the numbers `machine`, as `seen` says in one line: the next start of a process
  /// measures again. This process and its communicators go on with the same numbers. Without effect if `machine` is
  /// not kept, is contradicted already, or may not be (may_be_contradicted). Logs what is done.
  void contradict(const Machine& machine, const std::string& seen, Log& log);

 private:
  struct Known {
    Machine machine;
    std::string path;             ///< where it is kept; empty: nowhere
    std::int64_t measured_s = 0;  ///< as MachineRecord
  };
  Known make(const cpu_set_t& cpus, Log& log) const;
  /// Measures, and keeps the numbers at `path` if it is not empty. `contradicted`: the numbers that are there now.
  Known measure_now(const cpu_set_t& cpus, const std::string& path, const std::optional<MachineRecord>& contradicted,
                    Log& log) const;
  std::optional<MachineRecord> kept(const std::string& path, const std::string& mine, Log& log) const;
  bool tried_lately(const std::string& mine, Log& log) const;
  void note_try(const std::string& mine, Log& log) const;

  Machine given_;
  std::string folder_;
  int library_version_ = 0;
  Measure measure_;
  std::mutex mutex_;
  std::optional<Known> known_;
  int cores_ = 0;  ///< number of cores for which it is valid
};

/// $TUTTI_CACHE_DIR, else $XDG_CACHE_HOME/tutti, else $HOME/.cache/tutti; null or empty means unset. Empty if none is
/// set.
std::string cache_folder(const std::string& setting, const char* xdg_cache_home, const char* home);

}  // namespace tutti
