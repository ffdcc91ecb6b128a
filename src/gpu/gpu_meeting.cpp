#include "gpu/gpu_meeting.h"

namespace tutti {

std::shared_ptr<GpuMeeting> GpuMeeting::of(Directory& directory, std::uint32_t key, int ranks) {
  return directory.find_or_make<GpuMeeting>(key, [&] { return std::make_shared<GpuMeeting>(ranks); });
}

void GpuMeeting::enter(Rank rank) {
  const std::lock_guard lock(mutex_);
  seat(rank).driver = std::this_thread::get_id();
}

std::uint64_t GpuMeeting::collective(Rank rank, bool staged) {
  const std::lock_guard lock(mutex_);
  Seat& own = seat(rank);
  own.driver = std::this_thread::get_id();
  ++own.calls;
  if (staged) own.unqueued.push_back(own.calls);
  return own.calls;
}

void GpuMeeting::queued(Rank rank) {
  const std::lock_guard lock(mutex_);
  seat(rank).unqueued.pop_front();
}

bool GpuMeeting::has_queued(Rank rank, std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const Seat& other = seat(rank);
  return other.calls >= number && (other.unqueued.empty() || other.unqueued.front() > number);
}

void GpuMeeting::sent(Rank from, Rank to) {
  const std::lock_guard lock(mutex_);
  seat(from).driver = std::this_thread::get_id();
  ++sent_[pair(from, to)];
}

bool GpuMeeting::has_sent(Rank from, Rank to, std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return sent_[pair(from, to)] >= number;
}

bool GpuMeeting::driven_here(Rank rank) const {
  const std::lock_guard lock(mutex_);
  return seat(rank).driver == std::this_thread::get_id();
}

}  // namespace tutti
