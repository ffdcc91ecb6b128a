#include "gpu/gpu_call.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/limits.h"
#include "call/layout.h"
#include "call/mismatch.h"
#include "comm/peer_failure.h"
#include "gpu/peer_sharing.h"
#include "plan/schedule.h"

namespace tutti {
namespace {

/// Of passes over a rank's own memory, which a reduction with a count per rank needs besides the exchange of blocks.
Plan empty_plan(int ranks) {
  return {.collective = Collective::reduce_scatter, .access = Access::slots, .ranks = ranks};
}

/// Adds a pass over the places that begin at `first`: some sources and a destination, a sum of so many `inputs`.
void add_pass(Plan& plan, std::size_t first, bool last, int inputs) {
  plan.actions.push_back({.verb = Verb::reduce,
                          .last = static_cast<std::uint8_t>(last ? 1 : 0),
                          .sources = static_cast<std::uint16_t>(plan.places.size() - first - 1),
                          .destinations = 1,
                          .first = static_cast<std::uint32_t>(first),
                          .halvings = static_cast<std::uint32_t>(halvings_of(inputs))});
}

/// Reduces what all ranks have sent, in the order of ranks, into the output. A pass has at most limits::sources_max
/// sources; partial results lie in the scratch memory, which has one group. Sources are the inputs of all ranks
/// (Where::peer_input), wherever they have been brought.
Plan combine_plan(int ranks) {
  Plan plan = empty_plan(ranks);
  plan.scratch_groups = 1;
  for (int next = 0; next < ranks;) {
    const std::size_t first = plan.places.size();
    if (next > 0) {
      plan.places.push_back({.where = Where::scratch});
      plan.places.back().halvings = halvings_of(next);
    }
    for (; next < ranks && plan.places.size() - first < limits::sources_max; ++next)
      plan.places.push_back({.where = Where::peer_input, .peer = static_cast<std::uint16_t>(next)});
    const bool last = next == ranks;
    plan.places.push_back({.where = last ? Where::output : Where::scratch});
    add_pass(plan, first, last, next);
  }
  return plan;
}

/// Multiplies the input by the rank's factor (of a pre-multiplied sum), into the output.
Plan scale_plan(int ranks) {
  Plan plan = empty_plan(ranks);
  plan.places = {{.where = Where::input, .contribution = 1}, {.where = Where::output}};
  add_pass(plan, 0, /*last=*/true, /*inputs=*/1);
  return plan;
}

}  // namespace

GpuCall::~GpuCall() {
  if (arrived_) launch_group().withdraw(communicator_.rank());
}

Result<Progress> GpuCall::advance() {
  if (!arrived_) TUTTI_TRY(arrive());
  if (launch_group().arrivals()->waits(communicator_.rank())) return Progress::blocked;
  TUTTI_TRY(launch_group().outcome());
  GpuContext& context = *gpu_context(communicator_);
  context.paths.note_kernel(launch_group().has_captured());
  if (!offered_.empty()) context.sharing->keep(offered_);
  return Progress::done;
}

Result<void> GpuCall::arrive() {
  since_ns_ = communicator_.process().system.now_ns();
  GpuOffer offer{.request = &request_, .part = {.stream = static_cast<cuda::Stream>(request_.stream)}};
  if (request_.layout) {
    exchange(offer);
  } else {
    plan_ = plan_on_gpu(communicator_, request_,
                        request_.route.path == Path::single_launch ? Waiting::in_launch : Waiting::by_flags);
    if (plan_->plan.access == Access::slots && request_.route.offers_windows) TUTTI_TRY(offer_windows(offer));
    const cuda::WindowOffer& window = offer.part.offer;
    const bool offers = window.input != device::Offer::none && window.output != device::Offer::none;
    communicator_.past_calls().note_used((offers ? windows_ : plan_)->algorithm->name.c_str(), "gpu");
  }
  offer.plan = plan_.get();
  arrived_ = true;
  if (launch_group().arrive(communicator_.rank(), offer)) communicator_.links().ring_all();
  return {};
}

/// A call with a count per rank: what goes to each peer and comes from it, without a plan.
void GpuCall::exchange(GpuOffer& offer) {
  auto& plan = gpu_context(communicator_)->plans.none;
  const Rank rank = communicator_.rank();
  if (plan == nullptr)
    plan = std::make_shared<GpuPlan>(GpuPlan{.plan = {.collective = Collective::all_to_all,
                                                      .access = Access::slots,
                                                      .ranks = communicator_.ranks(),
                                                      .rank = rank}});
  plan_ = plan;
  communicator_.past_calls().note_used("direct", "gpu");
  const std::size_t size = size_of(request_.type);
  for (Rank peer = 0; peer < communicator_.ranks(); ++peer) {
    const Share share = share_with(request_, *request_.layout, peer);
    transfers_.push_back({.from = share.sent.begin * size,
                          .to = share.received.begin * size,
                          .sent = share.sent.count * size,
                          .received = share.received.count * size,
                          .all_sent = share.sent.count * size,
                          .all_received = share.received.count * size});
  }
  offer.part.transfers = transfers_;
  if (reduces(request_.collective)) reduce_locally(offer);
}

/// What is left to do when all ranks' blocks of this rank's result are here.
void GpuCall::reduce_locally(GpuOffer& offer) {
  GpuPlans& plans = gpu_context(communicator_)->plans;
  const auto make = [](std::shared_ptr<GpuPlan>& made, Plan (*plan)(int), int ranks) {
    if (made == nullptr) made = std::make_shared<GpuPlan>(GpuPlan{.plan = plan(ranks)});
    return made.get();
  };
  offer.combine = make(plans.combine, combine_plan, communicator_.ranks());
  if (request_.op == ReduceOp::pre_mul_sum) offer.scale = make(plans.scale, scale_plan, communicator_.ranks());
  const Share own = share_with(request_, *request_.layout, communicator_.rank());
  std::size_t largest = 0;
  for (const Range& block : request_.layout->input) largest = std::max(largest, block.count);
  offer.part.reduction = {.count = own.received.count,
                          .largest = largest,
                          .own_at = own.sent.begin,
                          .input_elements = request_.layout->input_elements,
                          .combine = {.plan = &offer.combine->plan, .uploaded = {}},
                          .scale = {.plan = offer.scale == nullptr ? nullptr : &offer.scale->plan, .uploaded = {}}};
}

/// What other ranks' kernels may access of this rank's buffers, and the plan for that case.
Result<void> GpuCall::offer_windows(GpuOffer& offer) {
  windows_ = plan_on_gpu(communicator_, request_, Waiting::by_host);
  offer.windows = windows_.get();
  GpuContext& context = *gpu_context(communicator_);
  const auto current = TUTTI_TRY(cuda::Current::enter(*context.gpu));
  cuda::WindowOffer& window = offer.part.offer;
  window.mapped = context.sharing->windows();
  const auto add = [&](const std::byte* at, int groups, std::uint64_t& word) -> Result<void> {
    auto offered = TUTTI_TRY(context.sharing->offer(at, static_cast<std::size_t>(groups) * request_.group_bytes()));
    word = offered.word;
    if (offered.buffer) offered_.push_back(std::make_shared<cuda::SharedBuffer>(*std::move(offered.buffer)));
    return {};
  };
  const Rank rank = communicator_.rank();
  const int ranks = communicator_.ranks();
  if (!request_.copies_input())  // otherwise what is read is a copy, which nobody has mapped
    TUTTI_TRY(add(request_.input, input_groups(request_.collective, ranks, rank, request_.root), window.input));
  TUTTI_TRY(add(request_.output, output_groups(request_.collective, ranks, rank, request_.root), window.output));
  window.held = std::make_shared<std::vector<std::shared_ptr<cuda::SharedBuffer>>>(offered_);
  return {};
}

Result<void> GpuCall::poll_peers() {
  const Rank missing = waits_for();
  if (missing < 0) return {};  // the next advance says how it ended
  if (auto gone = obstacle(communicator_, missing, nullptr, [this] { return where(); }))
    return waits_for() == missing ? Result<void>(*std::move(gone)) : Result<void>();
  const std::int64_t limit_ns = communicator_.process().gpus.settings.meeting_ns;
  const std::int64_t waited_ns = communicator_.process().system.now_ns() - since_ns_;
  if (limit_ns == 0 || waited_ns < limit_ns || !launch_group().arrivals()->waits_for_itself(communicator_.rank()))
    return {};
  return waits_for_own_thread(communicator_.rank(), missing, waited_ns);
}

Rank GpuCall::waits_for() const {
  return arrived_ ? launch_group().arrivals()->missing(communicator_.rank()) : -1;
}

std::string GpuCall::where() const {
  std::string text =
      fmt::format("{} on GPU {}", call_text(request_.signature()), gpu_context(communicator_)->gpu->ordinal());
  if (const Rank missing = waits_for(); missing >= 0) text += fmt::format(", waiting for the call of rank {}", missing);
  return text;
}

}  // namespace tutti
