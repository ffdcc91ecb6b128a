// What a process still owes to others when it ends: the last words of its communicators, and starts that it is the root
// of.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/system.h"
#include "bootstrap/bootstrap.h"

namespace tutti {

/// Thread-safe.
class PendingCloses {
 public:
  /// The service thread drops `close` when it is over.
  void add(const std::shared_ptr<const Task>& close);
  /// The root of a start, where ranks of other processes may come and be on their way longer than those of this one.
  void add_root(const std::shared_ptr<const BootstrapRoot>& root);
  /// The one that was made with this secret, as long as it goes on.
  std::shared_ptr<const BootstrapRoot> root_of(const Secret& secret);

  /// As long as somebody holds one, this process is about to become part of a communicator.
  class Joining {
   public:
    explicit Joining(PendingCloses& pending_closes) : closes_(pending_closes) { ++closes_.joining_; }
    ~Joining() { --closes_.joining_; }
    Joining(const Joining&) = delete;
    Joining& operator=(const Joining&) = delete;

   private:
    PendingCloses& closes_;
  };

  /// Until all are over. Gives up after three seconds, where the service thread does not run any more; after ten where
  /// a start goes on elsewhere, and at once where it cannot come about, as this process ends in the middle of it.
  void wait(System& system);

 private:
  bool over();
  bool starts_over();

  std::mutex mutex_;
  std::vector<std::weak_ptr<const Task>> closes_;
  std::vector<std::weak_ptr<const BootstrapRoot>> roots_;
  std::atomic<int> joining_ = 0;
};

}  // namespace tutti
