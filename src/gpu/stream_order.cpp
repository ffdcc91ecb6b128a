#include "gpu/stream_order.h"

#include <fmt/format.h>

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

Error waits_for_own_thread(Rank rank, Rank missing, std::int64_t waited_ns) {
  return {.code = Code::timeout,
          .what = fmt::format(
              "rank {} waited {:.1f} s for rank {}, which this thread drives too: ranks that share a GPU make a call "
              "together, so wrap the calls of one thread in tuttiGroupStart and tuttiGroupEnd",
              rank, static_cast<double>(waited_ns) * 1e-9, missing),
          .peer = missing};
}

}  // namespace tutti
