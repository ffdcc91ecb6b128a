// Fewer passes over memory with the same result: merges a copy into the pass that makes its source. Linear in the
// number of actions: passes keep their order, so what was last done to each block is kept by block (LastPasses).
#include "plan/fuse.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plan/last_passes.h"
#include "plan/schedule.h"

namespace tutti {
namespace {

constexpr int none = LastPasses::none;

/// A message that this rank sends. Actions are named by their index in the plan.
struct Message {
  int before = none;  ///< the message before it to the same peer
  int acquire = none;
  int commit = none;
  int open_at = none;    ///< the pass before which the acquire was moved
  int closed_at = none;  ///< the pass after which the commit was moved
  int copies = 0;        ///< into it that are still to be looked at
  int filled = none;     ///< of those looked at: the last pass that stores into it
};

/// A destination that a pass was given.
struct Added {
  Place place;
  int next = none;
  bool dropped = false;
};

/// What has become of an action.
struct Fate {
  bool gone = false;
  int first_added = none;
  int last_added = none;
  int message = none;  ///< of a copy into a message, an acquire or a commit
};

class Fusion {
 public:
  Fusion(Plan plan, int slots);
  void merge_copies();
  void drop_unread();
  Plan plan();

 private:
  void find_messages();
  bool merge(int copy);
  bool open_before(int pass, Message& message);
  void commit_early(int pass, Message& message);
  void fill(int pass, Message& message);
  void add(int pass, int copy);

  bool is_unread(const Place& place);
  void emit(int action, Plan& to) const;

  const Action& action(int index) const { return plan_.actions[static_cast<std::size_t>(index)]; }
  Fate& fate(int index) { return fates_[static_cast<std::size_t>(index)]; }
  const Fate& fate(int index) const { return fates_[static_cast<std::size_t>(index)]; }
  Message& message(int index) { return messages_[static_cast<std::size_t>(index)]; }
  int size() const { return static_cast<int>(plan_.actions.size()); }

  Plan plan_;
  int slots_;
  LastPasses last_;          // before the one that is looked at
  std::vector<Fate> fates_;  // by action
  std::vector<Message> messages_;
  std::vector<Added> added_;
  std::vector<char> dropped_;  // by place: a destination that is never read
  struct Moved {
    int pass;
    int turn;
    int action;
  };
  std::vector<Moved> opened_, closed_;  // acquires and commits, in the order in which they were moved
  std::vector<char> read_scratch_, overwritten_;
};

Fusion::Fusion(Plan plan, int slots)
    : plan_(std::move(plan)), slots_(slots), last_(plan_), fates_(plan_.actions.size()), dropped_(plan_.places.size()) {
  find_messages();
}

void Fusion::find_messages() {
  std::unordered_map<int, int> open, last;  // messages, by peer
  for (int i = 0; i < size(); ++i) {
    const Action& now = action(i);
    if (now.verb == Verb::acquire) {
      const auto [known, is_first] = last.try_emplace(now.peer, none);
      fate(i).message = open[now.peer] = static_cast<int>(messages_.size());
      messages_.push_back({.before = std::exchange(known->second, fate(i).message), .acquire = i});
    } else if (now.verb == Verb::commit) {
      fate(i).message = open.at(now.peer);
      message(fate(i).message).commit = i;
    } else if (is_pass(now)) {
      for (const Place& place : plan_.destinations(now)) {
        if (place.where != Where::slot) continue;
        fate(i).message = open.at(place.peer);
        ++message(fate(i).message).copies;
      }
    }
  }
}

void Fusion::merge_copies() {
  for (int i = 0; i < size(); ++i) {
    const Verb verb = action(i).verb;
    if (verb == Verb::wait || verb == Verb::wait_descriptor) last_.waits(i);
    if (!is_pass(action(i)) || (verb == Verb::copy && merge(i))) continue;
    last_.runs(i, action(i));
    if (fate(i).message != none) fill(i, message(fate(i).message));
  }
}

/// Makes the pass that wrote the copy's source store the copy too, and removes the copy.
bool Fusion::merge(int copy) {
  const int pass = last_.maker_of(plan_, action(copy));
  if (pass == none) return false;
  if (fate(copy).message != none) {
    Message& of = message(fate(copy).message);
    if (!open_before(pass, of)) return false;
    commit_early(pass, of);
    fill(pass, of);
  }
  add(pass, copy);
  return true;
}

/// Opens the message before `pass`, if needed. Not if this could close a cycle of ranks that each hold a message and
/// wait for a slot. With `slots` per connection, the message that must be released first, which is `slots` messages
/// earlier, must belong to an earlier step than the message that is held. Then every wait is for an earlier step or
/// tile.
bool Fusion::open_before(int pass, Message& message) {
  if (message.open_at == none ? message.acquire < pass : message.open_at <= pass) return true;
  const Action& acquire = action(message.acquire);
  if (acquire.step != action(pass).step + 1) return false;
  if (message.before != none) {
    const Message& before = this->message(message.before);
    if (before.closed_at == none ? before.commit > pass : before.closed_at >= pass) return false;
  }
  int before = message.before;
  for (int i = 1; i < slots_ && before != none; ++i) before = this->message(before).before;
  if (before != none && action(this->message(before).acquire).step >= action(pass).step) return false;
  message.open_at = pass;
  opened_.push_back({.pass = pass, .turn = static_cast<int>(opened_.size()), .action = message.acquire});
  return true;
}

/// Commits the message as soon as `pass` has filled it, if no later action fills it.
void Fusion::commit_early(int pass, Message& message) {
  if (message.copies > 1 || message.filled > pass) return;
  message.closed_at = pass;
  closed_.push_back({.pass = pass, .turn = -static_cast<int>(closed_.size()), .action = message.commit});
}

/// One of the message's copies is made by `pass`.
void Fusion::fill(int pass, Message& message) {
  --message.copies;
  message.filled = std::max(message.filled, pass);
}

/// `pass` stores what `copy` would have copied.
void Fusion::add(int pass, int copy) {
  const std::size_t place = action(copy).first + action(copy).sources;
  last_.writes(pass, place);
  const int index = static_cast<int>(added_.size());
  added_.push_back({.place = plan_.places[place]});
  const int last = std::exchange(fate(pass).last_added, index);
  (last == none ? fate(pass).first_added : added_[static_cast<std::size_t>(last)].next) = index;
  fate(copy).gone = true;
}

/// Works backwards, tracking the blocks that are still read.
void Fusion::drop_unread() {
  const auto parts = static_cast<std::size_t>(plan_.parts);
  read_scratch_.assign(static_cast<std::size_t>(plan_.scratch_groups) * parts, 0);
  const int groups = output_groups(plan_.collective, plan_.ranks, plan_.rank, plan_.root);
  overwritten_.assign(static_cast<std::size_t>(groups) * parts, 0);
  for (int i = size() - 1; i >= 0; --i) {
    const Action& now = action(i);
    if (!is_pass(now) || fate(i).gone) continue;
    bool stores = false;
    for (std::size_t at = now.first + now.sources; at < now.first + now.sources + now.destinations; ++at) {
      dropped_[at] = is_unread(plan_.places[at]);
      stores = stores || !dropped_[at];
    }
    for (int at = fate(i).first_added; at != none; at = added_[static_cast<std::size_t>(at)].next) {
      Added& added = added_[static_cast<std::size_t>(at)];
      added.dropped = is_unread(added.place);
      stores = stores || !added.dropped;
    }
    if (!stores) {
      fate(i).gone = true;
      continue;
    }
    for (const Place& place : plan_.sources(now)) {
      if (place.where == Where::scratch) read_scratch_[place.block] = 1;
      if (place.where == Where::output) overwritten_[place.block] = 0;
    }
  }
}

/// Mapped memory: any peer may read the output.
bool Fusion::is_unread(const Place& place) {
  const bool output_is_own = plan_.access == Access::slots || plan_.access == Access::in_line;
  if (place.where == Where::scratch) return std::exchange(read_scratch_[place.block], 0) == 0;
  return place.where == Where::output && output_is_own && std::exchange(overwritten_[place.block], 1) != 0;
}

Plan Fusion::plan() {
  // Its own facts, without copying what is written anew.
  std::vector<Action> actions = std::move(plan_.actions);
  std::vector<Place> places = std::move(plan_.places);
  Plan result = plan_;
  plan_.actions = std::move(actions);
  plan_.places = std::move(places);
  result.actions.reserve(
      static_cast<std::size_t>(std::ranges::count_if(fates_, [](const Fate& fate) { return !fate.gone; })));
  result.places.reserve(plan_.places.size());
  const auto in_order = [](const Moved& moved) { return std::tuple(moved.pass, moved.turn); };
  for (auto* moved : {&opened_, &closed_})
    if (!std::ranges::is_sorted(*moved, {}, in_order)) std::ranges::sort(*moved, {}, in_order);
  // An acquire may have been moved several times; the last time counts.
  std::erase_if(opened_, [this](const Moved& m) { return message(fate(m.action).message).open_at != m.pass; });
  auto opened = opened_.begin(), closed = closed_.begin();
  for (int i = 0; i < size(); ++i) {
    for (; opened != opened_.end() && opened->pass == i; ++opened) emit(opened->action, result);
    const Verb verb = action(i).verb;
    const bool moved = (verb == Verb::acquire && message(fate(i).message).open_at != none) ||
                       (verb == Verb::commit && message(fate(i).message).closed_at != none);
    if (!moved && !fate(i).gone) emit(i, result);
    for (; closed != closed_.end() && closed->pass == i; ++closed) emit(closed->action, result);
  }
  return result;
}

void Fusion::emit(int index, Plan& to) const {
  Action now = action(index);
  now.first = 0;
  if (is_pass(now)) {
    const std::span<const Place> sources = plan_.sources(action(index));
    const auto first = to.places.size();
    to.places.insert(to.places.end(), sources.begin(), sources.end());
    for (std::size_t at = 0; at < action(index).destinations; ++at)
      if (const std::size_t place = action(index).first + now.sources + at; !dropped_[place])
        to.places.push_back(plan_.places[place]);
    for (int at = fate(index).first_added; at != none; at = added_[static_cast<std::size_t>(at)].next)
      if (const Added& added = added_[static_cast<std::size_t>(at)]; !added.dropped) to.places.push_back(added.place);
    now.first = static_cast<std::uint32_t>(first);
    now.destinations = static_cast<std::uint16_t>(to.places.size() - first - now.sources);
  }
  to.actions.push_back(now);
}

}  // namespace

Plan fuse(Plan plan, int slots) {
  assert(slots >= 1);
  Fusion fusion(std::move(plan), slots);
  fusion.merge_copies();
  fusion.drop_unread();
  return fusion.plan();
}

}  // namespace tutti
