// Right schedules and plans, spoilt at random: each kind of change is one function.
#include "support/mutants.h"

#include <algorithm>
#include <utility>

#include "support/schedule_editor.h"

namespace tutti::testing {
namespace {

std::size_t pick(std::size_t size, Random& random) {
  return static_cast<std::size_t>(random.below(static_cast<int>(size)));
}

/// The number one more or one less.
template <class T>
void nudge(T& number, Random& random) {
  number = static_cast<T>(random.chance(50) ? number + 1 : number - 1);
}

Rank other_rank(Rank rank, int ranks, Random& random) {
  return (rank + random.between(1, ranks - 1)) % ranks;
}

Buffer other_buffer(Buffer buffer, Random& random) {
  return static_cast<Buffer>((static_cast<int>(buffer) + random.between(1, 2)) % 3);
}

std::string change_transfer(Transfer& t, const Schedule& schedule, Random& random) {
  switch (random.below(9)) {
    case 0: t.from = other_rank(t.from, schedule.ranks(), random); return "another sender";
    case 1: t.to = other_rank(t.to, schedule.ranks(), random); return "another receiver";
    case 2: t.src.block += random.between(1, 2) * schedule.parts() - random.below(2); return "another source block";
    case 3:
      t.dst.block += random.between(1, 2) * schedule.parts() - random.below(2);
      return "another destination block";
    case 4: t.src.buffer = other_buffer(t.src.buffer, random); return "another source buffer";
    case 5: t.dst.buffer = other_buffer(t.dst.buffer, random); return "another destination buffer";
    case 6: t.step = std::max(0, random.chance(50) ? t.step + 1 : t.step - 1); return "another step";
    case 7: nudge(t.order, random); return "another order";
    default: t.kind = t.kind == Kind::copy ? Kind::reduce : Kind::copy; return "another kind";
  }
}

}  // namespace

ScheduleMutant mutate(const Schedule& schedule, Random& random) {
  std::vector<Transfer> all = schedule.transfers();
  const std::size_t at = pick(all.size(), random);
  const std::size_t other = pick(all.size(), random);
  std::string what;
  switch (random.below(12)) {
    case 0:
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
      what = "a transfer dropped";
      break;
    case 1:
      all.push_back(all[at]);
      nudge(all.back().order, random);
      what = "a transfer twice";
      break;
    case 2:
      std::swap(all[at].to, all[other].to);
      std::swap(all[at].dst, all[other].dst);
      what = "two transfers with each other's destination";
      break;
    case 3:
      std::swap(all[at].step, all[other].step);
      what = "two transfers in each other's step";
      break;
    case 4:
      std::swap(all[at].order, all[other].order);
      what = "two transfers with each other's order";
      break;
    default: what = change_transfer(all[at], schedule, random);
  }
  return {ScheduleEditor::with(schedule, std::move(all)), what};
}

namespace {

/// The plans under the knife. Changes return what they did, empty where they do not apply.
class Surgery {
 public:
  Surgery(std::vector<Plan> plans, Random& random) : plans_(std::move(plans)), random_(random) {}

  PlanMutant operate() {
    for (;;) {
      rank_ = pick(plans_.size(), random_);
      if (plan().actions.empty()) continue;
      at_ = pick(plan().actions.size(), random_);
      const std::string what = is_pass() && random_.chance(70) ? change_pass() : change_order();
      if (!what.empty())
        return {std::move(plans_), what + ", rank " + std::to_string(rank_) + ", action " + std::to_string(at_)};
    }
  }

 private:
  Plan& plan() { return plans_[rank_]; }
  Action& action() { return plan().actions[at_]; }
  bool is_pass() { return action().verb == Verb::copy || action().verb == Verb::reduce; }
  int ranks() const { return static_cast<int>(plans_.size()); }
  std::ptrdiff_t here() const { return static_cast<std::ptrdiff_t>(at_); }

  /// Things that happen to any action.
  std::string change_order() {
    std::vector<Action>& actions = plan().actions;
    switch (random_.below(is_pass() ? 5 : 9)) {
      case 0: actions.erase(actions.begin() + here()); return "dropped";
      case 1: actions.insert(actions.begin() + here(), Action(action())); return "twice";
      case 2: return swap_with_next();
      case 3: return move_to(pick(actions.size(), random_));
      case 4: return swap_actions();
      case 5: return drop_pair();
      case 6:
        action().peer = static_cast<std::uint16_t>(other_rank(action().peer, ranks(), random_));
        return "another peer";
      case 7: return change_verb();
      default:
        if (action().verb != Verb::acquire && action().verb != Verb::peek) return "";
        nudge(action().items, random_);
        return "another number of items";
    }
  }

  std::string swap_with_next() {
    if (at_ + 1 >= plan().actions.size()) return "";
    std::swap(plan().actions[at_], plan().actions[at_ + 1]);
    return "swapped with the next";
  }

  std::string swap_actions() {
    const std::size_t other = pick(plan().actions.size(), random_);
    if (other == at_) return "";
    std::swap(plan().actions[at_], plan().actions[other]);
    return "swapped with action " + std::to_string(other);
  }

  std::string move_to(std::size_t to) {
    std::vector<Action>& actions = plan().actions;
    if (to == at_) return "";
    const Action moved = action();
    actions.erase(actions.begin() + here());
    actions.insert(actions.begin() + static_cast<std::ptrdiff_t>(to), moved);
    return "moved to " + std::to_string(to);
  }

  /// An action and its counterpart: a signal and its wait, a whole message. What is left fits together, but for the
  /// order.
  std::string drop_pair() {
    const Verb verb = action().verb;
    const std::size_t peer = action().peer;
    const auto rank = static_cast<std::uint16_t>(rank_);
    if (verb != Verb::signal && verb != Verb::wait) return "";
    const Verb counterpart = verb == Verb::signal ? Verb::wait : Verb::signal;
    const auto number = std::count_if(plan().actions.begin(), plan().actions.begin() + here(),
                                      [&](const Action& a) { return a.verb == verb && a.peer == peer; });
    std::vector<Action>& theirs = plans_[peer].actions;
    auto found = theirs.begin();
    for (auto left = number;; ++found) {
      found =
          std::find_if(found, theirs.end(), [&](const Action& a) { return a.verb == counterpart && a.peer == rank; });
      if (found == theirs.end()) return "";
      if (left-- == 0) break;
    }
    theirs.erase(found);
    plan().actions.erase(plan().actions.begin() + here());
    return "dropped with its counterpart";
  }

  std::string change_verb() {
    static constexpr Verb verbs[] = {Verb::acquire, Verb::commit, Verb::peek, Verb::release,
                                     Verb::settle,  Verb::signal, Verb::wait, Verb::wait_descriptor};
    const Verb to = verbs[random_.below(8)];
    if (to == action().verb) return "";
    action().verb = to;
    return "another verb";
  }

  /// Things that happen to passes. A change of operands works on a copy of them at the end, so that no other pass
  /// changes.
  std::string change_pass() {
    Action& a = action();
    const std::ptrdiff_t was = a.first;
    const auto begin = plan().places.begin() + was;
    const std::vector<Place> own(begin, begin + a.sources + a.destinations);
    a.first = static_cast<std::uint32_t>(plan().places.size());
    plan().places.insert(plan().places.end(), own.begin(), own.end());
    std::vector<bool>& outlasts = plan().outlasts;  // of these places, as far as it was computed
    if (!outlasts.empty()) {
      const std::vector<bool> kept(outlasts.begin() + was,
                                   outlasts.begin() + was + static_cast<std::ptrdiff_t>(own.size()));
      outlasts.insert(outlasts.end(), kept.begin(), kept.end());
    }
    switch (random_.below(13)) {
      case 0: nudge(a.part, random_); return "another part";
      case 1: a.last ^= 1; return "another last";
      case 2: return drop_operand(a, true);
      case 3: return drop_operand(a, false);
      case 4: return swap_sources(a);
      case 5: plan().places[a.first + pick(a.sources, random_)].contribution ^= 1; return "another contribution";
      case 6: return double_source(a);
      case 7: return swap_operands(a);
      case 8: return halve_source(a);
      case 9: return halve_result(a);
      case 10:
        a.verb = a.verb == Verb::copy ? Verb::reduce : Verb::copy;
        return "copy instead of reduce, or the other way";
      default: return change_place(plan().places[a.first + pick(std::size_t{a.sources} + a.destinations, random_)]);
    }
  }

  std::string halve_source(Action& a) {
    if (a.verb != Verb::reduce || !averages(plan().collective)) return "";
    Place& place = plan().places[a.first + pick(a.sources, random_)];
    place.halvings = (place.halvings + (random_.chance(50) ? 1 : 127)) & 127;
    return "another number of halvings of a source";
  }

  std::string halve_result(Action& a) {
    if (a.verb != Verb::reduce || !averages(plan().collective)) return "";
    a.halvings = a.halvings == 0 || random_.chance(50) ? a.halvings + 1 : a.halvings - 1;
    return "another number of halvings of a result";
  }

  std::string drop_operand(Action& a, bool source) {
    std::uint16_t& count = source ? a.sources : a.destinations;
    if (count < 2) return "";
    const std::size_t operand = a.first + (source ? 0u : a.sources) + pick(count, random_);
    plan().places.erase(plan().places.begin() + static_cast<std::ptrdiff_t>(operand));
    if (!plan().outlasts.empty()) plan().outlasts.erase(plan().outlasts.begin() + static_cast<std::ptrdiff_t>(operand));
    --count;
    return source ? "a source less" : "a destination less";
  }

  std::string double_source(Action& a) {
    const auto operand = plan().places.begin() + static_cast<std::ptrdiff_t>(a.first + pick(a.sources, random_));
    if (!plan().outlasts.empty())
      plan().outlasts.insert(plan().outlasts.begin() + (operand - plan().places.begin()), false);
    plan().places.insert(operand, Place(*operand));
    ++a.sources;
    return "a source twice";
  }

  std::string swap_sources(Action& a) {
    if (a.sources < 2) return "";
    const std::size_t one = a.first + pick(a.sources, random_);
    const std::size_t other = a.first + pick(a.sources, random_);
    if (one == other) return "";
    std::swap(plan().places[one], plan().places[other]);
    return "two sources swapped";
  }

  std::string swap_operands(Action& a) {
    Place& source = plan().places[a.first + pick(a.sources, random_)];
    Place& destination = plan().places[a.first + a.sources + pick(a.destinations, random_)];
    std::swap(source, destination);
    return "source and destination swapped";
  }

  std::string change_place(Place& place) {
    switch (random_.below(3)) {
      case 0: place.block += static_cast<std::uint32_t>(random_.chance(50) ? 1 : -1); return "another block or item";
      case 1:
        place.peer = static_cast<std::uint16_t>(other_rank(place.peer, ranks(), random_));
        return "a place at another peer";
      default:
        place.where = static_cast<Where>((static_cast<int>(place.where) + random_.between(1, 6)) % 7);
        return "a place of another kind";
    }
  }

  std::vector<Plan> plans_;
  Random& random_;
  std::size_t rank_ = 0;
  std::size_t at_ = 0;
};

}  // namespace

PlanMutant mutate(const std::vector<Plan>& plans, Random& random) {
  return Surgery(plans, random).operate();
}

}  // namespace tutti::testing
