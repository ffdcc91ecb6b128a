#include "collective/collective_inside_host.h"

#include <algorithm>

#include <fmt/format.h>

#include "comm/descriptor_watch.h"
#include "comm/peer_failure.h"
#include "exec/reduce.h"

namespace tutti {

Result<Progress> CollectiveInsideHost::advance() {
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
  return communicator_.failure().error();
}

// ---- This rank's descriptor ----

Result<Progress> CollectiveInsideHost::enter() {
  if (run_.sequence() == 0) {
    TUTTI_TRY(run_.begin(published_));
    classify();
    if (published_ != 0 && !small_)
      return Error{.code = Code::internal, .what = "a call that was small before has another access"};
    if (published_ != 0) return entered();
  }
  // Nothing but the descriptor: no payload outside of it, and no counts. A large call may carry one.
  const bool publishes_little = small_ && DescriptorRings::is_compact(run_.size().input_bytes_max);
  auto may = TUTTI_TRY(descriptors().may_enter(run_.sequence(), publishes_little));
  if (!may) return Progress::blocked;

  CallDescriptor& descriptor = descriptors().begin(run_.sequence());
  write_descriptor(descriptor);
  descriptors().publish(descriptor, run_.sequence());
  communicator_.links().ring_all();
  return entered();
}

Result<Progress> CollectiveInsideHost::entered() {
  if (!gathers_) return start(Access::in_line);
  state_ = State::gather;
  return Progress::moved;
}

void CollectiveInsideHost::classify() {
  if (request_.layout) counts_.emplace(communicator_, request_, run_.sequence());
  small_ = !counts_ && fits_inline(run_.size(), communicator_.plans().access_facts(), access_table(false)) &&
           run_.may_use(Access::in_line);
  gathers_ = !small_ || gathers_although_inline();
}

/// Whether a small call would write its output block by block as descriptors arrive. Such a call waits for all
/// descriptors first, so that a mismatch leaves the output unchanged. Other small calls write in one pass at the end,
/// or need only the root's descriptor.
bool CollectiveInsideHost::gathers_although_inline() const {
  switch (request_.collective) {
    case Collective::all_gather:
    case Collective::all_to_all: return true;
    case Collective::gather: return communicator_.rank() == request_.root;
    case Collective::all_reduce:
    case Collective::reduce:
    case Collective::reduce_scatter: return run_.shape().ranks > limits::sources_max;
    case Collective::broadcast:
    case Collective::scatter:
    case Collective::barrier:
    case Collective::scan:
    case Collective::ex_scan: break;
  }
  return false;
}

void CollectiveInsideHost::write_descriptor(CallDescriptor& descriptor) {
  descriptor.signature = request_.signature();
  descriptor.scalar = request_.scalar;
  const std::size_t bytes = run_.input_bytes();
  const auto carry = [&] { write_payload(descriptors().payload(run_.sequence(), bytes), bytes); };
  if (small_) return bytes > 0 ? carry() : void();
  if (counts_) counts_->publish(descriptor);
  describe_buffers(descriptor, communicator_, run_, access_table(true));
  if (descriptor.carries == 0 || bytes == 0) return;
  carry();
}

/// Peers must read an input that is scaled already: they do not know which of their sources is a raw contribution.
void CollectiveInsideHost::write_payload(std::byte* to, std::size_t bytes) const {
  if (request_.op != ReduceOp::pre_mul_sum || !reduces(request_.collective)) {
    return copy_pass(run_.input(), {&to, 1}, bytes, descriptors().streams(bytes) ? Loop::nontemporal : Loop::plain);
  }
  const Source source{.at = run_.input(), .scaled = true, .scalar = request_.scalar};
  reduce_pass({.sources = {&source, 1},
               .destinations = {&to, 1},
               .count = bytes / size_of(request_.type),
               .type = request_.type,
               .op = request_.op});
}

// ---- The descriptors of all ranks ----

Result<Progress> CollectiveInsideHost::gather() {
  for (; gathered_ < run_.shape().ranks; ++gathered_) {
    auto descriptor = TUTTI_TRY(descriptors().open(gathered_, run_.sequence()));
    if (descriptor == nullptr) return Progress::blocked;
    notes().descriptors[gathered_] = descriptor;
    if (!small_) read_descriptor(gathered_, *descriptor);
  }
  if (small_) return start(Access::in_line);
  if (counts_) run_.set_largest_count(TUTTI_TRY(counts_->agree()));
  return start(choose_access());
}

void CollectiveInsideHost::read_descriptor(Rank rank, const CallDescriptor& descriptor) {
  communicator_.links().windows().begin_collective(rank, descriptor.retired);
  buffers_.carried = buffers_.carried && descriptor.carries != 0;
  buffers_.huge = buffers_.huge && descriptor.huge != 0;
  buffers_.mapped = buffers_.mapped && descriptor.input.segment != 0 && descriptor.output.segment != 0;
  buffers_.mappable = buffers_.mappable && descriptor.mappable != 0;
  buffers_.readable = buffers_.readable && descriptor.readable != 0;
  if (counts_) counts_->add(descriptor);
}

/// Depends only on the call descriptors and on facts agreed at the start, so all ranks choose the same access.
Access CollectiveInsideHost::choose_access() const {
  const AccessFacts& facts = communicator_.plans().access_facts();
  auto& all_mapped = notes().all_mapped;
  if (all_mapped != false) all_mapped = buffers_.mapped;
  const bool ordinary = !buffers_.mapped && !facts.one_process;
  const Access fastest = large_access(run_.size(), facts, access_table(ordinary), buffers_);
  return run_.may_use(fastest) ? fastest : Access::slots;
}

const AccessTable& CollectiveInsideHost::access_table(bool ordinary) const {
  return communicator_.plans().access_table(request_.collective, ordinary);
}

// ---- The plan ----

Result<Progress> CollectiveInsideHost::start(Access access) {
  access_ = access;
  const Plan& plan = run_.choose(access);
  if (access == Access::mapped || access == Access::cma) {
    lease_.emplace(communicator_);
    if (auto failure = failure_in_any(communicator_, run_.sequence())) return *std::move(failure);
    TUTTI_TRY(map_windows(plan));
  }
  TUTTI_TRY(run_.start(plan, /*factors=*/gathers_));
  if (small_) run_.note_small();
  state_ = State::run;
  return run();
}

/// Maps only the buffers that the plan uses. A rank waits only for the peers that use its buffers. Other peers may get
/// here after it has freed them.
Result<void> CollectiveInsideHost::map_windows(const Plan& plan) {
  auto& memory = notes().memory;
  std::ranges::fill(memory, PeerMemory{});
  memory[communicator_.rank()] = {.input = const_cast<std::byte*>(run_.input()), .output = run_.output()};
  return for_each_peer_place(plan, [this](const Place& place) { return map_window(place); });
}

Result<void> CollectiveInsideHost::map_window(const Place& place) {
  const bool input = place.where == Where::peer_input;
  const Rank rank = place.peer;
  PeerMemory& memory = notes().memory[rank];
  std::byte*& at = input ? memory.input : memory.output;
  if (at != nullptr) return {};
  const CallDescriptor& call = *notes().descriptors[rank];
  BufferDescriptor buffer = input ? call.input : call.output;
  std::size_t bytes = 0;
  if (counts_) {
    auto block = TUTTI_TRY(counts_->block_of(rank, buffer, input));
    if (block.bytes == 0) return {};
    buffer = block.buffer;
    bytes = block.bytes;
  } else {
    const int ranks = run_.shape().ranks;
    bytes = (input ? input_groups(request_.collective, ranks, rank, request_.root)
                   : output_groups(request_.collective, ranks, rank, request_.root)) *
            request_.group_bytes();
  }
  const Peer& peer = communicator_.members().peers[rank];
  if (access_ == Access::cma && !peer.same_process) {
    at = reinterpret_cast<std::byte*>(buffer.address);
    memory.process = peer.foreign_process();
    return {};
  }
  at = TUTTI_TRY(communicator_.links().windows().at(rank, buffer, bytes));
  return {};
}

Result<Progress> CollectiveInsideHost::run() {
  auto progress = run_.under_way().advance();
  if (!progress || *progress != Progress::done) return progress;
  run_.finish();
  // A peer that failed meanwhile returned its buffers to its caller without waiting, so the data read here may be
  // wrong.
  if (lease_)
    if (auto failure = failure_in_any(communicator_, run_.sequence())) return *std::move(failure);
  lease_.reset();
  communicator_.order().note_completed(run_.sequence());
  state_ = State::done;
  return Progress::done;
}

// ---- While it waits, and when it fails ----

Result<void> CollectiveInsideHost::poll_peers() {
  if (run_.sequence() == 0) return {};
  return check_descriptors(communicator_, run_.sequence(), state_ == State::done);
}

/// Late peers may still store into the output, so the output is taken back before the caller learns of the failure.
/// They know its address once the call descriptor is published, and may begin without this rank.
void CollectiveInsideHost::abandon(const Error& reason) {
  communicator_.fail(with_calls(descriptors(), {communicator_.rank(), run_.sequence()}, reason));
  lease_.reset();
  const bool writable = state_ == State::gather || (state_ == State::run && access_ == Access::mapped);
  if (!small_ && writable) leased_ = run_.output();
}

Rank CollectiveInsideHost::waits_for() const {
  if (state_ == State::enter) return run_.sequence() != 0 ? descriptors().last_to_arrive() : -1;
  return state_ == State::gather ? gathered_ : run_.waiting_for();
}

std::string CollectiveInsideHost::where() const {
  if (state_ == State::enter && run_.sequence() != 0)
    return run_.name() + fmt::format(", waiting for rank {}", waits_for());
  if (state_ == State::gather) return run_.name() + fmt::format(", waiting for the call of rank {}", gathered_);
  return run_.name() + run_.position_text();
}

}  // namespace tutti
