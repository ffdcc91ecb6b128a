#include "init/phases/map_exchange.h"

#include <algorithm>

#include <fmt/format.h>

namespace tutti {

std::span<const std::byte> MapExchange::part(std::size_t bytes_max) {
  const auto next = std::span<const std::byte>(bytes_).subspan(told_, std::min(bytes_max, bytes_.size() - told_));
  told_ += next.size();
  return next;
}

Result<MapExchange> MapExchange::announced(std::size_t bytes, int ranks) {
  if (bytes > map_bytes_max(ranks))
    return remote_error(fmt::format("rank 0's map of the job: {} bytes for {} ranks", bytes, ranks));
  return MapExchange(bytes);
}

Result<void> MapExchange::take(std::span<const std::byte> part) {
  if (more() ? part.empty() || part.size() > announced_ - heard_.size() : !part.empty())
    return remote_error(fmt::format("rank 0's map of the job: a part of {} bytes where {} are left", part.size(),
                                    announced_ - heard_.size()));
  heard_.insert(heard_.end(), part.begin(), part.end());
  return {};
}

}  // namespace tutti
