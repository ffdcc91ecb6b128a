// A host stream: an ordered queue of submissions, run by its own thread.
#pragma once

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

/// Drives a submission in the calling thread, which is one of the program, until it has ended.
Result<void> run_now(Process& process, Submission& submission);

class Stream {
 public:
  explicit Stream(Process& process) : process_(process) {}
  /// Waits for all queued submissions.
  ~Stream();

  /// Starts the thread, near the calling thread; `device`: the CPUs near its GPU. Errors: system (no thread).
  Result<void> start(Places::Kind kind = Places::Kind::stream, const CpuSet& device = {});
  void push(Submission submission);
  /// Calls `then` in the stream's thread once everything queued before it has ended; `first`: the first error since the
  /// last call of synchronize or take_error, or null.
  void push(std::function<void(const Error* first)> then);

  /// Waits until nothing is queued or running. Returns the first error since the last call of synchronize or
  /// take_error.
  Result<void> synchronize();
  bool idle();
  /// As synchronize, without waiting.
  Result<void> take_error();

 private:
  struct Entry {
    Submission submission;
    std::function<void(const Error* first)> then;  ///< null: a submission
  };
  void loop();
  std::optional<Error> run(Submission& submission);

  Process& process_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable drained_;
  std::deque<Entry> queue_;
  bool busy_ = false;
  bool ending_ = false;
  std::optional<Error> first_;
  std::thread thread_;
};

}  // namespace tutti
