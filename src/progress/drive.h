// The loop that advances operations until they are done: it spins, then yields, and finally sleeps, always for a
// limited time.
#pragma once

#include <span>
#include <vector>

#include "call/operation.h"
#include "process/process.h"

namespace tutti {

/// Whose thread waits: only one of the program runs what the program wants done meanwhile.
enum class Thread { program, library };

/// Advances all operations in turn until each is done or has failed. Returns the first error, after all operations have
/// ended. Reports a stall after TUTTI_STALL_REPORT_MS; fails after an operation's limit, if it has one.
Result<void> drive(Process& process, std::span<Operation* const> operations, Thread thread);

/// Makes a blocked thread wait.
class Waiter {
 public:
  /// `operations`: the operations under way; the caller sets entries of ended operations to nullptr.
  Waiter(Process& process, std::span<Operation* const> operations, WhileWaiting meanwhile);
  ~Waiter() { reset(); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  /// To be called after progress: starts over.
  void reset() {
    rounds_ = 0;
    yielding_since_ns_ = 0;
    if (!told_.empty()) say_moved();
    if (armed_ != nullptr) disarm();
  }
  /// To be called after each round of advances without progress: waits a little, longer each time. Errors: as
  /// Operation::poll_peers; timeout. The communicator concerned has then failed with the error.
  Result<void> pause();

 private:
  bool yields();
  void run_meanwhile();
  bool run_background();
  std::int64_t passed_ns();
  Result<void> look();
  Result<void> check_limit(std::int64_t now);
  void sleep();
  void disarm();
  void report_stall(std::int64_t waited_ns);
  void say_wait(Communicator& communicator, const Operation& operation, std::int64_t now);
  void say_moved();

  Process& process_;
  std::span<Operation* const> operations_;
  WhileWaiting meanwhile_;
  bool crowded_ = false;   // more ranks than cores: yield at once
  bool starting_ = false;  // an operation has no communicator yet
  unsigned rounds_ = 0;
  unsigned spin_rounds_ = 0;   // from TUTTI_SPIN_US, read after patient_rounds
  Doorbell* armed_ = nullptr;  // marked asleep; the thread sleeps after one more round of advances
  std::int64_t yielding_since_ns_ = 0;
  std::int64_t since_ns_ = 0;  // blocked since
  std::int64_t looked_ns_ = 0;
  std::int64_t next_report_ns_ = 0;
  std::vector<Communicator*> told_;  // whose ranks have been told for whom this one waits
};

}  // namespace tutti
