// When memory may be given back to the driver.
//
// To free memory of a GPU or pinned memory, and to close memory of another process, waits for all that the GPU's
// context runs, and until then no other thread of the process can launch anything (an H100 said so:
// perf/gpu/driver_waits). If a kernel that runs waits for that of another rank, and that rank for a launch of this
// process, nothing goes on, for ever. So memory is given back while nothing is under way that waits for others, and
// launches are kept out meanwhile.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tutti::cuda {

/// Of a process. Thread-safe.
class Quiet {
 public:
  /// Whether nothing is under way now that waits for other ranks, nor comes by itself, as a graph may be replayed.
  using Idle = std::function<bool()>;

  Quiet() = default;
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

  /// As long as it lives, nothing is given back: for a thread that queues what waits for other ranks, until `Idle`
  /// knows of it. May be nested.
  class Queueing {
   public:
    explicit Queueing(Quiet& quiet);
    ~Queueing() {
      if (quiet_.queueing_.fetch_sub(1, std::memory_order_acq_rel) == 1) quiet_.try_all();
    }
    Queueing(const Queueing&) = delete;
    Queueing& operator=(const Queueing&) = delete;

   private:
    Quiet& quiet_;
  };

  /// As long as it lives, `idle` is asked before anything is given back. It is called by any thread, and must not use
  /// this object.
  class Watch {
   public:
    Watch() = default;
    Watch(Quiet& quiet, Idle idle);
    Watch(Watch&& other) noexcept { *this = std::move(other); }
    Watch& operator=(Watch&& other) noexcept {
      std::swap(quiet_, other.quiet_);
      std::swap(place_, other.place_);
      return *this;
    }
    ~Watch();

   private:
    Quiet* quiet_ = nullptr;
    std::list<Idle>::iterator place_;
  };

  /// Calls `what` now, if it is quiet, or later, in any thread. The caller holds no lock that `what`, or some Idle,
  /// takes, except while it is Queueing.
  void give_back(std::function<void()> what);
  /// Gives back what waits, if it is quiet now. False: nothing was given back.
  bool try_all();

 private:
  bool is_quiet();
  void give_all();

  std::atomic<int> queueing_ = 0;
  std::atomic<bool> any_ = false;            // something waits
  std::atomic<bool> asked_ = false;          // somebody has asked since the gate's holder began to look
  std::atomic<std::thread::id> giver_ = {};  // who gives back now
  std::mutex gate_;                          // held while something is given back
  std::mutex watched_mutex_;
  std::list<Idle> watched_;
  std::mutex waiting_mutex_;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace tutti::cuda
