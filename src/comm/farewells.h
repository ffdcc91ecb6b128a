// What is still on its way for communicators that are gone: a process waits for it before it ends.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/system.h"

namespace tutti {

/// Thread-safe.
class Farewells {
 public:
  /// The service thread drops `farewell` when it is over.
  void add(const std::shared_ptr<const Task>& farewell);

  /// Until all are over; gives up after three seconds, where the service thread does not run any more.
  void wait(System& system);

 private:
  bool over();

  std::mutex mutex_;
  std::vector<std::weak_ptr<const Task>> farewells_;
};

}  // namespace tutti
