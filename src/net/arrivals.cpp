#include "net/arrivals.h"

namespace tutti {

bool Arrivals::may_come(const Greeting& greeting) const {
  const bool data = greeting.purpose == Purpose::data;
  const bool fits = greeting.to == bounds_.rank && greeting.from > bounds_.rank && greeting.from < bounds_.ranks &&
                    greeting.channel < (data ? bounds_.channels : 1) && greeting.index < (data ? bounds_.sockets : 1);
  if (!fits || greeting.communicator != key_.communicator) return false;
  const std::lock_guard lock(mutex_);
  const auto known = arrived_.find(key_of(greeting));
  return known == arrived_.end() || known->second;
}

void Arrivals::put(const Greeting& greeting, Socket socket) {
  const std::lock_guard lock(mutex_);
  const auto [entry, fresh] = arrived_.try_emplace(key_of(greeting));
  if (!fresh && !entry->second) return;  // already taken
  entry->second = std::move(socket);
  if (bell_) bell_->ring(system_, /*oversubscribed=*/true);
}

std::optional<Socket> Arrivals::take(Purpose purpose, int from, int channel, int index) {
  const std::lock_guard lock(mutex_);
  const auto entry = arrived_.find({purpose, from, channel, index});
  if (entry == arrived_.end() || !entry->second) return std::nullopt;
  return std::exchange(entry->second, Socket());
}

void Arrivals::wakes(std::shared_ptr<Doorbell> bell) {
  const std::lock_guard lock(mutex_);
  bell_ = std::move(bell);
}

}  // namespace tutti
