// A host stream: an ordered queue of submissions, run by its own thread.
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

/// Operations submitted together, and functions to call once all of them are done.
struct Submission {
  std::vector<std::unique_ptr<Operation>> operations;
  std::vector<std::function<void()>> finishers;  ///< called by the driving thread if nothing failed

  /// A submission of one operation, which takes its place in its communicator's order now.
  static Submission of(std::unique_ptr<Operation> operation);
};

/// Drives a submission in the calling thread until it has ended.
Result<void> run_now(Process& process, Submission& submission);

class Stream {
 public:
  explicit Stream(Process& process) : process_(process) {}
  /// Waits for all queued submissions.
  ~Stream();

  /// Starts the thread, near the calling thread; `device`: the CPUs near its GPU. Errors: system (no thread).
  Result<void> start(Places::Kind kind = Places::Kind::stream, const CpuSet& device = {});
  void push(Submission submission);

  /// Waits until nothing is queued or running. Returns the first error since the last call of synchronize or
  /// take_error.
  Result<void> synchronize();
  bool idle();
  /// As synchronize, without waiting.
  Result<void> take_error();

 private:
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
