#include "collective/collective_call.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include <fmt/format.h>

#include "call/mismatch.h"
#include "comm/descriptor_watch.h"
#include "comm/peer_failure.h"
#include "exec/reduce.h"

namespace tutti {
namespace {

int groups_in(const Request& request, int ranks, Rank rank) {
  return input_groups(request.collective, ranks, rank, request.root);
}

int groups_out(const Request& request, int ranks, Rank rank) {
  return output_groups(request.collective, ranks, rank, request.root);
}

}  // namespace

Result<Progress> CollectiveCall::advance() {
  auto progress = [this]() -> Result<Progress> {
    switch (state_) {
      case State::enter: return enter();
      case State::gather: return gather();
      case State::run: return run();
      case State::done: break;
    }
    return Progress::done;
  }();
  if (progress) return progress;
  abandon(progress.error());
  return communicator_.failure();
}

std::size_t CollectiveCall::input_bytes() const {
  if (request_.layout) [[unlikely]]
    return request_.layout->input_elements * size_of(request_.type);
  return groups_in(request_, shape_.ranks, communicator_.rank()) * request_.group_bytes();
}

std::size_t CollectiveCall::output_bytes() const {
  if (request_.layout) return request_.layout->output_elements * size_of(request_.type);
  return groups_out(request_, shape_.ranks, communicator_.rank()) * request_.group_bytes();
}

bool CollectiveCall::plan_file_serves() const {
  const auto& file = communicator_.process().plan_file;
  return file && !request_.layout && request_.count > 0 && file->serves(shape_, size_.bytes_max(shape_.root));
}

/// A plan from a file is carried as it is. By fifos always.
bool CollectiveCall::may_use(Access access) const {
  return !from_file_ || communicator_.process().plan_file->carried_by(access);
}

/// Whether a small call would write block by block as lines come: then it waits for all of them, so that a mismatch
/// leaves the output as it was. Others write in one pass at the end, or need the line of the root alone.
bool CollectiveCall::compares_first() const {
  switch (request_.collective) {
    case Collective::all_gather:
    case Collective::all_to_all: return true;
    case Collective::gather: return communicator_.rank() == request_.root;
    case Collective::all_reduce:
    case Collective::reduce:
    case Collective::reduce_scatter: return shape_.ranks > limits::sources_max;
    default: return false;
  }
}

Result<Progress> CollectiveCall::enter() {
  if (sequence_ == 0) {
    if (auto* const device = communicator_.device()) [[unlikely]]
      if (auto may = device->host_call(request_.device != nullptr); !may) return std::move(may).error();
    sequence_ = communicator_.next_sequence();
    shape_ = {.collective = request_.collective, .ranks = communicator_.ranks(), .root = request_.root};
    count_ = request_.count;
    size_ = CallSize(request_.collective, shape_.ranks, shape_.root, request_.layout ? 0 : request_.group_bytes());
    from_file_ = plan_file_serves();
    if (communicator_.spans_hosts()) return enter_across_hosts();
    small_ =
        !request_.layout && fits_inline(size_, shape_.root, communicator_.forced_access()) && may_use(Access::in_line);
    gathers_ = !small_ || compares_first();
    if (auto staged = stage_input(); !staged) return std::move(staged).error();
  }
  auto may = communicator_.lines().may_enter(sequence_);
  if (!may) return std::move(may).error();
  if (!*may) return Progress::blocked;

  CallDescriptor& line = communicator_.lines().begin(sequence_);
  write_descriptor(line);
  communicator_.lines().publish(line, sequence_);
  communicator_.ring_all();
  if (gathers_) {
    state_ = State::gather;
    return Progress::moved;
  }
  if (auto ready = prepare(Access::in_line); !ready) return std::move(ready).error();
  state_ = State::run;
  return run();
}

void CollectiveCall::write_descriptor(CallDescriptor& line) {
  const std::size_t in_bytes = input_bytes();
  line.signature = request_.signature();
  line.scalar = request_.scalar;
  const auto carry = [&] { write_payload(communicator_.lines().payload(line, in_bytes), in_bytes); };
  if (small_) return in_bytes > 0 ? carry() : void();
  if (request_.layout)
    write_counts(line);
  else if (communicator_.plans().autotuner().on())
    write_times(line);

  const auto& segments = communicator_.process().segments;
  const auto locate = [&](const std::byte* at, std::size_t bytes) -> BufferDescriptor {
    BufferDescriptor buffer{.address = reinterpret_cast<std::uint64_t>(at)};
    if (bytes == 0) {
      buffer.segment = BufferDescriptor::nothing;
    } else if (const auto spot = segments.find(at, bytes)) {
      buffer.segment = spot->name.id;
      buffer.generation = spot->name.generation;
      buffer.offset = spot->offset;
    }
    return buffer;
  };
  line.input = locate(input_, in_bytes);
  line.output = locate(request_.output, output_bytes());
  line.retired = segments.retired();
  const bool mapped = (in_bytes == 0 || line.input.segment != 0) && (output_bytes() == 0 || line.output.segment != 0);
  line.carries = !mapped && may_carry(size_, communicator_.access_facts()) ? 1 : 0;
  if (line.carries == 0 || in_bytes == 0) return;
  carry();
  assert(communicator_.lines().payload(line, in_bytes) == reinterpret_cast<std::byte*>(&line + 1));
}

/// Where small calls have their payload.
void CollectiveCall::write_times(CallDescriptor& line) const {
  const TuningTimes times = communicator_.plans().autotuner().line();
  static_assert(sizeof times <= sizeof line.small);
  std::memcpy(line.small, &times, sizeof times);
}

/// What peers read must be scaled already: they do not know which of their sources is a raw contribution.
void CollectiveCall::write_payload(std::byte* to, std::size_t bytes) const {
  if (request_.op != ReduceOp::pre_mul_sum || !reduces(request_.collective)) {
    std::memcpy(to, input_, bytes);
    return;
  }
  const Source source{.at = input_, .scaled = true, .scalar = request_.scalar};
  reduce_pass({.sources = {&source, 1},
               .destinations = {&to, 1},
               .count = bytes / size_of(request_.type),
               .type = request_.type,
               .op = request_.op});
}

Result<void> CollectiveCall::stage_input() {
  input_ = request_.input;
  if (!request_.copies_input() || input_bytes() == 0) return {};
  const std::size_t bytes = input_bytes();
  auto copy = communicator_.staging(bytes);
  if (!copy) return std::move(copy).error();
  std::memcpy(*copy, request_.input, bytes);
  input_ = *copy;
  return {};
}

Result<Progress> CollectiveCall::gather() {
  if (told_) return gather_across_hosts();
  for (; gathered_ < shape_.ranks; ++gathered_) {
    const Rank rank = gathered_;
    auto line = communicator_.lines().open(rank, sequence_);
    if (!line) return std::move(line).error();
    if (*line == nullptr) return Progress::blocked;
    communicator_.notes().lines[rank] = *line;
    if (small_) continue;
    communicator_.windows().drop_if_retired(rank, (*line)->retired);
    all_carry_ = all_carry_ && (*line)->carries != 0;
    if ((*line)->input.segment == 0) all_input_mapped_ = false;
    if ((*line)->output.segment == 0) all_output_mapped_ = false;
    if (!request_.layout && communicator_.plans().autotuner().on()) {
      TuningTimes times;
      std::memcpy(&times, (*line)->small, sizeof times);
      communicator_.plans().autotuner().hear(times);
    }
    if (request_.layout) {
      CountsDescriptor counts;
      std::memcpy(&counts, (*line)->small, sizeof counts);
      tally_.add(counts);
    }
  }
  if (request_.layout) {
    if (auto agree = compare_counts(); !agree) return std::move(agree).error();
  } else if (!small_) {
    communicator_.plans().autotuner().decide();
  }
  if (auto ready = prepare(small_ ? Access::in_line : choose_access()); !ready) return std::move(ready).error();
  state_ = State::run;
  return run();
}

/// From the call descriptors and what was agreed at the start alone, hence alike on all ranks.
Access CollectiveCall::choose_access() const {
  const Access fastest =
      large_access(size_, communicator_.access_facts(), all_input_mapped_ && all_output_mapped_, all_carry_);
  return may_use(fastest) ? fastest : Access::slots;
}

/// Only what the plan touches: a rank waits for those who touch its buffers, so others may come when it has freed them.
Result<void> CollectiveCall::map_windows(const Plan& plan) {
  auto& memory = communicator_.notes().memory;
  std::ranges::fill(memory, PeerMemory{});
  memory[communicator_.rank()] = {.input = const_cast<std::byte*>(input_), .output = request_.output};
  for (const Action& action : plan.actions) {
    if (action.verb != Verb::copy && action.verb != Verb::reduce) continue;
    for (const auto& places : {plan.sources(action), plan.destinations(action)})
      for (const Place& place : places)
        if (auto mapped = map_window(place); !mapped) return mapped;
  }
  return {};
}

Result<void> CollectiveCall::map_window(Place place) {
  if (place.where != Where::peer_input && place.where != Where::peer_output) return {};
  const bool input = place.where == Where::peer_input;
  const Rank rank = place.peer;
  PeerMemory& memory = communicator_.notes().memory[rank];
  std::byte*& at = input ? memory.input : memory.output;
  if (at != nullptr) return {};
  const CallDescriptor& call = *communicator_.notes().lines[rank];
  BufferDescriptor line = input ? call.input : call.output;
  std::size_t bytes = 0;
  if (request_.layout) {
    auto block = block_of(rank, line, input, bytes);
    if (!block) return std::move(block).error();
    if (bytes == 0) return {};
    line = *block;
  } else {
    const int groups = input ? groups_in(request_, shape_.ranks, rank) : groups_out(request_, shape_.ranks, rank);
    bytes = groups * request_.group_bytes();
  }
  const Peer& peer = communicator_.members().peers[rank];
  if (access_ == Access::cma && !peer.same_process) {
    at = reinterpret_cast<std::byte*>(line.address);
    memory.pid = peer.visible_pid();
    return {};
  }
  auto window = communicator_.windows().at(rank, line, bytes);
  if (!window) return std::move(window).error();
  at = *window;
  return {};
}

Result<void> CollectiveCall::prepare(Access access) {
  access_ = access;
  const Layout* const layout = request_.layout.get();
  const auto [plan, algorithm] =
      from_file_ ? communicator_.plans().from_file(shape_, access)
                 : communicator_.plans().of(shape_, access, size_.choice_bytes(), layout != nullptr);
  communicator_.note_used(algorithm, access);
  if (access == Access::mapped || access == Access::cma) {
    auto touch = AccessLease::begin(communicator_);
    if (!touch) return std::move(touch).error();
    lease_.emplace(*std::move(touch));
    if (auto mapped = map_windows(plan); !mapped) return mapped;
  }
  if (request_.op == ReduceOp::pre_mul_sum) {
    auto& scalars = communicator_.notes().scalars;
    for (Rank rank = 0; rank < shape_.ranks; ++rank)
      scalars[rank] = gathers_ ? communicator_.notes().lines[rank]->scalar : request_.scalar;
  }
  binding_.input = input_;
  binding_.output = request_.output;
  binding_.type = request_.type;
  binding_.op = request_.op;
  binding_.peers = communicator_.notes().memory;
  binding_.scalars = communicator_.notes().scalars;
  binding_.sequence = sequence_;
  binding_.split = Split(count_, size_of(request_.type), plan.parts);
  if (layout != nullptr) {
    binding_.groups_differ = true;
    binding_.input_groups = layout->input;
    binding_.output_groups = layout->output;
  }
  if (access == Access::slots) binding_.split.tile(communicator_.channels().slot_bytes(), plan.items_max);
  if (plan.scratch_groups > 0) {
    auto scratch = communicator_.scratch(plan.scratch_groups * size_.group_bytes);
    if (!scratch) return std::move(scratch).error();
    binding_.scratch = *scratch;
  }
  run_.emplace(plan, binding_, communicator_.links());
  if (autotuner())
    communicator_.plans().autotuner().start(TuningKind::of(shape_.collective, access, size_.choice_bytes()), now_ns());
  return {};
}

Result<Progress> CollectiveCall::run() {
  auto progress = run_->advance();
  if (!progress) return progress;
  if (*progress != Progress::done) return progress;
  if (autotuner()) communicator_.plans().autotuner().finish(now_ns());
  // A peer that failed meanwhile may have changed what was read here, without waiting for anybody.
  if (lease_)
    if (auto failure = failure_of_any(communicator_)) return *std::move(failure);
  lease_.reset();
  state_ = State::done;
  return Progress::done;
}

Result<void> CollectiveCall::poll_peers() {
  if (sequence_ == 0) return {};
  if (communicator_.spans_hosts()) return look_for_leavers();
  return look_at_descriptors(communicator_, sequence_, state_ == State::done);
}

std::int64_t CollectiveCall::poll_set(std::vector<PollItem>& items) const {
  if (!communicator_.spans_hosts()) return 0;
  const bool awaited = communicator_.channels().opening(items);
  if (told_) told_->poll_set(items);
  if (run_ && state_ == State::run) run_->poll_set(items);
  return communicator_.nap_until(awaited);
}

/// Late peers may still store into the output: it is taken back before the caller hears of the failure. They know where
/// it is from the call descriptor on, and may begin without this rank.
void CollectiveCall::abandon(const Error& reason) {
  communicator_.fail(with_calls(communicator_.lines(), {communicator_.rank(), sequence_}, reason));
  lease_.reset();
  const bool begun = state_ == State::run && access_ == Access::mapped;
  if (!small_ && !communicator_.spans_hosts() && (state_ == State::gather || begun)) leased_ = request_.output;
}

std::string CollectiveCall::where() const {
  std::string text = fmt::format("{} #{}", call_text(request_.signature()), sequence_);
  if (state_ == State::gather && told_) text += ", exchanging counts";
  if (state_ == State::gather && !told_) text += fmt::format(", waiting for the call of rank {}", gathered_);
  if (state_ == State::run && run_) {
    const auto spot = run_->waiting_for();
    text += fmt::format(", channel {} step {}", spot.channel, spot.step);
    if (spot.peer >= 0) text += fmt::format(", waiting for rank {}", spot.peer);
  }
  return text;
}

}  // namespace tutti
