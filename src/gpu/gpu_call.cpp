#include "gpu/gpu_call.h"

#include <fmt/format.h>

#include "call/mismatch.h"
#include "comm/peer_failure.h"
#include "gpu/gpu_plan.h"
#include "gpu/one_thread.h"

namespace tutti {

GpuCall::~GpuCall() {
  if (arrived_) launch_group().withdraw(communicator_.rank());
}

Result<Progress> GpuCall::advance() {
  const Rank rank = communicator_.rank();
  if (!arrived_) {
    arrived_ = true;
    since_ns_ = communicator_.process().system.now_ns();
    plan_ = plan_on_gpu(communicator_, request_, launch_group().is_whole() ? Waiting::in_launch : Waiting::by_flags);
    if (launch_group().arrive(rank, {.request = &request_, .stream = stream_, .plan = plan_.get()}))
      communicator_.ring_all();
  }
  if (!launch_group().finished(rank)) return Progress::blocked;
  if (auto launched = launch_group().outcome(); !launched) return launched.error();
  gpu_context(communicator_)->note_kernel();
  return Progress::done;
}

Result<void> GpuCall::poll_peers() {
  if (!arrived_ || launch_group().finished(communicator_.rank())) return {};  // the next advance says how it ended
  if (auto failure = failure_of_any(communicator_)) return *std::move(failure);
  const Rank missing = launch_group().missing(communicator_.rank());
  if (missing < 0) return {};
  if (has_left(communicator_, missing)) return left_before(communicator_, missing, where());
  const std::int64_t limit_ns = communicator_.process().gpus.meeting_ns;
  const std::int64_t waited_ns = communicator_.process().system.now_ns() - since_ns_;
  if (limit_ns == 0 || waited_ns < limit_ns || !launch_group().waits_for_itself(communicator_.rank())) return {};
  return waits_for_own_thread(communicator_.rank(), missing, waited_ns);
}

std::string GpuCall::where() const {
  std::string text =
      fmt::format("{} on GPU {}", call_text(request_.signature()), gpu_context(communicator_)->gpu->ordinal());
  if (!arrived_) return text;
  if (const Rank missing = launch_group().missing(communicator_.rank()); missing >= 0)
    text += fmt::format(", waiting for the call of rank {}", missing);
  return text;
}

}  // namespace tutti
