#include "gpu/replay_watch.h"

#include <algorithm>

namespace tutti {

bool ReplayWatch::advance() {
  const auto engine = engine_.lock();
  if (!engine) return false;
  const bool ended = std::ranges::any_of(peers_, [](const auto& peer) { return peer->ended(); });
  if (ended) engine->say_some_gone();
  return !ended;
}

/// Nothing tells that the last graph has gone.
std::int64_t ReplayWatch::poll_set(std::vector<PollItem>& items) {
  constexpr std::int64_t look_ns = 1'000'000'000;
  for (const auto& peer : peers_) peer->poll_set(items);
  return system_.now_ns() + look_ns;
}

}  // namespace tutti
