#include "gpu/gpu_peer_call.h"

#include <cstring>

#include <fmt/format.h>

#include "call/mismatch.h"
#include "comm/descriptor_watch.h"
#include "plan/schedule.h"

namespace tutti {
Result<Progress> GpuPeerCall::advance() {
  Progress progress = Progress::blocked;
  while (state_ != State::done) {
    auto went = step();
    if (!went) {
      communicator_.fail(
          with_calls(communicator_.links().descriptors(), {communicator_.rank(), sequence_}, std::move(went).error()));
      return communicator_.failure().error();
    }
    if (!*went) return progress;
    progress = Progress::moved;
  }
  return Progress::done;
}

/// False: nothing can be done now; try again later.
Result<bool> GpuPeerCall::step() {
  if (busy_ && !call_.landed(kernel_)) return false;
  busy_ = false;
  switch (state_) {
    case State::begin:
      sequence_ = communicator_.order().next_sequence();
      state_ = State::publish;
      return true;
    case State::publish: return publish();
    case State::gather: return gather();
    case State::run: return run();
    case State::done: break;
  }
  return true;
}

std::size_t GpuPeerCall::bytes_of(Rank rank, bool input) const {
  const int ranks = communicator_.ranks();
  const int groups = input ? input_groups(request_.collective, ranks, rank, request_.root)
                           : output_groups(request_.collective, ranks, rank, request_.root);
  return static_cast<std::size_t>(groups) * request_.group_bytes();
}

Result<bool> GpuPeerCall::publish() {
  auto& descriptors = communicator_.links().descriptors();
  auto may = descriptors.may_enter(sequence_, /*compact=*/false);
  if (!may || !*may) return may;
  CallDescriptor& descriptor = descriptors.begin(sequence_);
  descriptor.signature = request_.signature();
  descriptor.scalar = request_.scalar;
  descriptor.input = descriptor.output = {};
  descriptor.retired = communicator_.process().memory.segments.retired();
  descriptor.carries = 1;
  const PeerCallSetup::Buffers own{.input = setup_.input.location, .output = setup_.output.location};
  std::memcpy(descriptors.payload(sequence_, sizeof own), &own, sizeof own);
  descriptors.publish(descriptor, sequence_);
  communicator_.links().ring_all();
  state_ = State::gather;
  return true;
}

/// Once all call descriptors are here, all inputs are ready and all outputs may be written.
Result<bool> GpuPeerCall::gather() {
  for (; gathered_ < communicator_.ranks(); ++gathered_) {
    const auto at = static_cast<std::size_t>(gathered_);
    auto descriptor = TUTTI_TRY(communicator_.links().descriptors().open(gathered_, sequence_));
    if (descriptor == nullptr) return false;
    communicator_.links().windows().begin_collective(gathered_, descriptor->retired);
    communicator_.memory().notes().descriptors[at] = descriptor;
    call_.table()[at] = {.scalar = descriptor->scalar};
  }
  TUTTI_TRY(find_buffers());
  state_ = State::run;
  return true;
}

/// Those that the plan uses. All are mapped: their ranks wait for that before they name them.
Result<void> GpuPeerCall::find_buffers() {
  auto& own = call_.table()[communicator_.rank()];
  own.input = setup_.input.used;
  own.output = setup_.output.used;
  return for_each_peer_place(setup_.plan->plan, [this](const Place& place) { return find_buffer(place); });
}

Result<void> GpuPeerCall::find_buffer(const Place& place) {
  const bool input = place.where == Where::peer_input;
  const Rank rank = place.peer;
  auto& buffers = call_.table()[place.peer];
  if ((input ? buffers.input : buffers.output) != nullptr) return {};
  PeerCallSetup::Buffers theirs;
  std::memcpy(&theirs, communicator_.links().descriptors().payload(place.peer, sequence_, sizeof theirs),
              sizeof theirs);
  const cuda::SharedLocation& location = input ? theirs.input : theirs.output;
  std::byte* at = reinterpret_cast<std::byte*>(location.address);  // NOLINT: an address of the GPU's
  if (!communicator_.members().peers[place.peer].same_process)
    at = TUTTI_TRY(gpu_context(communicator_)->sharing->find(rank, location, bytes_of(rank, input)));
  if (input)
    buffers.input = at;
  else
    buffers.output = at;
  return {};
}

/// Carries out the plan's actions. A flag is raised only when the kernel before it has ended.
bool GpuPeerCall::run() {
  const auto& actions = setup_.plan->plan.actions;
  const RunContext links = communicator_.links().context();
  auto& signals = links.channels.front().signals;
  while (next_ < actions.size()) {
    const Action& action = actions[next_];
    if (is_pass(action)) {
      call_.let_go(++kernel_);
      next_ += setup_.kernels[kernel_ - 1].count;
      busy_ = true;
      return true;
    }
    if (action.verb == Verb::wait) {
      if (!signals[action.peer].take()) return false;
    } else {
      signals[action.peer].raise();
      links.doorbells[action.peer]->ring(*links.system, links.oversubscribed);
    }
    ++next_;
  }
  communicator_.order().note_completed(sequence_);
  state_ = State::done;
  return true;
}

/// While a kernel runs, the host polls its word: no doorbell rings when it ends.
std::int64_t GpuPeerCall::poll_set(std::vector<PollItem>&) const {
  return busy_ ? next_gpu_poll_ns(communicator_) : 0;
}

Result<void> GpuPeerCall::poll_peers() {
  if (auto met = gpu_context(communicator_)->sharing->trouble()) return *std::move(met);
  if (state_ == State::begin || state_ == State::publish) return {};
  return check_descriptors(communicator_, sequence_, state_ == State::done);
}

Rank GpuPeerCall::waits_for() const {
  if (busy_) return -1;
  if (state_ == State::publish) return communicator_.links().descriptors().last_to_arrive();
  if (state_ == State::gather) return gathered_;
  if (state_ != State::run || next_ >= setup_.plan->plan.actions.size()) return -1;
  return setup_.plan->plan.actions[next_].peer;
}

std::string GpuPeerCall::where() const {
  std::string text = fmt::format("{} #{} on GPU {}", call_text(request_.signature()), sequence_,
                                 gpu_context(communicator_)->gpu->ordinal());
  if (busy_) return text + ", waiting for the GPU";
  if (state_ == State::publish) return text + fmt::format(", waiting for rank {}", waits_for());
  if (state_ == State::gather) return text + fmt::format(", waiting for the call of rank {}", gathered_);
  if (state_ != State::run || next_ >= setup_.plan->plan.actions.size()) return text;
  const Action& action = setup_.plan->plan.actions[next_];
  return text + fmt::format(", step {}, waiting for rank {}", action.step, action.peer);
}

}  // namespace tutti
