// The loop that advances operations until they are done: spins, yields, at last sleeps; never without a limit.
#pragma once

#include <span>

#include "call/operation.h"
#include "process/process.h"

namespace tutti {

/// Advances all operations in turn until each is done or has failed. Returns the first error, after the others have
/// ended. Reports a stall after TUTTI_STALL_REPORT_MS; gives up after TUTTI_TIMEOUT_MS where that is set.
Result<void> drive(Process& process, std::span<Operation* const> operations);

/// How a blocked thread passes the time.
class Waiter {
 public:
  /// `operations`: those under way; ended ones are set to nullptr meanwhile.
  Waiter(Process& process, std::span<Operation* const> operations);
  ~Waiter() { reset(); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  /// Something moved: start over.
  void reset() {
    rounds_ = 0;
    if (armed_ != nullptr) disarm();
  }
  /// Nothing moved: waits a little, longer each time. To be called after each round of advances that moved nothing.
  /// Errors: what looking around finds; timeout. They have become the failure of the communicator they are about.
  Result<void> pause();

 private:
  Result<void> poll_peers();
  Result<void> check_limit(std::int64_t now);
  void sleep();
  void disarm();
  void report_stall(std::int64_t waited_ns);

  Process& process_;
  std::span<Operation* const> operations_;
  bool crowded_ = false;  // more ranks than cores: yield at once
  unsigned rounds_ = 0;
  unsigned spin_rounds_ = 0;   // TUTTI_SPIN_US, once it matters
  Doorbell* armed_ = nullptr;  // said to be asleep; one more round of advances, then we are
  std::int64_t since_ns_ = 0;  // blocked since
  std::int64_t looked_ns_ = 0;
  std::int64_t next_report_ns_ = 0;
};

}  // namespace tutti
