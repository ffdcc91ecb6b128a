#include "transport/registered_ranges.h"

#include <algorithm>

namespace tutti {

std::uint64_t RegisteredRanges::add(std::span<std::byte> memory, std::optional<AdoptedMemory> adopted) {
  const std::lock_guard lock(mutex_);
  ranges_.emplace(++last_, memory);
  by_begin_.emplace(std::pair(memory.data(), last_), memory.size());
  longest_ = std::max(longest_, memory.size());
  count_.store(ranges_.size(), std::memory_order_release);
  if (adopted) adopted_.emplace(last_, *std::move(adopted));
  return last_;
}

bool RegisteredRanges::remove(std::uint64_t id) {
  adopted_.erase(id);
  const std::lock_guard lock(mutex_);
  const auto range = ranges_.find(id);
  if (range == ranges_.end()) return false;
  by_begin_.erase({range->second.data(), id});
  ranges_.erase(range);
  count_.store(ranges_.size(), std::memory_order_release);
  removals_.fetch_add(1, std::memory_order_release);
  return true;
}

/// Goes back from the last range that begins at or before the memory, as far as ranges can reach it.
std::optional<RegisteredRanges::Range> RegisteredRanges::find(std::span<const std::byte> memory) const {
  if (count_.load(std::memory_order_acquire) == 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  for (auto at = by_begin_.upper_bound({memory.data(), last_}); at != by_begin_.begin();) {
    --at;
    const std::size_t ahead = static_cast<std::size_t>(memory.data() - at->first.first);
    if (ahead + memory.size() <= at->second) return Range{at->first.second, ranges_.at(at->first.second)};
    if (ahead + memory.size() > longest_) break;
  }
  return std::nullopt;
}

bool RegisteredRanges::has(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  return ranges_.contains(id);
}

}  // namespace tutti
