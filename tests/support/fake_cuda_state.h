// The inside of the fake driver: what its parts share.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/fake_cuda.h"

struct CUctx_st {
  int device = 0;
  int retained = 0;
  int sticky = 0;
};

namespace tutti::testing::fake {

using cuda::Status;
namespace code = cuda::status;

/// Whether something queued has ended.
struct Done {
  bool ended = false;
};
using DoneMark = std::shared_ptr<Done>;

using Work = std::function<Status()>;

struct Op {
  Work work;
  std::vector<DoneMark> after;
  DoneMark done = std::make_shared<Done>();
};

struct Node {
  Work work;
  std::set<int> after;
};

/// A reference of a graph to a user object; the last one gone calls its destructor.
struct UserReference {
  explicit UserReference(CUuserObject_st* of) : object(of) {}
  ~UserReference();
  CUuserObject_st* object;
};

struct Capture {
  std::uint64_t id = 0;
  bool broken = false;
  int mode = 0;
  CUstream_st* origin = nullptr;
  std::set<CUstream_st*> streams;
  CUgraph_st* graph = nullptr;
};

}  // namespace tutti::testing::fake

struct CUgraph_st {
  std::vector<tutti::testing::fake::Node> nodes;
  std::vector<std::shared_ptr<tutti::testing::fake::UserReference>> kept;
};
struct CUgraphExec_st {
  std::shared_ptr<const CUgraph_st> graph;
};
struct CUuserObject_st {
  int references = 0;
  void* what = nullptr;
  tutti::cuda::HostFunction destroy = nullptr;
};
struct CUstream_st {
  CUctx_st* context = nullptr;
  bool blocking = true;
  bool legacy = false;
  bool destroyed = false;
  std::uint64_t id = 0;  ///< given when asked for
  std::deque<tutti::testing::fake::Op> queue;
  tutti::testing::fake::DoneMark last;
  std::thread worker;
  std::shared_ptr<tutti::testing::fake::Capture> capture;
  std::set<int> tail;  ///< nodes that the next one comes after
};
struct CUevent_st {
  tutti::testing::fake::DoneMark recorded;
  std::shared_ptr<tutti::testing::fake::Capture> capture;  ///< recorded in it,
  std::set<int> tail;                                      ///<   after these
};
struct CUlib_st {
  std::map<std::string, std::unique_ptr<CUkern_st>> kernels;
};
struct CUkern_st {
  std::string name;
};

namespace tutti::testing::fake {

struct Range {
  std::size_t bytes = 0;
  int device = -1;  ///< -1: pinned
  bool managed = false;
  bool registered = false;                        ///< memory of somebody else's
  int file = -1;                                  ///< by which other processes map it
  std::uint64_t id = 0;                           ///< no two that there ever were are alike
  int opened = 0;                                 ///< memory of another process: of which,
  int opened_by = -1;                             ///<   and by which GPU
  std::optional<unsigned> rights = std::nullopt;  ///< bit i: GPU i may access it; nothing: all may
  bool pooled = false;                            ///< the rights of the pool count instead
  bool created = false;                           ///< by cuMemCreate: even its own GPU needs the rights
};

/// What cuMemCreate made, or a descriptor of that.
struct Created {
  int file = -1;
  std::size_t bytes = 0;
  int device = 0;
  int owner = 0;  ///< process
};

struct Injected {
  Status status = 0;
  int after = 0;
  bool for_ever = false;
};

class State final : public FakeCuda {
 public:
  void set_devices(int count) override;
  void set_first_device(int first) override;
  void set_mps(bool on) override;
  void set_blocks_max(unsigned blocks) override;
  void set_one_queue(bool one) override;
  void occupy(unsigned blocks) override;
  void set_shareable(bool can) override;
  void set_memory_operations(bool can) override;
  void set_queue_max(std::size_t most) override;
  bool is_locked() override;
  void set_kernel(FakeKernel kernel) override;
  void at_launch(void (*hook)()) override { launch_hook = hook; }
  void fail(const std::string& function, Status status, int after, bool for_ever) override;
  void forgive() override;
  int calls(const std::string& function) override;
  void break_device(int device, Status status) override;
  void hold() override;
  void release() override;
  Live live() override;

  /// Every function begins with this; not 0: what it returns. `lock` is held afterwards.
  Status enter(const char* function, std::unique_lock<std::mutex>& lock);

  /// Queues work on a stream, or adds it to what the stream captures. Under the lock.
  Status submit(CUstream_st* stream, Work work);
  CUstream_st* resolve(CUstream_st* stream);  ///< default streams by the current context; nullptr: no context
  /// Not destroyed, and no pointer made up.
  bool known(CUstream_st* stream) const {
    if (streams.contains(stream) || of_threads.contains(stream)) return true;
    return std::any_of(legacy.begin(), legacy.end(), [stream](const auto& one) { return one.second.get() == stream; });
  }
  /// The memory that holds an address; nullptr: none of ours.
  const Range* range_of(std::uintptr_t at) const;
  /// Whether a GPU may access what lies at an address.
  bool may_access(int device, std::uintptr_t at) const;
  /// What may not be called while a stream is being captured ends the capture.
  Status prohibited();
  void wait_for(std::unique_lock<std::mutex>& lock, const DoneMark& mark);
  /// Waits under the driver's lock, which keeps all others out. Under our own.
  void wait_locked(const std::function<bool()>& until);
  /// Where queues are bounded: under the driver's lock, until all streams have nothing to do.
  void wait_for_all();

  std::mutex mutex;
  std::condition_variable changed;
  bool initialised = false;
  bool held = false;
  bool one_queue = false;
  DoneMark newest;  ///< of what was queued on any stream
  bool shareable = false;
  bool memory_operations = true;
  std::size_t queue_max = 0;
  std::thread::id lock_holder;  ///< the thread that waits while it holds the driver's lock
  std::atomic<int> lost = 0;    ///< how often a GPU was: what waited for memory then waits no more
  int running = 0;              ///< works that streams do just now
  unsigned blocks_max = 264;
  unsigned occupied = 0;
  std::map<int, unsigned> resident;  ///< by GPU: blocks of kernels that run just now
  int first_device = 0;
  bool mps = false;
  FakeKernel kernel;
  std::atomic<void (*)()> launch_hook = nullptr;
  std::vector<std::unique_ptr<CUctx_st>> contexts = one_context();
  std::map<CUctx_st*, std::unique_ptr<CUstream_st>> legacy;
  std::map<std::uintptr_t, Range> memory;          ///< by address
  std::map<cuda::Allocated, Created> created;      ///< by handle
  std::map<std::uintptr_t, std::size_t> reserved;  ///< bytes by address
  std::map<int, std::set<int>> pools;              ///< by GPU, who besides it may access its pool
  std::set<CUstream_st*> streams;
  std::set<CUstream_st*> of_threads;  ///< each thread's own default streams; they stay
  std::set<CUevent_st*> events;
  std::set<CUlib_st*> libraries;
  std::vector<std::weak_ptr<Capture>> captures;
  std::uint64_t next_capture = 1;
  std::uint64_t next_stream = 1;
  std::uint64_t next_allocation = 1;
  int user_objects = 0;
  int misuse = 0;

 private:
  static std::vector<std::unique_ptr<CUctx_st>> one_context();
  void work(CUstream_st* stream);
  void let_nothing_run(std::unique_lock<std::mutex>& lock);

  std::map<std::string, Injected> injected_;
  std::map<std::string, int> calls_;
};

State& state();

/// Of the calling thread.
struct ThreadState {
  std::vector<CUctx_st*> contexts;
  std::map<CUctx_st*, CUstream_st*> streams;  ///< its own default stream of each GPU
  int capture_mode = 0;
  bool in_callback = false;
};
ThreadState& thread_state();

CUctx_st* current();

/// Locks, counts, and returns from the function around it where a failure was asked for.
#define FAKE_ENTER(function)                    \
  auto& fake = ::tutti::testing::fake::state(); \
  std::unique_lock<std::mutex> lock;            \
  if (const auto refused = fake.enter(function, lock); refused != 0) return refused

/// The same of functions that need a context.
#define FAKE_ENTER_CONTEXT(function)                                     \
  FAKE_ENTER(function);                                                  \
  auto* const context = ::tutti::testing::fake::current();               \
  if (context == nullptr) return ::tutti::cuda::status::invalid_context; \
  if (context->sticky != 0) return context->sticky

/// The tables of the parts, by CUDA's names.
struct Named {
  const char* name;
  void* function;
};
std::vector<Named> memory_functions();
std::vector<Named> virtual_memory_functions();
std::vector<Named> stream_functions();
std::vector<Named> access_functions();
std::vector<Named> kernel_functions();

}  // namespace tutti::testing::fake
