// A launcher's key-value space, by which the ranks of a job exchange text before they are connected: put, fence, get.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/error.h"
#include "base/system.h"
#include "launch/launch_env.h"

namespace tutti {

/// This process's connection to its launcher. Its destruction tells the launcher that the process ends in good order;
/// otherwise some launchers kill the whole job. After an error every call returns an error.
class KeyValueSpace {
 public:
  virtual ~KeyValueSpace() = default;

  virtual const char* name() const = 0;  ///< "PMI-1"
  /// The launcher's number of ranks; 0 if it adds nothing to the environment.
  virtual int ranks() const { return 0; }

  /// Keys and values are printable and have no blanks, '=' or ';'. A key has at most 63 bytes, a value 1,000. All of
  /// these functions give up at `deadline_ns` of the system's clock. Errors: timeout, remote (the launcher refused, or
  /// sent an invalid answer), system.
  virtual Result<void> put(const std::string& key, const std::string& value, std::int64_t deadline_ns) = 0;
  /// Every rank of the job calls it; afterwards all earlier puts can be read.
  virtual Result<void> fence(std::int64_t deadline_ns) = 0;
  /// The value that rank `rank` has put. Errors also: remote (no such value).
  virtual Result<std::string> get(int rank, const std::string& key, std::int64_t deadline_ns) = 0;
};

/// Each function checks that its launcher is there. Errors: those of KeyValueSpace; invalid_usage (the descriptor is
/// closed, or belongs to an MPI library of this process).
Result<std::shared_ptr<KeyValueSpace>> open_pmi1(System& system, const LaunchInfo& launch, std::int64_t deadline_ns);
Result<std::shared_ptr<KeyValueSpace>> open_pmi2(System& system, const LaunchInfo& launch, std::int64_t deadline_ns);
Result<std::shared_ptr<KeyValueSpace>> open_pmix(System& system, const LaunchInfo& launch, std::int64_t deadline_ns);

/// The one space of a process, opened on first use. Thread-safe.
class LauncherSpace {
 public:
  /// Null if the launcher has none. Errors: those of the three functions above, equal at every call.
  Result<std::shared_ptr<KeyValueSpace>> get(System& system, const LaunchInfo& launch, std::int64_t deadline_ns);
  /// Says goodbye; to be called once, at the end of the process.
  void leave() {
    const std::lock_guard lock(mutex_);
    if (space_ && *space_) (**space_).reset();
  }

 private:
  std::mutex mutex_;
  std::optional<Result<std::shared_ptr<KeyValueSpace>>> space_;
};

}  // namespace tutti
