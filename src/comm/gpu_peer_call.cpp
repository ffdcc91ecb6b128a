#include "comm/gpu_peer_call.h"

#include <cstring>

#include <fmt/format.h>

#include "comm/gpu_plan.h"
#include "comm/line_watch.h"
#include "comm/mismatch.h"
#include "plan/schedule.h"

namespace tutti {
namespace {

bool is_pass(const Action& action) {
  return action.verb == Verb::copy || action.verb == Verb::reduce;
}

/// An all-to-all in place reads from a copy, see CollectiveCall::stage_input.
bool reads_from_copy(const Request& request) {
  return request.collective == Collective::all_to_all && request.input == request.output;
}

}  // namespace

Result<Progress> GpuPeerCall::advance() {
  auto current = cuda::Current::enter(*communicator_.gpu()->gpu);
  Result<bool> went = current ? Result<bool>(false) : Result<bool>(std::move(current).error());
  Progress progress = Progress::blocked;
  while (went && stage_ != Stage::done) {
    went = step();
    if (went && !*went) return progress;
    progress = Progress::moved;
  }
  if (went) return Progress::done;
  communicator_.fail(with_calls(communicator_.lines(), std::move(went).error()));
  return communicator_.failure();
}

/// False: nothing can be done now.
Result<bool> GpuPeerCall::step() {
  if (busy_) {
    auto ended = settled();
    if (!ended || !*ended) return ended;
  }
  switch (stage_) {
    case Stage::prepare: return prepare();
    case Stage::publish: return publish();
    case Stage::gather: return gather();
    case Stage::run: return run();
    case Stage::bring_back: return bring_back();
    case Stage::done: break;
  }
  return true;
}

Result<bool> GpuPeerCall::settled() {
  auto ended = peers_.settled();
  if (ended) busy_ = !*ended;
  return ended;
}

std::size_t GpuPeerCall::bytes_of(Rank rank, bool input) const {
  const int ranks = communicator_.ranks();
  const int groups = input ? input_groups(request_.collective, ranks, rank, request_.root)
                           : output_groups(request_.collective, ranks, rank, request_.root);
  return static_cast<std::size_t>(groups) * request_.group_bytes();
}

/// Whether some rank runs in another process.
bool GpuPeerCall::has_strangers() const {
  const auto& peers = communicator_.members().peers;
  return std::ranges::any_of(peers, [](const Peer& peer) { return !peer.same_process; });
}

Result<bool> GpuPeerCall::prepare() {
  sequence_ = communicator_.next_sequence();
  plan_ = &plan_on_gpu(communicator_, request_, /*meeting=*/false);
  if (!plan_->uploaded) {
    auto uploaded = peers_.engine().upload(plan_->plan);
    if (!uploaded) return std::move(uploaded).error();
    plan_->uploaded = *std::move(uploaded);
  }
  if (auto named = name_buffers(); !named) return named.error();
  if (input_ != request_.input) {
    if (auto copied = peers_.copy(const_cast<std::byte*>(input_), request_.input, bytes_of(communicator_.rank(), true));
        !copied)
      return copied.error();
    busy_ = true;
  }
  stage_ = Stage::publish;
  return true;
}

/// What other processes cannot map is used in room that they can.
Result<void> GpuPeerCall::name_buffers() {
  const Rank rank = communicator_.rank();
  input_ = request_.input;
  output_ = request_.output;
  using Room = GpuPeers::Room;
  if (const std::size_t bytes = bytes_of(rank, true); bytes > 0) {
    if (reads_from_copy(request_)) {
      auto room = peers_.room(Room::input, bytes);
      if (!room) return std::move(room).error();
      input_ = *room;
    }
    auto line = locate(Room::input, input_, bytes);
    if (!line) return std::move(line).error();
    own_.input = *line;
    input_ = reinterpret_cast<const std::byte*>(line->address);  // NOLINT: an address of the GPU's
  }
  if (const std::size_t bytes = bytes_of(rank, false); bytes > 0) {
    auto line = locate(Room::output, output_, bytes);
    if (!line) return std::move(line).error();
    own_.output = *line;
    output_ = reinterpret_cast<std::byte*>(line->address);  // NOLINT: an address of the GPU's
  }
  return {};
}

Result<cuda::MemoryLine> GpuPeerCall::locate(GpuPeers::Room which, const std::byte* at, std::size_t bytes) {
  if (!has_strangers()) return cuda::MemoryLine{.address = reinterpret_cast<std::uint64_t>(at)};
  auto line = peers_.exports.locate(at, bytes);
  if (!line || line->exported != 0) return line;
  auto room = peers_.room(which, bytes);
  if (!room) return std::move(room).error();
  return peers_.exports.locate(*room, bytes);
}

Result<bool> GpuPeerCall::publish() {
  auto& lines = communicator_.lines();
  auto may = lines.may_enter(sequence_);
  if (!may || !*may) return may;
  CallLine& line = lines.begin(sequence_);
  line.signature = request_.signature();
  line.scalar = request_.scalar;
  line.input = line.output = {};
  line.retired = communicator_.process().segments.retired();
  line.carries = 1;
  std::memcpy(lines.payload(line, sizeof own_), &own_, sizeof own_);
  lines.publish(line, sequence_);
  communicator_.ring_all();
  stage_ = Stage::gather;
  return true;
}

/// When all lines are here, all inputs are, and all outputs may be written.
Result<bool> GpuPeerCall::gather() {
  for (; gathered_ < communicator_.ranks(); ++gathered_) {
    const auto at = static_cast<std::size_t>(gathered_);
    auto line = communicator_.lines().open(gathered_, sequence_);
    if (!line) return std::move(line).error();
    if (*line == nullptr) return false;
    communicator_.drop_if_retired(gathered_, (*line)->retired);
    communicator_.notes().lines[at] = *line;
    buffers_[at].scalar = (*line)->scalar;
  }
  if (auto mapped = map_buffers(); !mapped) return mapped.error();
  stage_ = Stage::run;
  return true;
}

/// Only what the plan touches.
Result<void> GpuPeerCall::map_buffers() {
  auto& own = buffers_[static_cast<std::size_t>(communicator_.rank())];
  own.input = input_;
  own.output = output_;
  const Plan& plan = plan_->plan;
  for (const Action& action : plan.actions) {
    if (!is_pass(action)) continue;
    for (const auto& places : {plan.sources(action), plan.destinations(action)})
      for (const Place& place : places)
        if (auto mapped = map_buffer(place); !mapped) return mapped;
  }
  return {};
}

Result<void> GpuPeerCall::map_buffer(const Place& place) {
  if (place.where != Where::peer_input && place.where != Where::peer_output) return {};
  const bool input = place.where == Where::peer_input;
  const Rank rank = place.peer;
  auto& buffers = buffers_[place.peer];
  if ((input ? buffers.input : buffers.output) != nullptr) return {};
  Buffers theirs;
  std::memcpy(&theirs, communicator_.lines().payload(*communicator_.notes().lines[place.peer], sizeof theirs),
              sizeof theirs);
  const cuda::MemoryLine& line = input ? theirs.input : theirs.output;
  std::byte* at = reinterpret_cast<std::byte*>(line.address);  // NOLINT: an address of the GPU's
  if (!communicator_.members().peers[place.peer].same_process) {
    auto mapped = peers_.maps.map(rank, line, bytes_of(rank, input));
    if (!mapped) return std::move(mapped).error();
    at = *mapped;
  }
  if (input)
    buffers.input = at;
  else
    buffers.output = at;
  return {};
}

/// What peers look for is told them when the GPU is done with what comes before it.
Result<bool> GpuPeerCall::run() {
  const auto& actions = plan_->plan.actions;
  const Links links = communicator_.links();
  auto& signals = links.lanes.front().signals;
  while (next_ < actions.size()) {
    const Action& action = actions[next_];
    if (is_pass(action)) {
      if (auto launched = launch_passes(); !launched) return launched.error();
      return true;
    }
    if (action.verb == Verb::wait) {
      if (!signals[action.peer].take()) return false;
    } else {
      signals[action.peer].raise();
      links.doorbells[action.peer]->ring(*links.system, links.fenced);
    }
    ++next_;
  }
  stage_ = Stage::bring_back;
  if (output_ == request_.output) return true;
  const std::size_t bytes = bytes_of(communicator_.rank(), false);
  if (bytes == 0) return true;
  if (auto copied = peers_.copy(request_.output, output_, bytes); !copied) return copied.error();
  busy_ = true;
  return true;
}

/// All up to the next signal or wait, as one kernel.
Result<void> GpuPeerCall::launch_passes() {
  const auto& actions = plan_->plan.actions;
  std::uint32_t end = next_;
  while (end < actions.size() && is_pass(actions[end])) ++end;
  const cuda::Job job{
      .plan = &plan_->plan, .type = request_.type, .op = request_.op, .count = request_.count, .passes_only = true};
  const cuda::Part part{.plan = plan_->uploaded, .first_action = next_, .action_count = end - next_};
  if (auto launched = peers_.launch(job, part, buffers_); !launched) return launched;
  next_ = end;
  busy_ = true;
  return {};
}

Result<bool> GpuPeerCall::bring_back() {
  stage_ = Stage::done;
  return true;
}

Result<void> GpuPeerCall::look_around() {
  if (stage_ == Stage::prepare || stage_ == Stage::publish) return {};
  return look_at_lines(communicator_, sequence_, stage_ == Stage::done, [this] { return where(); });
}

std::string GpuPeerCall::where() const {
  std::string text =
      fmt::format("{} #{} on GPU {}", call_text(request_.signature()), sequence_, communicator_.gpu()->gpu->ordinal());
  if (busy_) return text + ", waiting for the GPU";
  if (stage_ == Stage::gather) return text + fmt::format(", waiting for the call of rank {}", gathered_);
  if (stage_ != Stage::run || next_ >= plan_->plan.actions.size()) return text;
  const Action& action = plan_->plan.actions[next_];
  return text + fmt::format(", step {}, waiting for rank {}", action.step, action.peer);
}

}  // namespace tutti
