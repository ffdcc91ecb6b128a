// Spoils plans with offered blocks: each kind of change is one function.
#include "support/offer_mutants.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "plan/outlasting.h"
#include "plan/schedule.h"

namespace tutti::testing {
namespace {

bool own(const Place& place) {
  return place.where == Where::output || place.where == Where::scratch;
}

/// True for one block, and for an input and an output that are the same memory when their rank works in place.
bool same_memory(const Plan& plan, const Place& a, const Place& b) {
  if (a.where == Where::slot && b.where == Where::slot) return same_block(a, b);
  const auto owner = [&plan](const Place& p) {
    return p.where == Where::peer_input || p.where == Where::peer_output ? Rank{p.peer} : plan.rank;
  };
  const auto buffer = [](const Place& p) {
    if (p.where == Where::peer_input) return Where::input;
    return p.where == Where::peer_output ? Where::output : p.where;
  };
  if (owner(a) != owner(b)) return false;
  if (buffer(a) == buffer(b)) return a.block == b.block;
  const Place& input = buffer(a) == Where::input ? a : b;
  const Place& output = buffer(a) == Where::input ? b : a;
  if (buffer(input) != Where::input || buffer(output) != Where::output) return false;
  return in_place_block(plan.collective, plan.ranks, plan.parts, owner(input), plan.root,
                        static_cast<int>(input.block)) == static_cast<int>(output.block);
}

/// A pass of a rank, and one of its destinations in a message, whose block lies in a buffer of the rank too.
struct Stored {
  std::size_t rank = 0;
  std::size_t action = 0;
  std::size_t place = 0;  ///< of the plan
  Place kept = {};
};

class OfferSurgery {
 public:
  OfferSurgery(std::vector<Plan> plans, const std::vector<int>& hosts, Random& random)
      : plans_(std::move(plans)), hosts_(hosts), random_(random) {}

  /// False: there is no place for the change.
  bool operate(OfferChange change);
  std::vector<Plan> take() { return std::move(plans_); }

 private:
  template <class Filter>
  std::optional<Stored> pick(Filter&& filter) {
    std::vector<Stored> found;
    for (std::size_t rank = 0; rank < plans_.size(); ++rank)
      for (std::size_t at = 0; at < plans_[rank].actions.size(); ++at) {
        const Action& a = plans_[rank].actions[at];
        const Place* const kept = is_pass(a) ? lasting_place(plans_[rank], a, false) : nullptr;
        for (std::size_t i = 0; kept != nullptr && i < a.destinations; ++i) {
          const Stored one{rank, at, a.first + a.sources + i, *kept};
          if (plans_[rank].places[one.place].where != Where::slot || hosts_[rank] != hosts_[peer(one)]) continue;
          if (filter(one)) found.push_back(one);
        }
      }
    if (found.empty()) return std::nullopt;
    return found[static_cast<std::size_t>(random_.below(static_cast<int>(found.size())))];
  }
  std::optional<Stored> pick_offered() {
    return pick([&](const Stored& one) { return offered(one); });
  }

  bool offered(const Stored& one) const { return plans_[one.rank].outlasts[one.place]; }
  Action& action(const Stored& one) { return plans_[one.rank].actions[one.action]; }
  std::size_t peer(const Stored& one) const { return plans_[one.rank].places[one.place].peer; }

  bool both_more();
  bool step_more();
  bool all_more();
  bool leaf_more();
  bool late_release();
  bool late_commit();
  bool early_change();
  bool added_change();
  bool read_after_release();
  bool other_block();

  std::optional<std::size_t> next(std::size_t rank, std::size_t from, Verb verb, std::size_t peer) const;
  std::optional<std::size_t> change_after(const Stored& one, std::size_t from) const;
  std::optional<std::size_t> taken_at(const Stored& one) const;
  void move(std::size_t rank, std::size_t from, std::size_t to);

  std::vector<Plan> plans_;
  const std::vector<int>& hosts_;
  Random& random_;
};

bool OfferSurgery::operate(OfferChange change) {
  switch (change) {
    case OfferChange::both_more: return both_more();
    case OfferChange::step_more: return step_more();
    case OfferChange::all_more: return all_more();
    case OfferChange::leaf_more: return leaf_more();
    case OfferChange::late_release: return late_release();
    case OfferChange::late_commit: return late_commit();
    case OfferChange::early_change: return early_change();
    case OfferChange::added_change: return added_change();
    case OfferChange::read_after_release: return read_after_release();
    case OfferChange::other_block: return other_block();
  }
  return false;
}

/// The index of the next such action of a rank.
std::optional<std::size_t> OfferSurgery::next(std::size_t rank, std::size_t from, Verb verb, std::size_t peer) const {
  const std::vector<Action>& actions = plans_[rank].actions;
  for (std::size_t at = from; at < actions.size(); ++at)
    if (actions[at].verb == verb && actions[at].peer == peer) return at;
  return std::nullopt;
}

/// The next pass that changes the block, from action `from` on.
std::optional<std::size_t> OfferSurgery::change_after(const Stored& one, std::size_t from) const {
  const Plan& plan = plans_[one.rank];
  for (std::size_t at = from; at < plan.actions.size(); ++at) {
    if (!is_pass(plan.actions[at])) continue;
    const auto to = plan.destinations(plan.actions[at]);
    if (std::ranges::any_of(to, [&](const Place& p) { return own(p) && same_memory(plan, p, one.kept); })) return at;
  }
  return std::nullopt;
}

/// The index of the receiver's peek at the message. Messages of a connection are peeked at in the order of commits.
std::optional<std::size_t> OfferSurgery::taken_at(const Stored& one) const {
  const std::vector<Action>& actions = plans_[one.rank].actions;
  const auto before = std::count_if(actions.begin(), actions.begin() + static_cast<std::ptrdiff_t>(one.action),
                                    [&](const Action& a) { return a.verb == Verb::commit && a.peer == peer(one); });
  std::optional<std::size_t> at = next(peer(one), 0, Verb::peek, one.rank);
  for (auto left = before; left > 0 && at; --left) at = next(peer(one), *at + 1, Verb::peek, one.rank);
  return at;
}

/// Actions keep their steps, as they would if an algorithm or `lower` had made the mistake.
void OfferSurgery::move(std::size_t rank, std::size_t from, std::size_t to) {
  std::vector<Action>& actions = plans_[rank].actions;
  const auto begin = actions.begin();
  const auto at = [&](std::size_t i) { return begin + static_cast<std::ptrdiff_t>(i); };
  if (from < to)
    std::rotate(at(from), at(from + 1), at(to + 1));
  else
    std::rotate(at(to), at(from), at(from + 1));
}

bool OfferSurgery::both_more() {
  const auto one = pick([&](const Stored& any) { return !offered(any); });
  if (!one) return false;
  const auto other = pick([&](const Stored& any) {
    return !offered(any) && any.rank == peer(*one) && peer(any) == one->rank && action(any).step == action(*one).step;
  });
  if (!other) return false;
  plans_[one->rank].outlasts[one->place] = true;
  plans_[other->rank].outlasts[other->place] = true;
  return true;
}

bool OfferSurgery::step_more() {
  const auto one = pick([&](const Stored& any) { return !offered(any); });
  if (!one) return false;
  for (Plan& plan : plans_)
    for (const Action& a : plan.actions)
      if (is_pass(a) && a.step == action(*one).step)
        std::fill_n(plan.outlasts.begin() + a.first, a.sources + a.destinations, true);
  return true;
}

bool OfferSurgery::all_more() {
  if (!pick([&](const Stored& any) { return !offered(any); })) return false;
  for (Plan& plan : plans_) plan.outlasts.assign(plan.places.size(), true);
  return true;
}

bool OfferSurgery::leaf_more() {
  bool more = false;
  for (Plan& plan : plans_) {
    Plan raw = plan;
    for (const Action& a : raw.actions)
      if (a.verb == Verb::copy) raw.places[a.first].contribution = 0;
    std::vector<bool> offered = outlasting(raw);
    more = more || offered != plan.outlasts;
    plan.outlasts = std::move(offered);
  }
  return more;
}

bool OfferSurgery::late_release() {
  const auto one = pick_offered();
  const auto peek = one ? taken_at(*one) : std::nullopt;
  const auto release = peek ? next(peer(*one), *peek, Verb::release, one->rank) : std::nullopt;
  const std::size_t last = one ? plans_[peer(*one)].actions.size() - 1 : 0;
  if (!release || *release >= last) return false;
  const int to = random_.between(static_cast<int>(*release) + 1, static_cast<int>(last));
  move(peer(*one), *release, random_.chance(50) ? last : static_cast<std::size_t>(to));
  return true;
}

bool OfferSurgery::late_commit() {
  const auto one = pick([&](const Stored& any) { return offered(any) && change_after(any, any.action + 1); });
  const auto commit = one ? next(one->rank, one->action, Verb::commit, peer(*one)) : std::nullopt;
  const auto change = commit ? change_after(*one, *commit) : std::nullopt;
  if (!change) return false;
  move(one->rank, *commit, *change);
  return true;
}

bool OfferSurgery::early_change() {
  const auto one = pick([&](const Stored& any) { return offered(any) && change_after(any, any.action + 1); });
  const auto change = one ? change_after(*one, one->action + 1) : std::nullopt;
  if (!change) return false;
  // Before the pass that offers the block, or between it and its message's commit.
  move(one->rank, *change, random_.chance(50) ? one->action : one->action + 1);
  return true;
}

bool OfferSurgery::added_change() {
  const auto one = pick([&](const Stored& any) { return offered(any) && own(any.kept); });
  if (!one) return false;
  Plan& plan = plans_[one->rank];
  const Action& a = action(*one);
  const Place other{.where = Where::input,
                    .contribution = reduces(plan.collective) ? std::uint8_t{1} : std::uint8_t{0}};
  Action added = a;
  added.verb = Verb::copy;
  added.last = 0;
  added.sources = added.destinations = 1;
  added.first = static_cast<std::uint32_t>(plan.places.size());
  plan.places.push_back(other);
  plan.places.back().block = a.part;  // of the first group
  plan.places.push_back(one->kept);
  plan.outlasts.resize(plan.places.size(), false);
  const auto commit = next(one->rank, one->action, Verb::commit, peer(*one)).value_or(one->action);
  const std::size_t at = random_.chance(50) ? one->action + 1 : commit + 1;
  plan.actions.insert(plan.actions.begin() + static_cast<std::ptrdiff_t>(at), added);
  return true;
}

bool OfferSurgery::read_after_release() {
  const auto one = pick_offered();
  const auto peek = one ? taken_at(*one) : std::nullopt;
  const auto release = peek ? next(peer(*one), *peek, Verb::release, one->rank) : std::nullopt;
  if (!release) return false;
  const Plan& theirs = plans_[peer(*one)];
  std::vector<std::size_t> reading;
  for (std::size_t at = *peek; at < *release; ++at) {
    if (!is_pass(theirs.actions[at])) continue;
    const auto from = theirs.sources(theirs.actions[at]);
    if (std::ranges::any_of(from, [&](const Place& p) { return p.where == Where::slot && p.peer == one->rank; }))
      reading.push_back(at);
  }
  if (reading.empty()) return false;
  move(peer(*one), reading[static_cast<std::size_t>(random_.below(static_cast<int>(reading.size())))], *release);
  return true;
}

bool OfferSurgery::other_block() {
  const auto one = pick_offered();
  if (!one) return false;
  Plan& plan = plans_[one->rank];
  const Action a = action(*one);
  for (std::size_t i = a.first; i < a.first + std::size_t{a.sources} + a.destinations; ++i) {
    Place& place = plan.places[i];
    if (place.where != one->kept.where || place.block != one->kept.block) continue;
    // A block of another group, of the same part.
    place.block = place.block >= static_cast<std::uint32_t>(plan.parts) && random_.chance(50)
                      ? place.block - static_cast<std::uint32_t>(plan.parts)
                      : place.block + static_cast<std::uint32_t>(plan.parts);
    return true;
  }
  return false;
}

}  // namespace

const char* name(OfferChange change) {
  static constexpr const char* names[] = {
      "two offer more", "a step offers more", "all offer more", "leaves offered",     "late release",
      "late commit",    "early change",       "added change",   "read after release", "another block"};
  static_assert(std::size(names) == offer_change_count);
  return names[static_cast<std::size_t>(change)];
}

std::vector<Plan> spoil_offer(std::vector<Plan> plans, const std::vector<int>& hosts, OfferChange change,
                              Random& random) {
  OfferSurgery surgery(std::move(plans), hosts, random);
  if (!surgery.operate(change)) return {};
  return surgery.take();
}

}  // namespace tutti::testing
