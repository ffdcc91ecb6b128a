#include "process.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "faults.h"
#include "objects.h"

namespace tutti::testing::fake_verbs {
namespace {

/// What a process has once. A forked child begins anew: its parent's thread and its place are not its own.
struct Once {
  std::mutex lock;
  std::atomic<Process*> process{nullptr};
  int users = 0;
  Once* of_parent = nullptr;  ///< never freed, and not leaked either
};

void read_faults() {
  faults().clear();
  const char* const text = std::getenv("FAKE_VERBS_FAULT");
  if (text != nullptr && !faults().add(text)) std::fprintf(stderr, "FAKE_VERBS_FAULT says nothing known: %s\n", text);
}

Once*& once() {
  static Once* all = [] {
    read_faults();
    return new Once;
  }();
  return all;
}

void begin_anew() {
  Once* const fresh = new Once;
  fresh->of_parent = once();
  once() = fresh;
  read_faults();
}

void wait_for_bell(SharedProcess& process, std::uint32_t seen, const timespec* limit) {
  ::syscall(SYS_futex, &process.doorbell, FUTEX_WAIT, seen, limit, nullptr, 0);
}

}  // namespace

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Process* Process::current() {
  return once()->process.load();
}

Process* Process::enter() {
  static const int registered = ::pthread_atfork(nullptr, nullptr, begin_anew);
  (void)registered;
  Once& all = *once();
  const std::lock_guard guard(all.lock);
  if (all.users > 0) {
    ++all.users;
    return all.process.load();
  }
  std::unique_ptr<Process> made(new Process);
  made->settings_ = read_settings();
  made->fabric_.reset(Fabric::open(made->settings_.fabric));
  if (!made->fabric_) return nullptr;
  made->slot_ = made->fabric_->join();
  if (made->slot_ == no_slot) {
    errno = ENOSPC;
    return nullptr;
  }
  all.users = 1;
  made->start();
  all.process.store(made.release());
  return all.process.load();
}

void Process::leave() {
  Once& all = *once();
  const std::lock_guard guard(all.lock);
  if (--all.users > 0) return;
  const std::unique_ptr<Process> last(all.process.exchange(nullptr));
  last->stop();
  last->fabric_->leave(last->slot_);
}

void Process::start() {
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // others write into this one's memory
  for (const int device : settings_.ports_down)
    if (device >= 0 && device < 32) shared().ports_down.fetch_or(1u << device);
  thread_ = std::thread([this] { run(); });
}

void Process::stop() {
  stopping_.store(true);
  ring(shared());
  thread_.join();
}

void Process::run() {
  constexpr std::int64_t scrambled_ns = 50'000, patient_ns = 500'000;
  const timespec soon{0, settings_.seed != 0 ? scrambled_ns : patient_ns};
  for (;;) {
    const std::uint32_t seen = shared().doorbell.load();  // before the look at what the bell was rung for
    if (stopping_.load()) return;
    progress();
    wait_for_bell(shared(), seen, watched_count_.load() != 0 ? &soon : nullptr);
  }
}

void Process::advance() {
  const std::unique_lock guard(lists_, std::try_to_lock);
  if (!guard.owns_lock()) return;
  if (shared().attention.exchange(0) != 0) attend();
  std::erase_if(watched_, [](QueuePair* pair) {
    const std::unique_lock one(pair->lock, std::try_to_lock);
    if (!one.owns_lock() || fake_verbs::advance(*pair)) return false;
    pair->watched.store(false);
    return true;
  });
  watched_count_.store(watched_.size());
}

/// Of the owner's duties these are what others cannot do: flush its send queues and raise its events.
void Process::attend() {
  for (QueuePair* const pair : pairs_) {
    SharedQp& shared_pair = pair->shared();
    if (const int event = shared_pair.event.exchange(0); event != 0)
      pair->open().raise({.qp = pair, .type = static_cast<verbs::EventType>(event - 1)});
    for (CompletionQueue* const queue : {&pair->sends(), &pair->receives()}) {
      if (!queue->shared().broken.load()) continue;
      if (!queue->told) queue->open().raise({.cq = queue, .type = verbs::EventType::cq_error});
      queue->told = true;
      const std::lock_guard one(shared_pair.lock);
      fake_verbs::stop(*this, shared_pair, -1);
    }
    if (shared_pair.state.load() != verbs::QpState::error) continue;
    const std::lock_guard one(pair->lock);
    flush_sends(*pair);
  }
}

void Process::add(OpenContext* context) {
  const std::lock_guard guard(lists_);
  contexts_.push_back(context);
}

void Process::remove(OpenContext* context) {
  const std::lock_guard guard(lists_);
  std::erase(contexts_, context);
}

void Process::add(QueuePair* pair) {
  const std::lock_guard guard(lists_);
  pairs_.push_back(pair);
}

void Process::remove(QueuePair* pair) {
  const std::lock_guard guard(lists_);
  std::erase(pairs_, pair);
  std::erase(watched_, pair);
  watched_count_.store(watched_.size());
}

void Process::watch(QueuePair* pair) {
  {
    const std::lock_guard guard(lists_);
    if (pair->watched.exchange(true)) return;
    watched_.push_back(pair);
    watched_count_.store(watched_.size());
  }
  ring(shared());
}

void Process::wait_for_users(std::uint32_t pd) {
  const std::lock_guard guard(lists_);
  for (QueuePair* const pair : pairs_) {
    if (pair->pd->handle != pd) continue;
    { const std::lock_guard reads(pair->lock); }
    { const std::lock_guard written(pair->shared().lock); }
  }
}

void Process::set_port(int device, bool up) {
  const std::uint32_t bit = 1u << device;
  const std::uint32_t before = up ? shared().ports_down.fetch_and(~bit) : shared().ports_down.fetch_or(bit);
  if (((before & bit) == 0) == up) return;  // as it was
  const std::lock_guard guard(lists_);
  for (OpenContext* const context : contexts_)
    if (context->own_device.number == device)
      context->raise({.port_num = 1, .type = up ? verbs::EventType::port_active : verbs::EventType::port_error});
}

bool Process::alive(std::uint32_t process) {
  if (is_own(process)) return true;
  const SharedProcess& other = fabric_->process(process);
  return peers_.alive(other.serial.load(), other.pid.load());
}

std::uint32_t Process::pid_of(std::uint32_t process) const {
  return is_own(process) ? 0 : fabric_->process(process).pid.load();
}

void Process::wake_channel(const SharedCq& cq) {
  if (is_own(cq.process)) return wake(cq.wake);
  const SharedProcess& other = fabric_->process(cq.process);
  peers_.wake(other.serial.load(), other.pid.load(), cq.wake, cq.wake_id);
}

void Process::call_attention(std::uint32_t process) {
  fabric_->process(process).attention.store(1);
  ring(fabric_->process(process));
}

}  // namespace tutti::testing::fake_verbs
