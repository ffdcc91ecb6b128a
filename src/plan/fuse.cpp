// Fewer passes over memory with the same result: merges a copy into the pass that makes its source.
#include "plan/fuse.h"

#include <algorithm>
#include <cassert>
#include <set>
#include <utility>

#include "plan/schedule.h"

namespace tutti {
namespace {

/// An action together with its operands.
struct Op {
  Action action;
  std::vector<Place> sources;
  std::vector<Place> destinations;
  bool is_pass() const { return action.verb == Verb::copy || action.verb == Verb::reduce; }
  bool is(Verb verb, Rank peer) const { return action.verb == verb && action.peer == peer; }
};

class Fusion {
 public:
  Fusion(const Plan& plan, int slots);
  void merge_copies();
  void drop_unread();
  Plan plan();

 private:
  using Index = std::ptrdiff_t;
  static constexpr Index none = -1;

  bool merge(Index copy);
  Index maker_of(Index copy) const;
  bool open_before(Index pass, Index copy);
  Index find(Verb verb, Rank peer, Index from, Index step) const;
  void commit_early(Index pass, Index after, Rank peer);
  void move(Index from, Index to);

  bool disturbs(const Op& between, const Op& copy) const;

  Op& op(Index index) { return ops_[static_cast<std::size_t>(index)]; }
  const Op& op(Index index) const { return ops_[static_cast<std::size_t>(index)]; }
  Index size() const { return static_cast<Index>(ops_.size()); }

  Plan plan_;
  int slots_;
  std::vector<Op> ops_;
};

Fusion::Fusion(const Plan& plan, int slots) : plan_(plan), slots_(slots) {
  ops_.reserve(plan.actions.size());
  for (const Action& action : plan.actions) {
    Op next{.action = action, .sources = {}, .destinations = {}};
    if (next.is_pass()) {
      next.sources.assign(plan.sources(action).begin(), plan.sources(action).end());
      next.destinations.assign(plan.destinations(action).begin(), plan.destinations(action).end());
    }
    ops_.push_back(std::move(next));
  }
}

void Fusion::merge_copies() {
  for (Index i = 0; i < size();)
    if (op(i).action.verb != Verb::copy || !merge(i)) ++i;
}

/// Makes the pass that wrote the copy's source store the copy too. The copy is then removed, and the actions after it
/// have its index or a later one.
bool Fusion::merge(Index copy) {
  Index pass = maker_of(copy);
  if (pass == none) return false;
  const Place destination = op(copy).destinations[0];
  if (destination.where == Where::slot) {
    if (!open_before(pass, copy)) return false;
    pass = maker_of(copy);  // the acquire may now be before it
  }
  op(pass).destinations.push_back(destination);
  ops_.erase(ops_.begin() + copy);
  if (destination.where == Where::slot) commit_early(pass, copy, destination.peer);
  return true;
}

/// The pass to merge with, or none: the last pass that wrote the source of `copy`, if no action in between conflicts
/// with the copy. For accesses other than slots, also another copy of the same source.
Fusion::Index Fusion::maker_of(Index copy) const {
  const Op& late = op(copy);
  const Place& wanted = late.sources[0];
  if (late.destinations.size() != 1 || wanted.where == Where::slot) return none;
  for (Index i = copy - 1; i >= 0; --i) {
    const Op& early = op(i);
    if (early.action.verb == Verb::wait || early.action.verb == Verb::wait_line) return none;
    if (!early.is_pass()) continue;
    const bool makes = std::ranges::any_of(early.destinations, [&](auto& d) { return same_block(d, wanted); });
    const bool shares = plan_.access != Access::slots && early.action.verb == Verb::copy && early.sources[0] == wanted;
    const bool writes_too =
        std::ranges::any_of(early.destinations, [&](auto& d) { return same_memory(plan_, d, late.destinations[0]); });
    if ((makes || shares) && !writes_too) return i;
    if (disturbs(early, late)) return none;
  }
  return none;
}

bool Fusion::disturbs(const Op& between, const Op& copy) const {
  const auto meets = [&](const Place& place) { return same_memory(plan_, place, copy.destinations[0]); };
  const auto changes = [&](const Place& place) { return same_memory(plan_, place, copy.sources[0]); };
  return std::ranges::any_of(between.sources, meets) || std::ranges::any_of(between.destinations, meets) ||
         std::ranges::any_of(between.destinations, changes);
}

/// Opens the copy's message before `pass`, if needed. Not if this could close a cycle of ranks that each hold a message
/// and wait for a slot. With `slots` per connection, the message that must be released first, which is `slots` messages
/// earlier, must belong to an earlier step than the message that is held. Then every wait is for an earlier step or
/// tile.
bool Fusion::open_before(Index pass, Index copy) {
  const Rank peer = op(copy).destinations[0].peer;
  const Index acquire = find(Verb::acquire, peer, copy, -1);
  assert(acquire != none);
  if (acquire < pass) return true;
  if (op(acquire).action.step != op(pass).action.step + 1) return false;
  for (Index i = pass; i < acquire; ++i)
    if (op(i).is(Verb::commit, peer)) return false;
  Index before = acquire;
  for (int i = 0; i < slots_ && before != none; ++i) before = find(Verb::acquire, peer, before - 1, -1);
  if (before != none && op(before).action.step >= op(pass).action.step) return false;
  move(acquire, pass);
  return true;
}

/// Searches from `from` on, in steps of +1 or -1.
Fusion::Index Fusion::find(Verb verb, Rank peer, Index from, Index step) const {
  for (Index i = from; i >= 0 && i < size(); i += step)
    if (op(i).is(verb, peer)) return i;
  return none;
}

/// Commits the message as soon as `pass` has filled it, if no other action fills it.
void Fusion::commit_early(Index pass, Index after, Rank peer) {
  const Index commit = find(Verb::commit, peer, after, +1);
  assert(commit != none);
  for (Index i = pass + 1; i < commit; ++i)
    for (const Place& place : op(i).destinations)
      if (place.where == Where::slot && place.peer == peer) return;
  move(commit, pass + 1);
}

/// Moves the action at `from` to `to`, before the action there.
void Fusion::move(Index from, Index to) {
  assert(to <= from);
  std::rotate(ops_.begin() + to, ops_.begin() + from, ops_.begin() + from + 1);
}

/// Works backwards, tracking the blocks that are still read. Mapped memory: any peer may read the output.
void Fusion::drop_unread() {
  const bool output_is_own = plan_.access == Access::slots || plan_.access == Access::in_line;
  std::set<std::uint32_t> read_scratch, overwritten;
  for (Index i = size() - 1; i >= 0; --i) {
    if (!op(i).is_pass()) continue;
    std::erase_if(op(i).destinations, [&](const Place& place) {
      if (place.where == Where::scratch) return read_scratch.erase(place.block) == 0;
      if (place.where != Where::output || !output_is_own) return false;
      return !overwritten.insert(place.block).second;
    });
    if (op(i).destinations.empty()) {
      ops_.erase(ops_.begin() + i);
      continue;
    }
    for (const Place& place : op(i).sources) {
      if (place.where == Where::scratch) read_scratch.insert(place.block);
      if (place.where == Where::output) overwritten.erase(place.block);
    }
  }
}

Plan Fusion::plan() {
  plan_.actions.clear();
  plan_.places.clear();
  for (Op& next : ops_) {
    next.action.first = static_cast<std::uint32_t>(next.is_pass() ? plan_.places.size() : 0);
    next.action.sources = static_cast<std::uint16_t>(next.sources.size());
    next.action.destinations = static_cast<std::uint16_t>(next.destinations.size());
    plan_.actions.push_back(next.action);
    plan_.places.insert(plan_.places.end(), next.sources.begin(), next.sources.end());
    plan_.places.insert(plan_.places.end(), next.destinations.begin(), next.destinations.end());
  }
  return std::move(plan_);
}

}  // namespace

Plan fuse(Plan plan, int slots) {
  assert(slots >= 1);
  Fusion fusion(plan, slots);
  fusion.merge_copies();
  fusion.drop_unread();
  return fusion.plan();
}

}  // namespace tutti
