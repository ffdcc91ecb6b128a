// What the pointers that callers hold stand for: each begins with the structure of libibverbs that they see.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <random>
#include <vector>

#include "fabric.h"
#include "process.h"
#include "settings.h"
#include "transport/verbs/abi.h"

namespace tutti::testing::fake_verbs {

/// Begins as ibv_device does, for those who read its node type and names.
struct FakeDevice {
  void* unused[2];
  int node_type;
  verbs::Transport transport;
  char name[64];
  char dev_name[64];
  char dev_path[256];
  char ibdev_path[256];
  int number;
  Settings settings;
};

struct OpenContext : verbs::Context {
  FakeDevice own_device;  ///< the list may be freed
  Process* process;
  std::mutex lock;
  std::deque<verbs::AsyncEvent> events;  ///< async_fd counts them
  std::atomic<bool> dead = false;        ///< completes nothing any more

  void raise(const verbs::AsyncEvent& event);
};

struct Domain : verbs::Pd {
  std::atomic<int> users;
};

struct Channel : verbs::CompletionChannel {
  std::uint64_t id;
  std::mutex lock;
  std::vector<struct CompletionQueue*> queues;
};

struct CompletionQueue : verbs::Cq {
  std::uint32_t slot;
  std::atomic<int> users;
  bool told;              ///< that it is broken
  std::uint32_t fetched;  ///< events, under `mutex`

  OpenContext& open() const { return *static_cast<OpenContext*>(context); }
  SharedCq& shared() const { return open().process->fabric().cq(slot); }
};

/// A request in a send queue.
struct Work {
  std::uint64_t wr_id;
  verbs::WorkOpcode opcode;
  bool signaled, is_inline;
  std::uint32_t immediate;
  std::uint64_t remote_address;
  std::uint32_t rkey;
  decltype(verbs::SendWork::bind) bind;
  std::uint32_t sges;
  std::array<verbs::Sge, max_sge> sge;
  std::uint32_t bytes;      ///< in all
  std::int64_t deliver_at;  ///< scrambling: not before; 0: at once
  std::int64_t complete_at;
  verbs::Status fault;     ///< what it shall end with
  std::vector<char> copy;  ///< of inline data

  bool writes() const {
    return opcode == verbs::WorkOpcode::rdma_write || opcode == verbs::WorkOpcode::rdma_write_with_immediate;
  }
  bool has_immediate() const {
    return opcode == verbs::WorkOpcode::rdma_write_with_immediate || opcode == verbs::WorkOpcode::send_with_immediate;
  }
  /// It concerns this side's windows alone.
  bool is_local() const { return opcode == verbs::WorkOpcode::bind_window || opcode == verbs::WorkOpcode::invalidate; }
  bool takes_receive() const { return opcode != verbs::WorkOpcode::rdma_write && !is_local(); }
};

enum class Waits { none, answer, readiness, receive };

/// The ring `works` holds requests [freed, posted); those below `completed` have completions, and those below
/// `delivered` are in the target's memory.
struct QueuePair : verbs::Qp {
  std::uint32_t slot;
  verbs::QpCapacity cap;
  bool signals_all;
  verbs::QpAttributes attributes;  ///< as set so far

  std::mutex lock;  ///< of all that follows
  std::vector<Work> works;
  std::uint64_t posted = 0, delivered = 0, completed = 0;
  std::atomic<std::uint64_t> freed{0};  ///< by polls, under the lock of the completion queue
  std::int64_t waiting_since = 0;       ///< of the first undelivered, as long as it waits for the same; 0: it does not
  Waits waits_for = Waits::none;
  std::mt19937_64 random;
  std::atomic<bool> watched{false};
  std::atomic<bool> speaks_second{false};  ///< it may not send before it has received, as with iWARP

  std::uint64_t receives_posted = 0;             ///< under the lock of the SharedQp
  std::atomic<std::uint64_t> receives_freed{0};  ///< as `freed`

  OpenContext& open() const { return *static_cast<OpenContext*>(context); }
  Process& process() const { return *open().process; }
  SharedQp& shared() const { return process().fabric().qp(slot); }
  CompletionQueue& sends() const { return *static_cast<CompletionQueue*>(send_cq); }
  CompletionQueue& receives() const { return *static_cast<CompletionQueue*>(recv_cq); }
  Work& work(std::uint64_t number) { return works[number % works.size()]; }
};

/// Delivers what can be delivered and completes what is. Under the pair's lock. True: some of it has to wait.
bool advance(QueuePair& pair);
/// Binds or invalidates a window. Under the pair's lock.
verbs::Status change_window(QueuePair& pair, const Work& work);
/// Has the pair's requests end as flushed, where it is stopped. Under the pair's lock.
void flush_sends(QueuePair& pair);
void flush_receives(Process& here, SharedQp& shared);
/// Fills memory that the request will write with junk. Under the pair's lock.
void scramble_target(QueuePair& pair, const Work& work);
/// Stops a pair and has its receives end as flushed. Under the SharedQp's lock. `event` is raised at its owner's; none:
/// -1
void stop(Process& here, SharedQp& shared, int event);
/// Drops what a pair that ends still has in a queue.
void forget_completions(CompletionQueue& queue, const QueuePair& pair);
/// Adds a completion, tells who waits for one, and breaks a queue that is full.
void push(Process& here, std::uint32_t cq_slot, const CqEntry& entry);

}  // namespace tutti::testing::fake_verbs
