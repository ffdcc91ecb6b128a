// The algorithms that are predicted to be the fastest race each other in the first calls of a kind.
#include "comm/race.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

namespace tutti {

const Races::Race* Races::find(const RaceKind& kind) const {
  const auto found = races_.find(kind);
  return found == races_.end() ? nullptr : &found->second;
}

const Races::Race& Races::enter(const RaceKind& kind, std::vector<const Algorithm*> entrants) {
  assert(!entrants.empty() && !races_.contains(kind));
  entrants.resize(std::min(entrants.size(), entrants_max));
  Race& race = races_[kind];
  race.number = races_.size();
  race.entrants = std::move(entrants);
  if (race.entrants.size() == 1) race.winner = race.entrants[0];
  return race;
}

const Algorithm& Races::turn(const Race& race) {
  if (race.winner != nullptr) return *race.winner;
  return *race.entrants[static_cast<std::size_t>(race.calls) % race.entrants.size()];
}

void Races::start(const RaceKind& kind, std::int64_t now_ns) {
  const auto found = races_.find(kind);
  running_ = found == races_.end() || found->second.winner != nullptr ? nullptr : &found->second;
  started_ns_ = now_ns;
}

void Races::finish(std::int64_t now_ns) {
  if (running_ == nullptr) return;
  Race& race = *std::exchange(running_, nullptr);
  const std::size_t entrants = race.entrants.size();
  std::uint64_t& best = race.own_ns[static_cast<std::size_t>(race.calls) % entrants];
  const auto spent = static_cast<std::uint64_t>(std::max<std::int64_t>(now_ns - started_ns_, 1));
  best = best == 0 ? spent : std::min(best, spent);
  if (static_cast<std::size_t>(++race.calls) == static_cast<std::size_t>(trials_) * entrants) ended_ = &race;
}

RaceLine Races::line() const {
  if (ended_ == nullptr) return {};
  return {.ns = ended_->own_ns, .race = ended_->number};
}

void Races::hear(const RaceLine& line) {
  if (ended_ == nullptr || line.race != ended_->number) return;
  for (std::size_t i = 0; i < entrants_max; ++i) ended_->ns[i] = std::max(ended_->ns[i], line.ns[i]);
}

void Races::decide() {
  if (ended_ == nullptr) return;
  Race& race = *std::exchange(ended_, nullptr);
  const auto last = race.ns.begin() + static_cast<std::ptrdiff_t>(race.entrants.size());
  race.winner = race.entrants[static_cast<std::size_t>(std::min_element(race.ns.begin(), last) - race.ns.begin())];
}

std::string Races::story(const RaceKind& kind) const {
  const Race* const race = find(kind);
  if (race == nullptr || race->entrants.size() == 1) return {};
  std::string names;
  for (std::size_t i = 0; i < race->entrants.size(); ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", race->entrants[i]->name);
    if (race->winner != nullptr) names += fmt::format(" {:.2f} µs", static_cast<double>(race->ns[i]) * 1e-3);
  }
  if (race->winner != nullptr) return fmt::format("the winner of a race of {} calls: {}", race->calls, names);
  return fmt::format("whose turn it is in a race of {} calls, {} of them made: {}",
                     static_cast<std::size_t>(trials_) * race->entrants.size(), race->calls, names);
}

}  // namespace tutti
