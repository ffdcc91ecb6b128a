// What all processes of a fabric share: tables of processes, queue pairs, completion queues and registered memory.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "robust_lock.h"
#include "transport/verbs/abi.h"

namespace tutti::testing::fake_verbs {

inline constexpr std::uint32_t max_sge = 8, gid_count = 3;
inline constexpr std::uint32_t process_slots = 512, qp_slots = 1 << 13, cq_slots = 1 << 12, mr_slots = 1 << 14,
                               window_slots = 1 << 13;
inline constexpr std::uint32_t no_slot = ~0u;

/// Of the device of a queue pair: who asks for the wrong port must not be answered.
struct PortIdentity {
  std::array<verbs::Gid, gid_count> gids;
  std::uint16_t lid;
  verbs::LinkLayer layer;
};

struct SharedProcess {
  std::atomic<std::uint32_t> pid;         ///< 0: free
  std::atomic<std::uint64_t> serial;      ///< never used twice
  std::atomic<std::uint32_t> doorbell;    ///< a futex: rung where its progress thread has something to do
  std::atomic<std::uint32_t> attention;   ///< another stopped one of its queue pairs or overran one of its queues
  std::atomic<std::uint32_t> ports_down;  ///< a bit for each device
};

struct PostedReceive {
  std::uint64_t wr_id;
  std::uint32_t sges;
  std::array<verbs::Sge, max_sge> sge;
};

/// The side of a queue pair that its peer sees.
struct SharedQp {
  RobustLock lock;  ///< of all here; also held while its peer writes, so that memory can be deregistered after it
  bool made;
  std::atomic<std::uint32_t> number;  ///< 0: free
  std::atomic<verbs::QpState> state;
  std::atomic<int> event;  ///< that its owner has to tell about, +1
  std::uint32_t generation;
  std::uint32_t process, device, pd, recv_cq;
  std::uint32_t peer, rq_psn, sq_psn, access;
  PortIdentity port;
  std::uint64_t owner;  ///< its address in its process
  std::uint64_t ring;   ///< of PostedReceive
  std::uint32_t capacity, head, tail;
  std::atomic<std::uint32_t> starved;  ///< +1: the process that waits for a receive to be posted
  bool deaf;                           ///< what arrives is overlooked
  std::uint32_t overlooked;            ///< bytes of a message that is seen when the next one arrives, +1; 0: none
};

struct CqEntry {
  verbs::Completion completion;
  std::uint64_t owner;  ///< address of the queue pair in its process
  std::uint64_t freed;  ///< of a send: requests of the send queue up to here are over; 0: a receive
};

struct SharedCq {
  RobustLock lock;
  bool made;
  std::atomic<bool> used;
  std::atomic<bool> broken;  ///< overrun
  std::uint32_t process;
  std::uint64_t ring;  ///< of CqEntry
  std::uint32_t capacity;
  std::atomic<std::uint32_t> head, tail;
  bool armed;
  int wake;                 ///< descriptor in its process: an eventfd; -1: no channel
  std::uint64_t wake_id;    ///< never used twice
  std::uint32_t unfetched;  ///< events
};

/// Registered memory: [address, address + length), which requests call [iova, iova + length).
struct Region {
  std::uint32_t process, pd, access;
  std::uint64_t address, length, iova;
};

struct SharedMr {
  std::atomic<std::uint32_t> key;  ///< 0: nobody may use it any more
  bool taken;
  std::uint32_t generation;
  std::atomic<std::uint32_t> windows;  ///< bound to it
  Region region;
};

/// A memory window: a part of registered memory that the peer of one queue pair may write.
struct SharedWindow {
  bool taken;
  std::uint32_t process;
  std::atomic<std::uint32_t> key;  ///< while it is bound, else 0; changed under the lock of the queue pair
  std::uint32_t last_key;          ///< the next one must be another
  std::uint32_t qp, mr, access;    ///< numbers and keys; mr is set as long as the window counts among those of mr
  std::uint64_t address, length;
};

struct SharedTables {
  std::atomic<std::uint64_t> magic;
  RobustLock lock;  ///< of who takes and gives back places
  std::atomic<std::uint64_t> serial;
  std::uint32_t qps_high, cqs_high, mrs_high, windows_high;  ///< places from here on were never taken
  std::uint64_t arena_used;
  std::array<std::uint64_t, 40> arena_free;  ///< lists by power of two
  std::array<SharedProcess, process_slots> processes;
  std::array<SharedQp, qp_slots> qps;
  std::array<SharedCq, cq_slots> cqs;
  std::array<SharedMr, mr_slots> mrs;
  std::array<SharedWindow, window_slots> windows;
};

/// A mapping of the tables. Thread-safe as its locks are; one for each process and fabric.
class Fabric {
 public:
  /// `path` empty: memory of this process. Null with errno where that cannot be mapped.
  static Fabric* open(const std::string& path);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  /// A place for this process, after those of dead ones were cleared; no_slot where all are taken.
  std::uint32_t join();
  /// Gives back the place and all that is still its.
  void leave(std::uint32_t process);

  /// Places that are the process's until given back; no_slot where all are taken or the arena is full. A new queue pair
  /// is found by nobody until its number is set, see number_of.
  std::uint32_t take_qp(std::uint32_t process, std::uint32_t receives);
  std::uint32_t take_cq(std::uint32_t process, std::uint32_t entries);
  /// The key.
  std::uint32_t take_mr(const Region& region);
  void give_qp(std::uint32_t slot);
  void give_cq(std::uint32_t slot);
  /// The key must have been cleared before, and whoever was still using it be done.
  void give_mr(std::uint32_t key);
  /// The window's first key; its user chooses the lowest 8 bits of the next ones.
  std::uint32_t take_window(std::uint32_t process);
  /// Whoever was still writing through it must be done.
  void give_window(std::uint32_t key);

  std::uint32_t number_of(std::uint32_t qp_slot) const;
  /// The place that a number or key stands for; the caller compares it with what is there, under the queue pair's lock.
  SharedQp* qp_of(std::uint32_t number) const { return &tables_->qps[number % qp_slots]; }
  /// Keys of windows have the highest bit set, and those of registered memory have not.
  static bool is_of_window(std::uint32_t key) { return key >> 31 != 0; }
  SharedWindow* window_of(std::uint32_t key) const { return &tables_->windows[key >> 8 & (window_slots - 1)]; }
  /// The window is bound no more.
  void unbind(SharedWindow& window) const {
    window.key.store(0);
    if (const std::uint32_t mr = std::exchange(window.mr, 0); mr != 0) mr_of(mr)->windows.fetch_sub(1);
  }
  SharedMr* mr_of(std::uint32_t key) const { return &tables_->mrs[key % mr_slots]; }
  SharedProcess& process(std::uint32_t slot) const { return tables_->processes[slot]; }
  SharedQp& qp(std::uint32_t slot) const { return tables_->qps[slot]; }
  SharedCq& cq(std::uint32_t slot) const { return tables_->cqs[slot]; }
  std::uint64_t next_serial() const { return tables_->serial.fetch_add(1) + 1; }

  PostedReceive& receive(const SharedQp& qp, std::uint32_t index) const {
    return reinterpret_cast<PostedReceive*>(arena() + qp.ring)[index % qp.capacity];
  }
  CqEntry& entry(const SharedCq& cq, std::uint32_t index) const {
    return reinterpret_cast<CqEntry*>(arena() + cq.ring)[index % cq.capacity];
  }

 private:
  explicit Fabric(SharedTables* tables) : tables_(tables) {}
  char* arena() const;
  /// Offsets in the arena; -1 where it is full. Under the lock of the tables.
  std::uint64_t allocate(std::uint64_t bytes);
  void release(std::uint64_t at, std::uint64_t bytes);
  void clear_dead();
  void clear(std::uint32_t process);
  void clear_qp(SharedQp& qp);
  void clear_cq(SharedCq& cq);

  SharedTables* tables_;
};

/// Wakes the progress thread of a process.
void ring(SharedProcess& process);

}  // namespace tutti::testing::fake_verbs
