// Tries the algorithms with the best predictions in the first calls of a kind, and keeps the fastest.
#include "comm/autotune.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

namespace tutti {

const Autotuner::Tuning* Autotuner::find(const TuningKind& kind) const {
  const auto found = autotuner_.find(kind);
  return found == autotuner_.end() ? nullptr : &found->second;
}

const Autotuner::Tuning& Autotuner::enter(const TuningKind& kind, std::vector<const Algorithm*> candidates) {
  assert(!candidates.empty() && !autotuner_.contains(kind));
  candidates.resize(std::min(candidates.size(), candidates_max));
  Tuning& tuning = autotuner_[kind];
  tuning.number = autotuner_.size();
  tuning.candidates = std::move(candidates);
  if (tuning.candidates.size() == 1) tuning.winner = tuning.candidates[0];
  return tuning;
}

const Algorithm& Autotuner::turn(const Tuning& tuning) {
  if (tuning.winner != nullptr) return *tuning.winner;
  return *tuning.candidates[static_cast<std::size_t>(tuning.calls) % tuning.candidates.size()];
}

void Autotuner::start(const TuningKind& kind, std::int64_t now_ns) {
  const auto found = autotuner_.find(kind);
  running_ = found == autotuner_.end() || found->second.winner != nullptr ? nullptr : &found->second;
  started_ns_ = now_ns;
}

void Autotuner::finish(std::int64_t now_ns) {
  if (running_ == nullptr) return;
  Tuning& tuning = *std::exchange(running_, nullptr);
  const std::size_t candidates = tuning.candidates.size();
  std::uint64_t& best = tuning.own_ns[static_cast<std::size_t>(tuning.calls) % candidates];
  const auto spent = static_cast<std::uint64_t>(std::max<std::int64_t>(now_ns - started_ns_, 1));
  best = best == 0 ? spent : std::min(best, spent);
  if (static_cast<std::size_t>(++tuning.calls) == static_cast<std::size_t>(trials_) * candidates) ended_ = &tuning;
}

TuningTimes Autotuner::line() const {
  if (ended_ == nullptr) return {};
  return {.ns = ended_->own_ns, .tuning = ended_->number};
}

void Autotuner::hear(const TuningTimes& times) {
  if (ended_ == nullptr || times.tuning != ended_->number) return;
  for (std::size_t i = 0; i < candidates_max; ++i) ended_->ns[i] = std::max(ended_->ns[i], times.ns[i]);
}

void Autotuner::decide() {
  if (ended_ == nullptr) return;
  Tuning& tuning = *std::exchange(ended_, nullptr);
  const auto last = tuning.ns.begin() + static_cast<std::ptrdiff_t>(tuning.candidates.size());
  tuning.winner =
      tuning.candidates[static_cast<std::size_t>(std::min_element(tuning.ns.begin(), last) - tuning.ns.begin())];
}

std::string Autotuner::story(const TuningKind& kind) const {
  const Tuning* const tuning = find(kind);
  if (tuning == nullptr || tuning->candidates.size() == 1) return {};
  std::string names;
  for (std::size_t i = 0; i < tuning->candidates.size(); ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", tuning->candidates[i]->name);
    if (tuning->winner != nullptr) names += fmt::format(" {:.2f} µs", static_cast<double>(tuning->ns[i]) * 1e-3);
  }
  if (tuning->winner != nullptr) return fmt::format("the fastest in {} trial calls: {}", tuning->calls, names);
  return fmt::format("whose turn it is in {} trial calls, {} of them made: {}",
                     static_cast<std::size_t>(trials_) * tuning->candidates.size(), tuning->calls, names);
}

}  // namespace tutti
