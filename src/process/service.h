// The service thread: one thread per process that serves control connections and watches peers. It never touches data.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/system.h"
#include "base/unique_fd.h"
#include "process/places.h"

namespace tutti {

/// Drives Tasks, each when one of its handles is ready or its time has come. Thread-safe.
class Service {
 public:
  enum class Mode {
    threaded,  ///< its own thread, started with the first task
    manual,    ///< the owner calls turn(): for simulations
  };
  /// `places` and `name`, which is the thread's, outlive the thread.
  Service(System& system, Mode mode, Places& places, const char* name = "tutti-service")
      : system_(system), mode_(mode), places_(places), name_(name) {}
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Errors: system (no thread, no descriptor).
  Result<void> add(std::shared_ptr<Task> task);

  /// On return, the task is not running, will not be called again, and nobody here holds it any more: it is its owner
  /// who destroys it. Not to be called from a task.
  void remove(const Task* task);

  /// Makes the thread advance all its tasks now, for an event that no handle shows. Any thread.
  void wake();

  /// Stops the thread: on return, no task runs or will run again. For the end of the process, before the objects that
  /// tasks use are taken down. Waits two seconds at most. Not to be called from a task.
  void halt();

  /// Whether somebody else has closed this thread's descriptors, as closefrom(3) does. Tasks can rely on none, and
  /// peers that seem to have ended because of that have not.
  bool lost_descriptors() const { return lost_descriptors_.load(std::memory_order_relaxed); }

  /// Advances every task once; false when there is none. For Mode::manual.
  bool turn();

 private:
  struct Entry {
    std::shared_ptr<Task> task;
    std::int64_t due_ns = 0;  ///< the earliest time that it has asked for; a new task: now
    std::size_t first = 0;    ///< index of its first handle among those waited for
    std::size_t end = 0;
  };
  Result<void> start();
  void poke();
  void check_own_descriptors();
  void loop();
  std::vector<const Task*> take_due(const std::vector<PollItem>& items);
  void advance(const std::vector<const Task*>& tasks);

  System& system_;
  Mode mode_;
  Places& places_;
  const char* const name_;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::map<const Task*, Entry> tasks_;
  const Task* running_ = nullptr;
  UniqueFd wake_;
  std::atomic<bool> all_ = false;  ///< all tasks are to be advanced
  std::atomic<bool> lost_descriptors_ = false;
  bool started_ = false;
  bool halted_ = false;  ///< the thread is to stop
  bool parked_ = false;  ///< the thread has stopped
};

}  // namespace tutti
