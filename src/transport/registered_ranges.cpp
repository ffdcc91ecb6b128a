#include "transport/registered_ranges.h"

#include <functional>

namespace tutti {

std::uint64_t RegisteredRanges::add(std::span<std::byte> memory) {
  const std::lock_guard lock(mutex_);
  ranges_.emplace(++last_, memory);
  count_.store(ranges_.size(), std::memory_order_release);
  return last_;
}

bool RegisteredRanges::remove(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (ranges_.erase(id) == 0) return false;
  count_.store(ranges_.size(), std::memory_order_release);
  removals_.fetch_add(1, std::memory_order_release);
  return true;
}

std::optional<RegisteredRanges::Range> RegisteredRanges::find(std::span<const std::byte> memory) const {
  if (count_.load(std::memory_order_acquire) == 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, range] : ranges_)
    if (!std::less<>()(memory.data(), range.data()) &&
        !std::less<>()(range.data() + range.size(), memory.data() + memory.size()))
      return Range{id, range};
  return std::nullopt;
}

bool RegisteredRanges::has(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  return ranges_.contains(id);
}

}  // namespace tutti
