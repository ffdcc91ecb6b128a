// This process in its fabric: its place, its peers, and the thread that goes on where nobody polls.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "fabric.h"
#include "peers.h"
#include "settings.h"

namespace tutti::testing::fake_verbs {

struct OpenContext;
struct QueuePair;

/// There is one while a device is open. Thread-safe. Order of locks: of the lists, of a send queue, of a SharedQp, of a
/// SharedCq; the tables' before those of what they hold.
class Process {
 public:
  /// Joins with the first that is opened, leaves with the last. Null with errno where the fabric cannot be joined.
  static Process* enter();
  static void leave();
  /// Of what is open; null: nothing is.
  static Process* current();

  Fabric& fabric() { return *fabric_; }
  const Settings& settings() const { return settings_; }
  std::uint32_t slot() const { return slot_; }
  SharedProcess& shared() { return fabric_->process(slot_); }

  void add(OpenContext* context);
  void remove(OpenContext* context);
  void add(QueuePair* pair);
  void remove(QueuePair* pair);
  /// From now until all its work is done, each poll and the thread look after it. Not under the lock of its queue.
  void watch(QueuePair* pair);
  /// All that may be using a region whose key was cleared is done when this returns.
  void wait_for_users(std::uint32_t pd);

  /// Goes on with all that waits, where no other thread does already.
  void progress() {
    if (watched_count_.load(std::memory_order_relaxed) != 0 || shared().attention.load(std::memory_order_relaxed) != 0)
      advance();
  }
  /// A device's port is taken down or up.
  void set_port(int device, bool up);

  bool is_own(std::uint32_t process) const { return process == slot_; }
  bool alive(std::uint32_t process);
  /// For move_bytes: 0 for this process.
  std::uint32_t pid_of(std::uint32_t process) const;
  /// One event of a channel that may be another process's.
  void wake_channel(const SharedCq& cq);
  /// Lets another (or this) process look after queue pairs and queues that were stopped.
  void call_attention(std::uint32_t process);

 private:
  Process() = default;
  void start();
  void stop();
  void run();
  void advance();
  void attend();

  Settings settings_;
  std::unique_ptr<Fabric> fabric_;
  std::uint32_t slot_ = no_slot;
  Peers peers_;
  std::mutex lists_;
  std::vector<OpenContext*> contexts_;
  std::vector<QueuePair*> pairs_, watched_;
  std::atomic<std::size_t> watched_count_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

/// Of the monotonic clock.
std::int64_t now_ns();

}  // namespace tutti::testing::fake_verbs
