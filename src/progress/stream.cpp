#include "progress/stream.h"

#include <pthread.h>

#include <new>
#include <system_error>

#include "base/blocked_signal.h"
#include "progress/drive.h"

namespace tutti {

Submission Submission::of(std::unique_ptr<Operation> operation) {
  operation->enqueue();
  Submission submission;
  submission.operations.push_back(std::move(operation));
  return submission;
}

namespace {

Result<void> run(Process& process, Submission& submission, Thread thread) {
  std::vector<Operation*> operations;
  operations.reserve(submission.operations.size());
  for (auto& operation : submission.operations) operations.push_back(operation.get());
  auto driven = drive(process, operations, thread);
  if (driven)
    for (auto& finish : submission.finishers) finish();
  return driven;
}

}  // namespace

Result<void> run_now(Process& process, Submission& submission) {
  return run(process, submission, Thread::program);
}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    work_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

Result<void> Stream::start(Places::Kind kind, const CpuSet& device) {
  try {
    const AllSignalsBlocked for_the_thread;
    thread_ = std::thread([this, kind, device] {
      const Places::Thread placed(process_.machine.places, kind, device);
      loop();
    });
  } catch (const std::system_error& error) {
    return Error{.code = Code::system, .what = "start a stream's thread", .sys_errno = error.code().value()};
  }
  return {};
}

void Stream::push(Submission submission) {
  const std::lock_guard lock(mutex_);
  queue_.push_back({.submission = std::move(submission), .then = {}});
  work_.notify_one();
}

void Stream::push(std::function<void(const Error*)> then) {
  const std::lock_guard lock(mutex_);
  queue_.push_back({.submission = {}, .then = std::move(then)});
  work_.notify_one();
}

Result<void> Stream::synchronize() {
  std::unique_lock lock(mutex_);
  drained_.wait(lock, [this] { return queue_.empty() && !busy_; });
  if (!first_) return {};
  return *std::exchange(first_, std::nullopt);
}

bool Stream::idle() {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && !busy_;
}

Result<void> Stream::take_error() {
  const std::lock_guard lock(mutex_);
  if (!first_) return {};
  return *std::exchange(first_, std::nullopt);
}

std::optional<Error> Stream::run(Submission& submission) {
  try {
    TUTTI_TRY(tutti::run(process_, submission, Thread::library));
    submission = {};
  } catch (const std::bad_alloc&) {
    return Error{.code = Code::system, .what = "out of memory"};
  }
  return std::nullopt;
}

void Stream::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return !queue_.empty() || ending_; });
    if (queue_.empty()) return;
    busy_ = true;
    Entry entry = std::move(queue_.front());
    queue_.pop_front();
    const std::optional<Error> first = entry.then ? first_ : std::nullopt;
    lock.unlock();
    std::optional<Error> failed;
    if (entry.then) {
      entry.then(first ? &*first : nullptr);
    } else {
      failed = run(entry.submission);
    }
    entry = {};
    lock.lock();
    if (failed && !first_) first_ = std::move(failed);
    busy_ = false;
    if (queue_.empty()) drained_.notify_all();
  }
}

}  // namespace tutti
