// Work that a process must finish for others before it ends: the last messages of its communicators, and the starts
// whose root it is.
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
  /// The service thread drops `close` when it is finished.
  void add(const std::shared_ptr<const Task>& close);
  /// The root of a start whose ranks in other processes may arrive and join later than those of this process.
  void add_root(const std::shared_ptr<BootstrapRoot>& root);
  /// The root that was made with this secret, while its start is under way.
  std::shared_ptr<BootstrapRoot> root_of(const Secret& secret);

  /// While an object of this class lives, this process is about to become part of a communicator.
  class Joining {
   public:
    explicit Joining(PendingCloses& pending_closes) : closes_(pending_closes) { ++closes_.joining_; }
    ~Joining() { --closes_.joining_; }
    Joining(const Joining&) = delete;
    Joining& operator=(const Joining&) = delete;

   private:
    PendingCloses& closes_;
  };

  /// Waits until all are finished. Gives up after three seconds, for the case that the service thread no longer runs;
  /// after ten if ranks elsewhere are still in a start, or have to hear why it failed; at once if a start cannot
  /// complete because this process ends in the middle of it.
  void wait(System& system);

 private:
  bool over();
  bool starts_over();

  std::mutex mutex_;
  std::vector<std::weak_ptr<const Task>> closes_;
  std::vector<std::weak_ptr<BootstrapRoot>> roots_;
  std::atomic<int> joining_ = 0;
};

}  // namespace tutti
