#include "exec/run.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "exec/direct_pass.h"
#include "exec/invite.h"

namespace tutti {
namespace {

/// Bytes read and written by one advance: a pass of two sources and two destinations over a megabyte.
constexpr std::size_t budget_bytes = 4 * limits::pass_bytes;

}  // namespace

Run::Run(const Plan& plan, const Binding& binding, const RunContext& links)
    : passes_(plan, binding, *links.rules), links_(links) {
  const std::size_t tiles = binding.split.tiles();
  assert(!links.channels.empty() && (plan.access == Access::slots || tiles == 1));
  channels_ = static_cast<int>(std::min({links.channels.size(), tiles, cursors_.size()}));
  for (std::size_t i = static_cast<std::size_t>(channels_); i-- > 0;) {
    cursors_[i].tile = i;  // not the whole array: g++ clears it with string instructions, which takes as long as a call
    cursors_[i].action = 0;
    cursors_[i].finished = false;
    cursors_[i].pass_done = 0;
    cursors_[i].begun = false;
  }

  skips_empty_ = binding.groups_differ && plan.direct;
  invites_ = passes_.direct() && !binding.groups_differ && !plan.invitations.all.empty();
  for (std::size_t i = 0; invites_ && i < static_cast<std::size_t>(channels_); ++i)
    links.channels[i].begin_to_invite(i);
}

Result<Progress> Run::advance() {
  std::size_t budget = budget_bytes;
  bool moved = false;
  bool finished = true;
  for (int i = 0; i < channels_; ++i) {
    const int index = first_channel_ + i < channels_ ? first_channel_ + i : first_channel_ + i - channels_;
    Channel& channel = links_.channels[static_cast<std::size_t>(index)];
    const Cursor& cursor = cursors_[static_cast<std::size_t>(index)];
    if (!cursor.finished) {
      auto went = TUTTI_TRY(advance_channel(index, budget));
      moved = moved || went;
    }
    // Flush even if the channel is blocked: its peers may wait for messages that have not left yet.
    if (!channel.unsent.empty()) {
      auto left = channel.flush();
      if (!left) return std::move(left).error().at_step(index, -1);
      moved = moved || *left;
    }
    if (cursor.finished && !channel.inviting.peers.empty()) moved = channel.close_invitations() || moved;
    if (cursor.finished && !channel.undrained.empty()) {
      auto drained = channel.drain();
      if (!drained) return std::move(drained).error().at_step(index, -1);
      moved = moved || *drained;
    }
    finished = finished && cursor.finished && channel.unsent.empty() && channel.inviting.peers.empty() &&
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

/// Opens the connections of all of the plan's messages; how many are not open yet. What a rank waits for may come only
/// after others have used a connection that this rank must open, although its own turn to use it is later.
int Run::unopened() const {
  int left = 0;
  for (int index = 0; index < channels_; ++index) {
    const Channel& channel = links_.channels[static_cast<std::size_t>(index)];
    const Cursor& cursor = cursors_[static_cast<std::size_t>(index)];
    if (cursor.finished) continue;
    for (const Action& action : plan().actions) {
      if (action.verb != Verb::acquire && action.verb != Verb::peek) continue;
      if (skips_empty_ && passes_.bound().is_empty_message(action, cursor.tile)) continue;
      if (const auto& connection = channel.connections[action.peer]; connection && !connection->opened()) ++left;
    }
  }
  return left;
}

/// Advances one channel as far as possible; true if it made progress.
Result<bool> Run::advance_channel(int index, std::size_t& budget) {
  Channel& channel = links_.channels[static_cast<std::size_t>(index)];
  Cursor& cursor = cursors_[static_cast<std::size_t>(index)];
  bool moved = false;
  while (budget > 0) {
    if (cursor.action == plan().actions.size()) {
      cursor.action = 0;
      cursor.tile += static_cast<std::size_t>(channels_);
      if (cursor.tile < binding().split.tiles()) continue;
      cursor.finished = true;
      return true;
    }
    if (invites_) invite(passes_.bound(), channel, cursor, static_cast<std::size_t>(channels_));
    const Action& action = plan().actions[cursor.action];
    // Flush before the peek: the awaited message may be the answer to a message that has not left yet.
    if (action.verb == Verb::peek && moved && !channel.unsent.empty())
      if (auto left = channel.flush(); !left)
        return std::move(left).error().at_step(index, static_cast<int>(action.step));
    const std::size_t before = cursor.pass_done;
    auto went = act(channel, cursor, action, budget);
    if (!went) return std::move(went).error().at_step(index, static_cast<int>(action.step));
    if (!*went) return moved || cursor.pass_done != before;
    moved = true;
    ++cursor.action;
  }
  return moved;
}

/// False: the action cannot be finished now.
Result<bool> Run::act(Channel& channel, Cursor& cursor, const Action& action, std::size_t& budget) {
  const std::size_t peer = action.peer;
  switch (action.verb) {
    case Verb::copy:
    case Verb::reduce:
      return passes_.direct() ? pass_direct(passes_, channel, cursor, action, budget)
                              : passes_.advance(channel, cursor, action, budget);
    case Verb::acquire: return acquire(channel, cursor, action);
    case Verb::peek: return peek(channel, cursor, action);
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
      add_once(channel.unsent, action.peer);
      return true;
    }
    case Verb::release: {
      if (channel.open[peer].reading.data() == nullptr) return true;
      channel.open[peer].reading = {};
      channel.open[peer].offered.clear();
      if (invites_) ++channel.open[peer].taken;
      if (auto freed = channel.receivers[peer]->release(); !freed) return std::move(freed).error().at_peer(action.peer);
      if (channel.open[peer].arriving != nullptr) add_once(channel.undrained, action.peer);
      return true;
    }
    // What was committed leaves without the receiver's help, and a fused plan has committed messages for later steps.
    case Verb::settle: return true;
  }
  return Error{.code = Code::internal, .what = "unknown verb in a plan"};
}

Result<bool> Run::acquire(Channel& channel, const Cursor& cursor, const Action& action) {
  if (skips_empty_ && passes_.bound().is_empty_message(action, cursor.tile)) return true;
  auto slot = channel.senders[action.peer]->acquire();
  if (!slot) return std::move(slot).error().at_peer(action.peer);
  if (slot->data() == nullptr) return false;
  const std::size_t bytes = action.items * binding().split.stride();
  if (bytes > slot->size())
    return Error{.code = Code::internal,
                 .what = fmt::format("a message of {} bytes does not fit a slot of {} bytes", bytes, slot->size()),
                 .peer = action.peer};
  channel.open[action.peer].filling = slot->first(bytes);
  return true;
}

Result<bool> Run::peek(Channel& channel, const Cursor& cursor, const Action& action) {
  if (skips_empty_ && passes_.bound().is_empty_message(action, cursor.tile)) return true;
  const std::size_t bytes = action.items * binding().split.stride();
  Receiver& receiver = *channel.receivers[action.peer];
  Landing* const arriving = passes_.direct() ? receiver.landing() : nullptr;
  auto message = arriving != nullptr ? arriving->expect(bytes) : receiver.peek(bytes);
  if (!message) return std::move(message).error().at_peer(action.peer);
  if (message->data() == nullptr) return false;
  if (bytes != message->size())
    return Error{.code = Code::remote,
                 .what = fmt::format("received a message of {} bytes, expected {} bytes", message->size(), bytes),
                 .peer = action.peer};
  channel.open[action.peer].reading = *message;
  channel.open[action.peer].arriving = arriving;
  if (passes_.direct() && arriving == nullptr)
    TUTTI_TRY(channel.find_offered(action.peer, action.items, binding().split.stride()));
  return true;
}

Result<bool> Run::wait_descriptor(Channel& channel, const Action& action) {
  auto descriptor = links_.descriptors->open(action.peer, binding().sequence);
  if (!descriptor) return std::move(descriptor).error().at_peer(action.peer);
  if (*descriptor == nullptr) return false;
  const int groups = input_groups(plan().collective, plan().ranks, action.peer, plan().root);
  const std::size_t bytes = static_cast<std::size_t>(groups) * binding().split.group_bytes();
  assert(bytes <= links_.descriptors->payload_bytes());
  channel.open[action.peer].line = links_.descriptors->payload(action.peer, binding().sequence, bytes);
  return true;
}

Run::Position Run::waiting_for() const {
  for (int channel = 0; channel < channels_; ++channel) {
    const Cursor& cursor = cursors_[static_cast<std::size_t>(channel)];
    if (cursor.finished || cursor.action >= plan().actions.size()) continue;
    const Action& action = plan().actions[cursor.action];
    const bool passes = action.verb == Verb::copy || action.verb == Verb::reduce;
    int peer = passes ? -1 : static_cast<int>(action.peer);
    if (passes)
      for (const Place& place : plan().sources(action))
        if (place.where == Where::slot) peer = place.peer;
    const auto& unsent = links_.channels[static_cast<std::size_t>(channel)].unsent;
    if (peer < 0 && !unsent.empty()) peer = unsent.front();
    return {peer, channel, static_cast<int>(action.step), action.verb};
  }
  const auto step = plan().actions.empty() ? 0 : static_cast<int>(plan().actions.back().step);
  for (int channel = 0; channel < channels_; ++channel) {
    const Channel& last = links_.channels[static_cast<std::size_t>(channel)];
    for (const auto* const peers : {&last.unsent, &last.undrained, &last.inviting.peers})
      if (!peers->empty()) return {peers->front(), channel, step, peers == &last.unsent ? Verb::commit : Verb::release};
  }
  return {};
}

void Run::poll_set(std::vector<PollItem>& items) const {
  for (int index = 0; index < channels_; ++index) {
    const Channel& channel = links_.channels[static_cast<std::size_t>(index)];
    const Cursor& cursor = cursors_[static_cast<std::size_t>(index)];
    for (const std::uint16_t peer : channel.unsent) channel.senders[peer]->poll_set(items);
    if (cursor.finished)
      for (const auto* const peers : {&channel.inviting.peers, &channel.undrained})
        for (const std::uint16_t peer : *peers) channel.receivers[peer]->poll_set(items);
    if (cursor.finished || cursor.action >= plan().actions.size()) continue;
    const Action& action = plan().actions[cursor.action];
    if (action.verb == Verb::peek) channel.receivers[action.peer]->poll_set(items);
    if (action.verb == Verb::acquire) channel.senders[action.peer]->poll_set(items);
    if (action.verb != Verb::copy && action.verb != Verb::reduce) continue;
    for (const Place& place : plan().sources(action))
      if (place.where == Where::slot && channel.open[place.peer].arriving)
        channel.receivers[place.peer]->poll_set(items);
  }
}

}  // namespace tutti
