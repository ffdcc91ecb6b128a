// How rank 0's map of the job gets to all ranks: behind its result, and where it is long in further exchanges.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "place/job_map.h"

namespace tutti {

/// On every rank. All ranks have the same blobs, so all agree on how many exchanges there are.
class MapExchange {
 public:
  /// Of rank 0: what it tells.
  explicit MapExchange(const JobMap& map) : bytes_(to_bytes(map)) {}
  /// Of rank 0, for its result.
  std::size_t bytes() const { return bytes_.size(); }
  /// Of rank 0: its next part, of at most so many bytes.
  std::span<const std::byte> part(std::size_t bytes_max);

  /// Of all ranks: what they have heard, of the length that the result has announced. Errors: remote (longer than any
  /// map of so many ranks).
  static Result<MapExchange> announced(std::size_t bytes, int ranks);
  /// A part; empty ones and more than was announced are refused. Errors: remote.
  Result<void> take(std::span<const std::byte> part);
  bool more() const { return heard_.size() < announced_; }
  /// Once there is no more. Errors: those of read_job_map.
  Result<JobMap> map(int ranks) const { return read_job_map(heard_, ranks); }

 private:
  explicit MapExchange(std::size_t announced) : announced_(announced) {}

  std::vector<std::byte> bytes_;  ///< of rank 0
  std::size_t told_ = 0;          ///< of them
  std::vector<std::byte> heard_;
  std::size_t announced_ = 0;
};

}  // namespace tutti
