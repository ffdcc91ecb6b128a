// Whether a device can open memory windows. Some say that they have them, and refuse each request, as driver or
// firmware do not fit. A refused request ends its queue pair and all that is under way on it, so a queue pair without
// messages tries first.
#pragma once

#include <mutex>
#include <optional>
#include <string>

namespace tutti::verbs {

struct Port;

/// One trial for each open device. Thread-safe.
class WindowTrial {
 public:
  /// Opens a window on memory of this process and closes it, on a queue pair that is connected to itself. Takes some
  /// milliseconds the first time. False: the device refuses, or does not answer for a fifth of a second.
  bool passes(const Port& port);
  /// Why not, for the log: only the first call after the trial returns it.
  std::optional<std::string> take_trouble();

 private:
  std::mutex mutex_;
  bool tried_ = false;
  std::optional<std::string> trouble_;
  bool taken_ = false;
};

}  // namespace tutti::verbs
