// Plans written by hand, for tests of what reads them: one call per action.
#pragma once

#include <initializer_list>
#include <vector>

#include "plan/plan.h"
#include "plan/schedule.h"

namespace tutti::testing {

inline Place input(int block) {
  return {.where = Where::input, .block = static_cast<std::uint32_t>(block)};
}
inline Place output(int block) {
  return {.where = Where::output, .block = static_cast<std::uint32_t>(block)};
}
inline Place scratch(int block) {
  return {.where = Where::scratch, .block = static_cast<std::uint32_t>(block)};
}
inline Place at_peer(Where where, Rank peer, int block) {
  return {.where = where, .peer = static_cast<std::uint16_t>(peer), .block = static_cast<std::uint32_t>(block)};
}
inline Place slot(Rank peer, int item) {
  return at_peer(Where::slot, peer, item);
}
inline Place contributed(Place place) {
  place.contribution = 1;
  return place;
}

/// A sum of so many inputs, as a source of a reduction.
inline Place sum_of(int inputs, Place place) {
  place.halvings = halvings_of(inputs) & 127;
  return place;
}

class PlanWriter {
 public:
  PlanWriter(const Schedule& schedule, Rank rank, Access access, int items_max = 0) {
    plan_.collective = schedule.collective();
    plan_.access = access;
    plan_.ranks = schedule.ranks();
    plan_.rank = rank;
    plan_.root = schedule.root();
    plan_.parts = schedule.parts();
    plan_.scratch_groups = schedule.scratch_groups();
    plan_.items_max = items_max;
  }

  PlanWriter& step(int step) { return step_ = static_cast<std::uint32_t>(step), *this; }
  PlanWriter& acquire(Rank peer, int items) { return add(Verb::acquire, peer, items); }
  PlanWriter& commit(Rank peer) { return add(Verb::commit, peer); }
  PlanWriter& peek(Rank peer, int items) { return add(Verb::peek, peer, items); }
  PlanWriter& release(Rank peer) { return add(Verb::release, peer); }
  PlanWriter& settle(Rank peer) { return add(Verb::settle, peer); }
  PlanWriter& signal(Rank peer) { return add(Verb::signal, peer); }
  PlanWriter& wait(Rank peer) { return add(Verb::wait, peer); }
  PlanWriter& wait_descriptor(Rank peer) { return add(Verb::wait_descriptor, peer); }

  PlanWriter& copy(Place source, std::initializer_list<Place> to, int part = 0) {
    return pass(Verb::copy, {source}, to, part);
  }
  PlanWriter& reduce(std::initializer_list<Place> sources, std::initializer_list<Place> to, int part = 0) {
    return pass(Verb::reduce, sources, to, part);
  }
  /// The pass just written completes its block.
  PlanWriter& last() {
    plan_.actions.back().last = 1;
    return averages(plan_.collective) ? halved(plan_.ranks) : *this;
  }
  /// The pass just written makes a sum of so many inputs.
  PlanWriter& halved(int inputs) {
    return plan_.actions.back().halvings = static_cast<std::uint32_t>(halvings_of(inputs)), *this;
  }

  const Plan& plan() const { return plan_; }

 private:
  PlanWriter& add(Verb verb, Rank peer, int items = 0) {
    plan_.actions.push_back({.verb = verb,
                             .peer = static_cast<std::uint16_t>(peer),
                             .items = static_cast<std::uint32_t>(items),
                             .step = step_});
    return *this;
  }
  PlanWriter& pass(Verb verb, std::initializer_list<Place> sources, std::initializer_list<Place> to, int part) {
    plan_.actions.push_back({.verb = verb,
                             .sources = static_cast<std::uint16_t>(sources.size()),
                             .destinations = static_cast<std::uint16_t>(to.size()),
                             .first = static_cast<std::uint32_t>(plan_.places.size()),
                             .part = static_cast<std::uint32_t>(part),
                             .step = step_});
    plan_.places.insert(plan_.places.end(), sources);
    plan_.places.insert(plan_.places.end(), to);
    return *this;
  }

  Plan plan_;
  std::uint32_t step_ = 0;
};

}  // namespace tutti::testing
