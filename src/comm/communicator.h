// A communicator, from the view of one rank.
#pragma once

#include <memory>

#include "call/background.h"
#include "call/past_calls.h"
#include "comm/call_marks.h"
#include "comm/call_memory.h"
#include "comm/call_order.h"
#include "comm/comm_failure.h"
#include "comm/device_side.h"
#include "comm/membership.h"
#include "comm/peer_links.h"
#include "comm/plans.h"
#include "comm/waits.h"

namespace tutti {

/// Made of parts, of which callers ask the one that knows. What needs several of them is here.
class Communicator {
 public:
  Communicator(Process& process, Membership members);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Process& process() const { return process_; }
  Rank rank() const { return members_.rank; }
  int ranks() const { return members_.ranks; }
  const Membership& members() const { return members_; }

  // ---- Errors: any thread ----

  /// Sets the failure, if there is none yet. Wakes threads that wait in this communicator, and tells peers through the
  /// area's state. On return failed() holds, and kernels have been told to give up.
  void fail(Error error);
  /// As fail, but tells peers that this rank aborted.
  void abort();
  bool failed() const { return failure_.happened().load(std::memory_order_acquire); }
  CommFailure& failure() { return failure_; }
  const CommFailure& failure() const { return failure_; }
  /// Notes that the user gets the failure, and returns it with what kernels that were under way waited for. Not for
  /// threads that anybody waits for. Requires failed().
  Error report_failure();

  // ---- Calls ----

  CallOrder& order() { return order_; }
  const CallOrder& order() const { return order_; }
  OwnWaits& waits() { return waits_; }
  PastCalls& past_calls() { return past_calls_; }
  BesideCalls& beside_calls() { return beside_calls_; }

  // ---- For the call whose turn it is ----

  CallMarks& marks() { return marks_; }
  PeerLinks& links() { return links_; }
  const PeerLinks& links() const { return links_; }
  Plans& plans() { return plans_; }
  CallMemory& memory() { return memory_; }

  /// Null if this rank has no GPU.
  DeviceSide* device() const { return device_.get(); }
  /// To be called once, before other threads know this communicator.
  void attach(std::unique_ptr<DeviceSide> device) { device_ = std::move(device); }
  /// Fails the communicator if a kernel gave up. Any thread.
  void check_device();

 private:
  Process& process_;
  Membership members_;
  CommFailure failure_;
  CallMarks marks_;
  PeerLinks links_;
  Plans plans_;
  OwnWaits waits_;
  alignas(64) CallOrder order_;  // all that a small call reads here, with the next one
  PastCalls past_calls_;
  CallMemory memory_;
  std::unique_ptr<DeviceSide> device_;
  BesideCalls beside_calls_;
};

}  // namespace tutti
