#include "collective/collective_run.h"

#include <cstring>

#include <fmt/format.h>

#include "call/mismatch.h"
#include "comm/peer_failure.h"

namespace tutti {

Result<void> CollectiveRun::begin(std::uint64_t sequence) {
  if (auto* const device = communicator_.device()) [[unlikely]]
    TUTTI_TRY(device->host_call(request_.queued != nullptr));
  sequence_ = sequence != 0 ? sequence : communicator_.order().next_sequence();
  if (communicator_.failure().gone().any()) [[unlikely]]
    if (auto failure = failure_before(communicator_, sequence_)) return *std::move(failure);
  shape_.collective = request_.collective;  // one by one: the rest of a shape is long, and stays empty
  shape_.ranks = communicator_.ranks();
  shape_.root = request_.root;
  count_ = request_.count;
  size_ = CallSize(request_.collective, shape_.ranks, shape_.root, request_.layout ? 0 : request_.group_bytes());
  const auto& file = communicator_.process().choices.plan_file;
  from_file_ = file && !request_.layout && count_ > 0 && file->serves(shape_, size_.bytes_max(shape_.root));
  input_ = request_.input;
  output_ = request_.output;
  if (request_.output_aside(communicator_.rank())) return put_output_aside();
  return request_.copies_input() ? copy_input() : Result<void>();
}

std::size_t CollectiveRun::input_bytes() const {
  if (request_.layout) [[unlikely]]
    return request_.layout->input_elements * size_of(request_.type);
  return input_groups(request_.collective, shape_.ranks, communicator_.rank(), request_.root) * request_.group_bytes();
}

std::size_t CollectiveRun::output_bytes() const {
  if (request_.layout) return request_.layout->output_elements * size_of(request_.type);
  return output_groups(request_.collective, shape_.ranks, communicator_.rank(), request_.root) * request_.group_bytes();
}

Result<void> CollectiveRun::copy_input() {
  const std::size_t bytes = input_bytes();
  if (bytes == 0) return {};
  auto copy = TUTTI_TRY(communicator_.memory().staging(bytes));
  std::memcpy(copy, request_.input, bytes);
  input_ = copy;
  return {};
}

Result<void> CollectiveRun::put_output_aside() {
  if (output_bytes() == 0) return {};
  output_ = TUTTI_TRY(communicator_.memory().staging(output_bytes()));
  return {};
}

/// Not where each call must be looked at: with a GPU or a plan from a file. A reduction of more ranks
/// than one pass has sources is a chain of passes.
void CollectiveRun::note_small() {
  if (shape_.ranks == 1 || shape_.ranks > limits::sources_max || communicator_.device() != nullptr ||
      communicator_.process().choices.plan_file)
    return;
  communicator_.past_calls().note_small(request_.collective, request_.group_bytes());
}

bool CollectiveRun::may_use(Access access) const {
  if (from_file_) [[unlikely]]
    return communicator_.process().choices.plan_file->carried_by(access);
  return communicator_.plans().may_use(request_.collective, access);
}

void CollectiveRun::set_largest_count(std::size_t count) {
  count_ = count;
  size_.group_bytes = count * size_of(request_.type);
}

const Plan& CollectiveRun::choose(Access access) {
  access_ = access;
  const auto [plan, algorithm] =
      from_file_ ? communicator_.plans().from_file(shape_, access)
                 : communicator_.plans().of(shape_, access, size_.choice_bytes(), request_.layout != nullptr);
  communicator_.past_calls().note_used(algorithm, communicator_.links().channels().transport(access));
  return plan;
}

Result<void> CollectiveRun::start(const Plan& plan, bool factors) {
  auto& notes = communicator_.memory().notes();
  if (request_.op == ReduceOp::pre_mul_sum)
    for (Rank rank = 0; rank < shape_.ranks; ++rank)
      notes.scalars[rank] = factors ? notes.descriptors[rank]->scalar : request_.scalar;
  binding_.input = input_;
  binding_.output = output_;
  binding_.type = request_.type;
  binding_.op = request_.op;
  binding_.user = request_.user;
  binding_.peers = notes.memory;
  binding_.scalars = notes.scalars;
  binding_.sequence = sequence_;
  binding_.split = Split(count_, size_of(request_.type), plan.parts);
  if (request_.layout) {
    binding_.groups_differ = true;
    binding_.input_groups = request_.layout->input;
    binding_.output_groups = request_.layout->output;
  }
  if (access_ == Access::slots) binding_.split.tile(communicator_.links().channels().slot_bytes(), plan.items_max);
  if (plan.scratch_groups > 0)
    binding_.scratch = TUTTI_TRY(communicator_.memory().scratch(plan.scratch_groups * size_.group_bytes));
  run_.emplace(plan, binding_, communicator_.links().context());
  if (size_.choice_bytes() >= PredictionCheck::bytes_min) [[unlikely]]
    if (auto* const check = communicator_.plans().prediction_check()) compare_with_prediction(*check);
  return {};
}

/// Not for calls whose time depends on more than the prediction knows: in a rooted one or a prefix a rank may be done
/// long before the last one.
void CollectiveRun::compare_with_prediction(PredictionCheck& check) {
  const bool in_turns = rooted(shape_.collective) || prefixes(shape_.collective);
  if (from_file_ || request_.layout || request_.queued != nullptr || in_turns) return;
  const double us = communicator_.plans().predicted_us(shape_, access_, size_.choice_bytes());
  if (us < PredictionCheck::us_min) return;
  check.start(CallKind::of(shape_.collective, access_, size_.choice_bytes()), us, now_ns());
  check_ = &check;
}

void CollectiveRun::finish() {
  if (output_ != request_.output) std::memcpy(request_.output, output_, output_bytes());
  if (check_ != nullptr) [[unlikely]]
    check_->finish(now_ns());
}

std::string CollectiveRun::name() const {
  return fmt::format("{} #{}", call_text(request_.signature()), sequence_);
}

std::string CollectiveRun::position_text() const {
  if (!run_) return {};
  const auto position = run_->waiting_for();
  std::string text = fmt::format(", channel {} step {}", position.channel, position.step);
  if (position.peer >= 0) text += fmt::format(", waiting for rank {}", position.peer);
  return text;
}

}  // namespace tutti
