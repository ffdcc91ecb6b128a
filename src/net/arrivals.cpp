#include "net/arrivals.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tutti {

bool Arrivals::may_come(const Greeting& greeting) const {
  const bool data = greeting.purpose == Purpose::data;
  const bool fits = greeting.to == bounds_.rank && greeting.from > bounds_.rank && greeting.from < bounds_.ranks &&
                    greeting.channel < (data ? bounds_.channels : 1) && greeting.index < (data ? bounds_.sockets : 1);
  if (!fits || greeting.communicator != key_.communicator) return false;
  const std::lock_guard lock(mutex_);
  const auto known = arrived_.find(key_of(greeting));
  return known == arrived_.end() || !known->second.taken;
}

void Arrivals::put(const Greeting& greeting, Socket socket) {
  const std::lock_guard lock(mutex_);
  const auto [at, fresh] = arrived_.try_emplace(key_of(greeting));
  Entry& entry = at->second;
  if (entry.taken) return;
  if (entry.upgrade) given_up_.push_back(std::move(entry.upgrade));
  entry = {.greeting = greeting, .socket = std::move(socket)};
  begin_upgrade(entry);
  if (bell_) bell_->ring(system_, /*oversubscribed=*/true);
}

void Arrivals::begin_upgrade(Entry& entry) {
  const bool first = entry.greeting.purpose == Purpose::data && entry.greeting.index == 0;
  if (first && upgrader_ && !entry.taken && !entry.upgrade) entry.upgrade = upgrader_(entry.greeting, entry.socket);
}

std::optional<Arrivals::Arrival> Arrivals::take(Purpose purpose, int from, int channel, int index) {
  const std::lock_guard lock(mutex_);
  const auto found = arrived_.find({purpose, from, channel, index});
  if (found == arrived_.end()) return std::nullopt;
  Entry& entry = found->second;
  if (entry.taken || (entry.upgrade && !entry.decided)) return std::nullopt;
  entry.taken = true;
  return Arrival{.socket = std::move(entry.socket), .upgrade = std::move(entry.upgrade)};
}

bool Arrivals::is_coming(int from, int channel) const {
  const std::lock_guard lock(mutex_);
  const auto found = arrived_.find({Purpose::data, from, channel, 0});
  return found != arrived_.end() && !found->second.taken && found->second.upgrade && !found->second.decided;
}

void Arrivals::hold_up(const std::optional<Error>& why) {
  const std::lock_guard lock(mutex_);
  held_up_ = why;
  if (why && bell_) bell_->ring(system_, /*oversubscribed=*/true);
}

std::optional<Error> Arrivals::held_up() const {
  const std::lock_guard lock(mutex_);
  return held_up_;
}

void Arrivals::wakes(std::shared_ptr<Doorbell> bell) {
  const std::lock_guard lock(mutex_);
  bell_ = std::move(bell);
}

void Arrivals::upgrade_by(Upgrader upgrader) {
  const std::lock_guard lock(mutex_);
  upgrader_ = std::move(upgrader);
  for (auto& [key, entry] : arrived_) begin_upgrade(entry);
}

bool Arrivals::advance() {
  const std::lock_guard lock(mutex_);
  if (!upgrader_) return false;  // the communicator is gone, and with it what upgrades need
  for (auto& [key, entry] : arrived_) {
    if (!entry.upgrade || entry.decided) continue;
    entry.decided = entry.upgrade->advance();
    if (entry.decided && bell_) bell_->ring(system_, /*oversubscribed=*/true);
  }
  return true;
}

std::int64_t Arrivals::poll_set(std::vector<PollItem>& items) {
  const std::lock_guard lock(mutex_);
  std::int64_t next = std::numeric_limits<std::int64_t>::max();
  for (const auto& [key, entry] : arrived_)
    if (entry.upgrade && !entry.decided) next = std::min(next, entry.upgrade->poll_set(items));
  return next;
}

}  // namespace tutti
