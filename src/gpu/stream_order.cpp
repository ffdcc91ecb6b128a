#include "gpu/stream_order.h"

namespace tutti {

std::shared_ptr<StreamOrder> StreamOrder::of(Directory& directory, std::uint32_t key, int ranks) {
  return directory.find_or_make<StreamOrder>(key, [&] { return std::make_shared<StreamOrder>(ranks); });
}

void StreamOrder::enter(Rank rank) {
  const std::lock_guard lock(mutex_);
  member(rank).driver = std::this_thread::get_id();
}

std::uint64_t StreamOrder::collective(Rank rank, bool host_staged) {
  const std::lock_guard lock(mutex_);
  Member& own = member(rank);
  own.driver = std::this_thread::get_id();
  ++own.calls;
  if (host_staged) own.unqueued.push_back(own.calls);
  return own.calls;
}

void StreamOrder::queued(Rank rank) {
  const std::lock_guard lock(mutex_);
  member(rank).unqueued.pop_front();
}

bool StreamOrder::has_queued(Rank rank, std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const Member& other = member(rank);
  return other.calls >= number && (other.unqueued.empty() || other.unqueued.front() > number);
}

void StreamOrder::sent(Rank from, Rank to) {
  const std::lock_guard lock(mutex_);
  member(from).driver = std::this_thread::get_id();
  ++sent_[pair(from, to)];
}

bool StreamOrder::has_sent(Rank from, Rank to, std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return sent_[pair(from, to)] >= number;
}

bool StreamOrder::driven_here(Rank rank) const {
  const std::lock_guard lock(mutex_);
  return member(rank).driver == std::this_thread::get_id();
}

}  // namespace tutti
