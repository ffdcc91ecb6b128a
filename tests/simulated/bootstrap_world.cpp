#include "simulated/bootstrap_world.h"

#include <algorithm>
#include <numeric>

namespace tutti {

void BootstrapWorld::contribute(std::size_t actor) {
  actors_[actor].bootstrap->exchange(blob(actors_[actor].rank, outcomes[actor].rounds));
}

void BootstrapWorld::check_blobs(std::size_t actor) {
  const auto& gathered = actors_[actor].bootstrap->gathered();
  for (int rank = 0; rank < ranks_; ++rank)
    if (gathered.size() != static_cast<std::size_t>(ranks_) ||
        gathered[static_cast<std::size_t>(rank)] != blob(rank, outcomes[actor].rounds))
      wrong_blob = "of rank " + std::to_string(rank) + " at actor " + std::to_string(actor);
}

void BootstrapWorld::advance(std::size_t actor) {
  if (!actors_[actor].bootstrap || actors_[actor].held || settled(actor)) return;
  auto done = actors_[actor].bootstrap->advance();
  Outcome& outcome = outcomes[actor];
  if (!done) {
    outcome.error = std::move(done).error();
  } else if (*done) {
    check_blobs(actor);
    if (++outcome.rounds < rounds_) contribute(actor);
  }
  outcome.at_ns = elapsed_ns();
}

void BootstrapWorld::turn() {
  std::vector<std::size_t> order(actors_.size() + 1);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<std::size_t>(system.pick(0, static_cast<std::int64_t>(i) - 1))]);
  for (const std::size_t who : order) {
    if (system.chance(0.2)) continue;  // busy elsewhere
    if (who < actors_.size())
      advance(who);
    else if (root && !root_ended)
      root_ended = !root->advance();
  }
  std::erase_if(excuses_, [this](const auto& excuse) { return !system.chance(0.2) && !excuse->advance(); });
  for (Stranger& stranger : strangers_) {
    const auto moved = system.send(stranger.socket, stranger.bytes);
    const auto gone = moved ? std::min(moved->bytes, stranger.bytes.size()) : stranger.bytes.size();
    stranger.bytes.erase(stranger.bytes.begin(), stranger.bytes.begin() + static_cast<std::ptrdiff_t>(gone));
  }

  std::vector<PollItem> items;
  std::int64_t until = system.now_ns() + 1 * s;
  for (std::size_t i = 0; i < actors_.size(); ++i)
    if (actors_[i].bootstrap && !actors_[i].held && !settled(i))
      until = std::min(until, actors_[i].bootstrap->poll_set(items));
  for (const auto& excuse : excuses_) until = std::min(until, excuse->poll_set(items));
  if (root && !root_ended) until = std::min(until, root->poll_set(items));
  system.poll(items, std::max<std::int64_t>(until - system.now_ns(), 0));
}

bool BootstrapWorld::root_ends_after_all_left(std::int64_t limit_ns) {
  for (Actor& actor : actors_) actor.bootstrap.reset();
  strangers_.clear();
  excuses_.clear();
  const std::int64_t until = system.now_ns() + limit_ns;
  while (root && !root_ended && system.now_ns() < until) turn();
  root.reset();
  return root_ended;
}

}  // namespace tutti
