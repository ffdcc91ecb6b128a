#include "process/service.h"

#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <span>

#include "base/blocked_signal.h"
#include "base/descriptors.h"

namespace tutti {
namespace {

constexpr std::int64_t poll_timeout_max_ns = 1'000'000'000;

}  // namespace

// The thread lives as long as the process: in Mode::threaded, Process is never destroyed.
Service::~Service() = default;

Result<void> Service::add(std::shared_ptr<Task> task) {
  const std::lock_guard lock(mutex_);
  if (mode_ == Mode::threaded && !started_ && !halted_) TUTTI_TRY(start());
  const Task* const key = task.get();
  tasks_[key] = {.task = std::move(task)};
  poke();
  return {};
}

void Service::remove(const Task* task) {
  std::unique_lock lock(mutex_);
  tasks_.erase(task);
  idle_.wait(lock, [this, task] { return running_ != task; });
}

void Service::halt() {
  std::unique_lock lock(mutex_);
  if (!started_) return;
  halted_ = true;
  poke();
  idle_.wait_for(lock, std::chrono::seconds(2), [this] { return parked_; });
}

bool Service::turn() {
  all_ = true;
  advance(take_due({}));
  const std::lock_guard lock(mutex_);
  return !tasks_.empty();
}

Result<void> Service::start() {
  wake_ = UniqueFd(above_stdio([&] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }));
  if (!wake_) return Error{.code = Code::system, .what = "make an eventfd for the service thread", .sys_errno = errno};

  const AllSignalsBlocked for_the_thread;
  pthread_t thread;
  const int failed = ::pthread_create(
      &thread, nullptr,
      [](void* self) -> void* {
        static_cast<Service*>(self)->loop();
        return nullptr;
      },
      this);
  if (failed != 0) return Error{.code = Code::system, .what = "start the service thread", .sys_errno = failed};
  ::pthread_setname_np(thread, name_);
  ::pthread_detach(thread);
  started_ = true;
  return {};
}

void Service::wake() {
  all_ = true;
  poke();
}

void Service::poke() {
  if (!wake_) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

std::vector<const Task*> Service::take_due(const std::vector<PollItem>& items) {
  const std::int64_t now = system_.now_ns();
  const bool all = all_.exchange(false);
  const auto is_ready = [](const PollItem& item) { return item.ready; };
  std::vector<const Task*> due;
  const std::lock_guard lock(mutex_);
  for (auto& [key, entry] : tasks_) {
    const std::span handles = std::span(items).subspan(entry.first, entry.end - entry.first);
    if (!all && now < entry.due_ns && std::ranges::none_of(handles, is_ready)) continue;
    entry.due_ns = std::numeric_limits<std::int64_t>::max();
    due.push_back(key);
  }
  return due;
}

void Service::advance(const std::vector<const Task*>& tasks) {
  for (const Task* const key : tasks) {
    std::shared_ptr<Task> task;
    {
      const std::lock_guard lock(mutex_);
      const auto found = tasks_.find(key);
      if (found == tasks_.end()) continue;
      task = found->second.task;
      running_ = key;
    }
    bool more = false;
    try {
      more = task->advance();
    } catch (const std::bad_alloc&) {  // the task is dropped; a caller that waits for it reaches its own limit
    }
    if (!more) {
      const std::lock_guard lock(mutex_);
      tasks_.erase(key);
    }
    task.reset();  // which may destroy it, and so not under the lock
    const std::lock_guard lock(mutex_);
    running_ = nullptr;
    idle_.notify_all();
  }
}

/// Empties the one that wakes this thread. Where it is gone, so that each poll returns at once, the thread looks around
/// a few times a second.
void Service::check_own_descriptors() {
  constexpr std::int64_t poll_timeout_ns = 50'000'000;
  std::uint64_t drained;
  ssize_t got = 0;
  while ((got = ::read(wake_.get(), &drained, sizeof drained)) > 0) {
  }
  if (got < 0 && errno == EBADF) lost_descriptors_ = true;
  if (lost_descriptors_) system_.poll({}, poll_timeout_ns);
}

void Service::loop() {
  const Places::Thread placed(places_, Places::Kind::service);
  std::vector<PollItem> items;
  for (;;) {
    items.assign(1, PollItem{.handle = wake_.get(), .want_read = true});
    std::int64_t next = system_.now_ns() + poll_timeout_max_ns;
    {
      const std::lock_guard lock(mutex_);
      for (auto& [key, entry] : tasks_) {
        entry.first = items.size();
        // The earliest time applies: a task that asks for "in a while" asks again each time another task is ready.
        entry.due_ns = std::min(entry.due_ns, entry.task->poll_set(items));
        entry.end = items.size();
        next = std::min(next, entry.due_ns);
      }
    }
    system_.poll(items, std::max<std::int64_t>(0, next - system_.now_ns()));
    check_own_descriptors();
    {
      std::unique_lock lock(mutex_);
      if (halted_) {
        parked_ = true;
        idle_.notify_all();
        // The thread does not end: ending it would destroy libraries' thread-local data while the process is being
        // taken down.
        idle_.wait(lock, [] { return false; });
      }
    }
    advance(take_due(items));
  }
}

}  // namespace tutti
