// A host stream: an ordered queue of submissions with a thread of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "call/operation.h"
#include "process/process.h"

namespace tutti {

/// Operations submitted together, and what to do once all of them are done.
struct Submission {
  std::vector<std::unique_ptr<Operation>> operations;
  std::vector<std::function<void()>> finishers;  ///< run by whoever drove it, when nothing failed

  /// One operation, which takes its place in its communicator's order now.
  static Submission of(std::unique_ptr<Operation> operation);
};

/// Drives a submission in the calling thread until it has ended.
Result<void> run_now(Process& process, Submission& submission);

class Stream {
 public:
  explicit Stream(Process& process) : process_(process) {}
  /// Waits for what is queued.
  ~Stream();

  /// Errors: system (no thread).
  /// `roams`: its thread may run on all cores where the calling one is bound to one.
  Result<void> start(bool roams = false);
  void push(Submission submission);

  /// Waits until nothing is queued or running. The first error since the last time it was asked for.
  Result<void> synchronize();
  bool idle();
  /// As synchronize, without waiting.
  Result<void> take_error();

 private:
  static void roam();
  void loop();

  Process& process_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable drained_;
  std::deque<Submission> queue_;
  bool busy_ = false;
  bool ending_ = false;
  std::optional<Error> first_;
  std::thread thread_;
};

}  // namespace tutti
