#include "gpu/gpu_peer_call.h"

#include <cstring>

#include <fmt/format.h>

#include "call/mismatch.h"
#include "comm/descriptor_watch.h"
#include "gpu/gpu_look.h"
#include "plan/schedule.h"

namespace tutti {
Result<Progress> GpuPeerCall::advance() {
  Progress progress = Progress::blocked;
  while (state_ != State::done) {
    auto went = step();
    if (!went) {
      communicator_.fail(with_calls(communicator_.lines(), {communicator_.rank(), sequence_}, std::move(went).error()));
      return communicator_.failure();
    }
    if (!*went) return progress;
    progress = Progress::moved;
  }
  return Progress::done;
}

/// False: nothing can be done now.
Result<bool> GpuPeerCall::step() {
  if (busy_ && !call_.landed(kernel_)) return false;
  busy_ = false;
  switch (state_) {
    case State::begin:
      sequence_ = communicator_.next_sequence();
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
  auto& lines = communicator_.lines();
  auto may = lines.may_enter(sequence_);
  if (!may || !*may) return may;
  CallDescriptor& line = lines.begin(sequence_);
  line.signature = request_.signature();
  line.scalar = request_.scalar;
  line.input = line.output = {};
  line.retired = communicator_.process().segments.retired();
  line.carries = 1;
  std::memcpy(lines.payload(line, sizeof setup_.own), &setup_.own, sizeof setup_.own);
  lines.publish(line, sequence_);
  communicator_.ring_all();
  state_ = State::gather;
  return true;
}

/// When all lines are here, all inputs are, and all outputs may be written.
Result<bool> GpuPeerCall::gather() {
  for (; gathered_ < communicator_.ranks(); ++gathered_) {
    const auto at = static_cast<std::size_t>(gathered_);
    auto line = communicator_.lines().open(gathered_, sequence_);
    if (!line) return std::move(line).error();
    if (*line == nullptr) return false;
    communicator_.windows().drop_if_retired(gathered_, (*line)->retired);
    communicator_.notes().lines[at] = *line;
    call_.table()[at] = {.scalar = (*line)->scalar};
  }
  if (auto mapped = map_buffers(); !mapped) return mapped.error();
  state_ = State::run;
  return true;
}

/// Only what the plan touches.
Result<void> GpuPeerCall::map_buffers() {
  auto& own = call_.table()[communicator_.rank()];
  own.input = setup_.input;
  own.output = setup_.output;
  return for_each_peer_place(setup_.plan->plan, [this](const Place& place) { return map_buffer(place); });
}

Result<void> GpuPeerCall::map_buffer(const Place& place) {
  const bool input = place.where == Where::peer_input;
  const Rank rank = place.peer;
  auto& buffers = call_.table()[place.peer];
  if ((input ? buffers.input : buffers.output) != nullptr) return {};
  PeerCallSetup::Buffers theirs;
  std::memcpy(&theirs, communicator_.lines().payload(*communicator_.notes().lines[place.peer], sizeof theirs),
              sizeof theirs);
  const cuda::MemoryLine& line = input ? theirs.input : theirs.output;
  std::byte* at = reinterpret_cast<std::byte*>(line.address);  // NOLINT: an address of the GPU's
  if (!communicator_.members().peers[place.peer].same_process) {
    auto mapped = setup_.of->map(rank, line, bytes_of(rank, input));
    if (!mapped) return std::move(mapped).error();
    at = *mapped;
  }
  if (input)
    buffers.input = at;
  else
    buffers.output = at;
  return {};
}

/// What peers look for is told them when the kernel before it has ended.
bool GpuPeerCall::run() {
  const auto& actions = setup_.plan->plan.actions;
  const Links links = communicator_.links();
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
  state_ = State::done;
  return true;
}

/// A word that never comes because the GPU is lost is no peer's fault.
std::int64_t GpuPeerCall::poll_set(std::vector<PollItem>&) const {
  return busy_ ? next_gpu_look(communicator_) : 0;
}

Result<void> GpuPeerCall::poll_peers() {
  if (busy_)
    if (auto idle = setup_.of->idle(); !idle) return std::move(idle).error();
  if (state_ == State::begin || state_ == State::publish) return {};
  return look_at_descriptors(communicator_, sequence_, state_ == State::done);
}

std::string GpuPeerCall::where() const {
  std::string text = fmt::format("{} #{} on GPU {}", call_text(request_.signature()), sequence_,
                                 gpu_context(communicator_)->gpu->ordinal());
  if (busy_) return text + ", waiting for the GPU";
  if (state_ == State::gather) return text + fmt::format(", waiting for the call of rank {}", gathered_);
  if (state_ != State::run || next_ >= setup_.plan->plan.actions.size()) return text;
  const Action& action = setup_.plan->plan.actions[next_];
  return text + fmt::format(", step {}, waiting for rank {}", action.step, action.peer);
}

}  // namespace tutti
