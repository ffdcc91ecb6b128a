#include "exec/run.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "plan/schedule.h"

namespace tutti {
namespace {

/// Bytes read and written by one advance: a pass of two sources and two destinations over a megabyte.
constexpr std::size_t budget_bytes = 4 * limits::pass_bytes;

}  // namespace

void Channel::reserve(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  senders.resize(n);
  receivers.resize(n);
  connections.resize(n);
  signals.resize(n);
  open.resize(n);
  unsent.reserve(n);
  undrained.reserve(n);
  inviting.peers.reserve(n);
}

Run::Run(const Plan& plan, const Binding& binding, const RunContext& links)
    : plan_(&plan), binding_(&binding), links_(links) {
  const std::size_t tiles = binding.split.tiles();
  assert(!links.channels.empty() && (plan.access == Access::slots || tiles == 1));
  channels_ = static_cast<int>(std::min({links.channels.size(), tiles, state_.size()}));
  for (std::size_t i = static_cast<std::size_t>(channels_); i-- > 0;) {
    state_[i].tile = i;  // not the whole array: g++ clears it with string instructions, which takes as long as a call
    state_[i].action = 0;
    state_[i].finished = false;
    state_[i].pass_done = 0;
    state_[i].begun = false;
  }

  groups_differ_ = binding.groups_differ;
  skips_empty_ = groups_differ_ && plan.direct;
  direct_ = plan.access == Access::slots && binding.split.stride() >= rules().direct_bytes;
  average_ = binding.op == ReduceOp::avg && reduces(plan.collective);
  weights_ = average_ && averages_by_weights(binding.type);
  scales_ = binding.op == ReduceOp::pre_mul_sum && reduces(plan.collective);
  if (links.rules != nullptr) set_loops();
  invites_ = direct_ && !groups_differ_ && !plan.invitations.all.empty();
  if (invites_) begin_to_invite();
}

const PassRules& Run::rules() const {
  static constexpr PassRules defaults;
  return links_.rules == nullptr ? defaults : *links_.rules;
}

/// How passes go through memory: by the size of this rank's buffers.
void Run::set_loops() {
  const Binding& binding = *binding_;
  std::size_t in = 0, out = 0;  // elements
  if (groups_differ_) {
    for (const Range& group : binding.input_groups) in += group.count;
    for (const Range& group : binding.output_groups) out += group.count;
  } else {
    const auto groups = [&](auto count) {
      return static_cast<std::size_t>(count(plan_->collective, plan_->ranks, plan_->rank, plan_->root));
    };
    in = groups(input_groups) * binding.split.count();
    out = groups(output_groups) * binding.split.count();
  }
  const std::size_t size = binding.split.element_bytes();
  const std::size_t footprint = LoopFootprints::of_two((in + out) * size, plan_->ranks);
  if (rules().nontemporal_bytes != 0) {
    if (std::max(in, out) * size >= rules().nontemporal_bytes) loop_ = Loop::nontemporal;
  } else {
    if (footprint >= LoopFootprints::bytes_min) {
      loops_ = &rules().loops;
      loop_footprint_ = LoopFootprints::nearest(footprint);
    }
    if (plan_->access == Access::cma && footprint >= PulledFootprints::bytes_min)
      pulled_loop_ = rules().loops.pulled[PulledFootprints::nearest(footprint)];
  }
  const bool streams = plan_->access == Access::slots && rules().streamed_bytes <= binding.split.stride();
  always_plain_ = loops_ == nullptr && !pulled_loop_ && loop_ == Loop::plain && !streams;
}

Result<Progress> Run::advance() {
  std::size_t budget = budget_bytes;
  bool moved = false;
  bool finished = true;
  for (int i = 0; i < channels_; ++i) {
    const int index = first_channel_ + i < channels_ ? first_channel_ + i : first_channel_ + i - channels_;
    Channel& channel = links_.channels[static_cast<std::size_t>(index)];
    const ChannelState& state = state_[static_cast<std::size_t>(index)];
    if (!state.finished) {
      auto went = TUTTI_TRY(advance_channel(index, budget));
      moved = moved || went;
    }
    // Flush even if the channel is blocked: its peers may wait for messages that have not left yet.
    if (!channel.unsent.empty()) {
      auto left = flush(channel);
      if (!left) return std::move(left).error().at_step(index, -1);
      moved = moved || *left;
    }
    if (state.finished && !channel.inviting.peers.empty()) moved = close_invitations(channel) || moved;
    if (state.finished && !channel.undrained.empty()) {
      auto drained = drain(channel);
      if (!drained) return std::move(drained).error().at_step(index, -1);
      moved = moved || *drained;
    }
    finished = finished && state.finished && channel.unsent.empty() && channel.inviting.peers.empty() &&
               channel.undrained.empty();
  }
  first_channel_ = first_channel_ + 1 < channels_ ? first_channel_ + 1 : 0;
  if (finished) return Progress::done;
  if (!moved && links_.opens && unopened_ > 0) {
    const int before = std::exchange(unopened_, unopened());
    moved = unopened_ < before;
  }
  return moved ? Progress::moved : Progress::blocked;
}

/// True if the last of some peer's messages has been read to its end.
Result<bool> Run::drain(Channel& channel) {
  const std::size_t before = channel.undrained.size();
  for (std::size_t i = before; i-- > 0;) {
    const std::uint16_t peer = channel.undrained[i];
    auto drained = channel.receivers[peer]->drained();
    if (!drained) return std::move(drained).error().at_peer(peer);
    if (*drained) channel.undrained.erase(channel.undrained.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return channel.undrained.size() < before;
}

/// Opens the connections of all of the plan's messages; how many are not open yet. What a rank waits for may come only
/// after others have used a connection that this rank must open, although its own turn to use it is later.
int Run::unopened() const {
  int left = 0;
  for (int index = 0; index < channels_; ++index) {
    const Channel& channel = links_.channels[static_cast<std::size_t>(index)];
    const ChannelState& state = state_[static_cast<std::size_t>(index)];
    if (state.finished) continue;
    for (const Action& action : plan_->actions) {
      if (action.verb != Verb::acquire && action.verb != Verb::peek) continue;
      if (skips_empty_ && is_empty_message(state, action)) continue;
      if (const auto& connection = channel.connections[action.peer]; connection && !connection->opened()) ++left;
    }
  }
  return left;
}

/// True if all messages to some peer have left.
Result<bool> Run::flush(Channel& channel) {
  bool moved = false;
  for (std::size_t i = 0; i < channel.unsent.size();) {
    const std::uint16_t peer = channel.unsent[i];
    auto gone = channel.senders[peer]->flush();
    if (!gone) return std::move(gone).error().at_peer(peer);
    if (*gone && channel.open[peer].filling.data() == nullptr) {
      moved = true;
      channel.unsent[i] = channel.unsent.back();
      channel.unsent.pop_back();
    } else {
      ++i;
    }
  }
  return moved;
}

/// Advances one channel as far as possible; true if it made progress.
Result<bool> Run::advance_channel(int index, std::size_t& budget) {
  Channel& channel = links_.channels[static_cast<std::size_t>(index)];
  ChannelState& state = state_[static_cast<std::size_t>(index)];
  bool moved = false;
  while (budget > 0) {
    if (state.action == plan_->actions.size()) {
      state.action = 0;
      state.tile += static_cast<std::size_t>(channels_);
      if (state.tile < binding_->split.tiles()) continue;
      state.finished = true;
      return true;
    }
    if (invites_) invite(channel, state, static_cast<std::size_t>(index));
    const Action& action = plan_->actions[state.action];
    // Flush before the peek: the awaited message may be the answer to a message that has not left yet.
    if (action.verb == Verb::peek && moved && !channel.unsent.empty())
      if (auto left = flush(channel); !left)
        return std::move(left).error().at_step(index, static_cast<int>(action.step));
    const std::size_t before = state.pass_done;
    auto went = act(channel, state, action, budget);
    if (!went) return std::move(went).error().at_step(index, static_cast<int>(action.step));
    if (!*went) return moved || state.pass_done != before;
    moved = true;
    ++state.action;
  }
  return moved;
}

/// False: the action cannot be finished now.
Result<bool> Run::act(Channel& channel, ChannelState& state, const Action& action, std::size_t& budget) {
  const std::size_t peer = action.peer;
  switch (action.verb) {
    case Verb::copy:
    case Verb::reduce: return pass(channel, state, action, budget);
    case Verb::acquire: return acquire(channel, state, action);
    case Verb::peek: return peek(channel, state, action);
    case Verb::wait_descriptor: return wait_descriptor(channel, action);
    case Verb::wait: return channel.signals[peer].take();
    case Verb::signal:
      channel.signals[peer].raise();
      links_.doorbells[peer]->ring(*links_.system, links_.oversubscribed);
      return true;
    case Verb::commit: {
      if (channel.open[peer].filling.data() == nullptr) return true;  // acquire found it empty
      auto sent = channel.senders[peer]->commit(channel.open[peer].filling.size());
      channel.open[peer].filling = {};
      if (!sent) return std::move(sent).error().at_peer(action.peer);
      if (std::ranges::find(channel.unsent, action.peer) == channel.unsent.end()) channel.unsent.push_back(action.peer);
      return true;
    }
    case Verb::release: {
      if (channel.open[peer].reading.data() == nullptr) return true;
      channel.open[peer].reading = {};
      channel.open[peer].offered.clear();
      if (invites_) ++channel.open[peer].taken;
      if (auto freed = channel.receivers[peer]->release(); !freed) return std::move(freed).error().at_peer(action.peer);
      if (channel.open[peer].arriving != nullptr &&
          std::ranges::find(channel.undrained, action.peer) == channel.undrained.end())
        channel.undrained.push_back(action.peer);
      return true;
    }
    // What was committed leaves without the receiver's help, and a fused plan has committed messages for later steps.
    case Verb::settle: return true;
  }
  return Error{.code = Code::internal, .what = "unknown verb in a plan"};
}

Result<bool> Run::acquire(Channel& channel, const ChannelState& state, const Action& action) {
  if (skips_empty_ && is_empty_message(state, action)) return true;
  auto slot = channel.senders[action.peer]->acquire();
  if (!slot) return std::move(slot).error().at_peer(action.peer);
  if (slot->data() == nullptr) return false;
  const std::size_t bytes = action.items * binding_->split.stride();
  if (bytes > slot->size())
    return Error{.code = Code::internal,
                 .what = fmt::format("a message of {} bytes does not fit a slot of {} bytes", bytes, slot->size()),
                 .peer = action.peer};
  channel.open[action.peer].filling = slot->first(bytes);
  return true;
}

Result<bool> Run::peek(Channel& channel, const ChannelState& state, const Action& action) {
  if (skips_empty_ && is_empty_message(state, action)) return true;
  const std::size_t bytes = action.items * binding_->split.stride();
  Receiver& receiver = *channel.receivers[action.peer];
  Landing* const arriving = direct_ ? receiver.landing() : nullptr;
  auto message = arriving != nullptr ? arriving->expect(bytes) : receiver.peek(bytes);
  if (!message) return std::move(message).error().at_peer(action.peer);
  if (message->data() == nullptr) return false;
  if (bytes != message->size())
    return Error{.code = Code::remote,
                 .what = fmt::format("received a message of {} bytes, expected {} bytes", message->size(), bytes),
                 .peer = action.peer};
  channel.open[action.peer].reading = *message;
  channel.open[action.peer].arriving = arriving;
  if (direct_ && arriving == nullptr) TUTTI_TRY(find_offered(channel, action));
  return true;
}

Result<bool> Run::wait_descriptor(Channel& channel, const Action& action) {
  auto descriptor = links_.descriptors->open(action.peer, binding_->sequence);
  if (!descriptor) return std::move(descriptor).error().at_peer(action.peer);
  if (*descriptor == nullptr) return false;
  const int groups = input_groups(plan_->collective, plan_->ranks, action.peer, plan_->root);
  const std::size_t bytes = static_cast<std::size_t>(groups) * binding_->split.group_bytes();
  assert(bytes <= links_.descriptors->payload_bytes());
  channel.open[action.peer].line = links_.descriptors->payload(action.peer, binding_->sequence, bytes);
  return true;
}

Run::Position Run::waiting_for() const {
  for (int channel = 0; channel < channels_; ++channel) {
    const ChannelState& state = state_[static_cast<std::size_t>(channel)];
    if (state.finished || state.action >= plan_->actions.size()) continue;
    const Action& action = plan_->actions[state.action];
    const bool passes = action.verb == Verb::copy || action.verb == Verb::reduce;
    int peer = passes ? -1 : static_cast<int>(action.peer);
    if (passes)
      for (const Place& place : plan_->sources(action))
        if (place.where == Where::slot) peer = place.peer;
    const auto& unsent = links_.channels[static_cast<std::size_t>(channel)].unsent;
    if (peer < 0 && !unsent.empty()) peer = unsent.front();
    return {peer, channel, static_cast<int>(action.step), action.verb};
  }
  const auto step = plan_->actions.empty() ? 0 : static_cast<int>(plan_->actions.back().step);
  for (int channel = 0; channel < channels_; ++channel) {
    const Channel& last = links_.channels[static_cast<std::size_t>(channel)];
    if (!last.unsent.empty())
      return {.peer = last.unsent.front(), .channel = channel, .step = step, .verb = Verb::commit};
    if (!last.undrained.empty())
      return {.peer = last.undrained.front(), .channel = channel, .step = step, .verb = Verb::release};
    if (!last.inviting.peers.empty())
      return {.peer = last.inviting.peers.front(), .channel = channel, .step = step, .verb = Verb::release};
  }
  return {};
}

void Run::poll_set(std::vector<PollItem>& items) const {
  for (int index = 0; index < channels_; ++index) {
    const Channel& channel = links_.channels[static_cast<std::size_t>(index)];
    const ChannelState& state = state_[static_cast<std::size_t>(index)];
    for (const std::uint16_t peer : channel.unsent) channel.senders[peer]->poll_set(items);
    if (state.finished)
      for (const auto* const peers : {&channel.inviting.peers, &channel.undrained})
        for (const std::uint16_t peer : *peers) channel.receivers[peer]->poll_set(items);
    if (state.finished || state.action >= plan_->actions.size()) continue;
    const Action& action = plan_->actions[state.action];
    if (action.verb == Verb::peek) channel.receivers[action.peer]->poll_set(items);
    if (action.verb == Verb::acquire) channel.senders[action.peer]->poll_set(items);
    if (action.verb != Verb::copy && action.verb != Verb::reduce) continue;
    for (const Place& place : plan_->sources(action))
      if (place.where == Where::slot && channel.open[place.peer].arriving)
        channel.receivers[place.peer]->poll_set(items);
  }
}

}  // namespace tutti
