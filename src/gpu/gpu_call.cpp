#include "gpu/gpu_call.h"

#include <fmt/format.h>

#include "call/mismatch.h"
#include "comm/peer_failure.h"
#include "gpu/gpu_plan.h"

namespace tutti {

GpuCall::~GpuCall() {
  if (arrived_) team().withdraw(communicator_.rank());
}

Result<Progress> GpuCall::advance() {
  const Rank rank = communicator_.rank();
  if (!arrived_) {
    arrived_ = true;
    since_ns_ = communicator_.process().system.now_ns();
    plan_ = plan_on_gpu(communicator_, request_, /*meeting=*/true);
    if (team().arrive(rank, {.request = &request_, .plan = plan_.get()})) communicator_.ring_all();
  }
  if (!team().finished(rank)) return Progress::blocked;
  if (auto launched = team().outcome(); !launched) return launched.error();
  return Progress::done;
}

Result<void> GpuCall::poll_peers() {
  if (!arrived_ || team().finished(communicator_.rank())) return {};  // the next advance says how it ended
  if (auto failure = failure_of_any(communicator_)) return *std::move(failure);
  const Rank missing = team().missing(communicator_.rank());
  if (missing < 0) return {};
  const auto& header = communicator_.members().peers[static_cast<std::size_t>(missing)].area.header();
  if (header.state.load(std::memory_order_acquire) == RankState::closed)
    return Error{.code = Code::remote,
                 .what = fmt::format("{} left the communicator before {}", communicator_.describe(missing), where()),
                 .peer = missing};
  const std::int64_t limit_ns = communicator_.process().gpus.meeting_ns;
  const std::int64_t waited_ns = communicator_.process().system.now_ns() - since_ns_;
  if (limit_ns == 0 || waited_ns < limit_ns || !team().waits_for_itself(communicator_.rank())) return {};
  return Error{
      .code = Code::timeout,
      .what = fmt::format("rank {} waited {:.1f} s for rank {}, which this thread drives too: ranks that share "
                          "a GPU make a call together, so wrap the calls of one thread in tuttiGroupStart and "
                          "tuttiGroupEnd",
                          communicator_.rank(), static_cast<double>(waited_ns) * 1e-9, missing),
      .peer = missing};
}

std::string GpuCall::where() const {
  std::string text =
      fmt::format("{} on GPU {}", call_text(request_.signature()), gpu_context(communicator_)->gpu->ordinal());
  if (!arrived_) return text;
  if (const Rank missing = team().missing(communicator_.rank()); missing >= 0)
    text += fmt::format(", waiting for the call of rank {}", missing);
  return text;
}

}  // namespace tutti
