// Numbers for the blocks that a plan's passes touch, so that what is known of a block is found at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "plan/plan.h"

namespace tutti {

/// Every place of a plan, numbered by the memory that it names.
class PlaceNumbers {
 public:
  explicit PlaceNumbers(const Plan& plan);

  /// By index of the place in the plan. Two places have one number exactly if they are the same memory: one block, or
  /// an input and an output that share it when their rank works in place.
  std::size_t memory(std::size_t place) const { return names_[place] / 2; }
  /// As memory(), but an input and an output that share memory in place have different numbers.
  std::size_t name(std::size_t place) const { return names_[place]; }
  /// All numbers are less.
  std::size_t memories() const { return count_; }
  std::size_t names() const { return 2 * count_; }

 private:
  std::size_t number(const Plan& plan, const Place& place);
  std::size_t far_number(Rank owner, Where buffer, int block);

  std::size_t inputs_ = 0;
  std::size_t outputs_ = 0;
  std::size_t count_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> far_;  // by owner, buffer and block
  std::vector<std::size_t> names_;
};

}  // namespace tutti
