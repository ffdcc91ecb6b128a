#include "comm/gpu_call.h"

#include <fmt/format.h>

#include "comm/mismatch.h"
#include "comm/peer_failure.h"
#include "plan/fuse.h"
#include "plan/lower.h"

namespace tutti {

GpuCall::~GpuCall() {
  if (arrived_) team().withdraw(communicator_.rank());
}

/// Nothing is raced, as nobody sees when a call ends.
GpuPlan& GpuCall::plan() const {
  const Shape shape{.collective = request_.collective, .ranks = communicator_.ranks(), .root = request_.root};
  GpuSeat& seat = *communicator_.gpu();
  GpuChoice& chosen = seat.choice(shape.collective, request_.group_bytes());
  if (chosen.algorithm == nullptr)
    chosen = choose_on_gpu(shape, request_.group_bytes(), communicator_.wish(shape.collective, Reach::window),
                           communicator_.process().gpus.specialised);
  communicator_.used = {.algorithm = chosen.algorithm->name.c_str(), .transport = "gpu"};
  auto& plans = seat.plans;
  const GpuSeat::Key key{
      .algorithm = chosen.algorithm, .reach = chosen.reach, .collective = shape.collective, .root = shape.root};
  if (GpuPlan* const known = plans.find(key)) return *known;
  const Schedule schedule = chosen.algorithm->build(communicator_.with_levels(shape));
  constexpr int slots = 2;  // windows have none
  return plans.insert(key, {.plan = fuse(lower(schedule, communicator_.rank(), chosen.reach), slots)});
}

Result<Progress> GpuCall::advance() {
  const Rank rank = communicator_.rank();
  if (!arrived_) {
    arrived_ = true;
    since_ns_ = communicator_.process().system.now_ns();
    if (team().arrive(rank, {.request = &request_, .plan = &plan()})) communicator_.ring_all();
  }
  if (!team().finished(rank)) return Progress::blocked;
  if (auto launched = team().outcome(); !launched) return launched.error();
  return Progress::done;
}

Result<void> GpuCall::look_around() {
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
  std::string text = fmt::format("{} on GPU {}", call_text(request_.signature()), communicator_.gpu()->gpu->ordinal());
  if (!arrived_) return text;
  if (const Rank missing = team().missing(communicator_.rank()); missing >= 0)
    text += fmt::format(", waiting for the call of rank {}", missing);
  return text;
}

}  // namespace tutti
