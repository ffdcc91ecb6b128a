// Where a launcher lets the ranks of a job leave words for one another, before they can talk: put, fence, get.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/error.h"
#include "base/system.h"
#include "launch/launch_env.h"

namespace tutti {

/// This process's connection to its launcher. Its end tells the launcher that the process leaves in good order: some
/// launchers kill the whole job otherwise. After an error it gives nothing but errors.
class KeyValueSpace {
 public:
  virtual ~KeyValueSpace() = default;

  virtual const char* name() const = 0;  ///< "PMI-1"
  /// As the launcher knows it; 0 where it says nothing beyond the environment.
  virtual int ranks() const { return 0; }

  /// Keys and values are printable and without blanks, '=' and ';'; a key at most 63 bytes, a value 1,000. All of these
  /// give up at `deadline_ns` of the system's clock. Errors: timeout, remote (the launcher said no, or something that
  /// is no answer), system.
  virtual Result<void> put(const std::string& key, const std::string& value, std::int64_t deadline_ns) = 0;
  /// Every rank of the job calls it; what was put before can then be got.
  virtual Result<void> fence(std::int64_t deadline_ns) = 0;
  /// What rank `rank` put. Errors also: remote (it put no such thing).
  virtual Result<std::string> get(int rank, const std::string& key, std::int64_t deadline_ns) = 0;
};

/// Each checks that its launcher is there. Errors: those of KeyValueSpace; invalid_usage (the descriptor is closed, or
/// belongs to an MPI library of this process).
Result<std::unique_ptr<KeyValueSpace>> open_pmi1(System& system, const LaunchInfo& launch, std::int64_t deadline_ns);
Result<std::unique_ptr<KeyValueSpace>> open_pmi2(System& system, const LaunchInfo& launch, std::int64_t deadline_ns);
Result<std::unique_ptr<KeyValueSpace>> open_pmix(System& system, const LaunchInfo& launch, std::int64_t deadline_ns);

/// The one space of a process, opened at first need. Thread-safe.
class LauncherSpace {
 public:
  /// Null where the launcher has none. Errors: as of the three above, the same at every call.
  Result<std::shared_ptr<KeyValueSpace>> get(System& system, const LaunchInfo& launch, std::int64_t deadline_ns);
  /// Says goodbye; to be called once, at the end of the process.
  void leave();

 private:
  std::mutex mutex_;
  bool tried_ = false;
  std::shared_ptr<KeyValueSpace> space_;
  std::optional<Error> failure_;
};

}  // namespace tutti
