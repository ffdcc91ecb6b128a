// The key that distinguishes the plans of one communicator.
#pragma once

#include <cstddef>
#include <functional>

#include "plan/plan.h"

namespace tutti {

struct PlanKey {
  const void* algorithm = nullptr;  ///< null: the plan of TUTTI_PLAN_FILE
  Collective collective = Collective::barrier;
  Access access = Access::slots;
  Rank root = 0;
  bool operator==(const PlanKey&) const = default;
};

struct PlanKeyHash {
  std::size_t operator()(const PlanKey& key) const {
    const auto small = static_cast<std::size_t>(key.root) << 8 | static_cast<std::size_t>(key.collective) << 4 |
                       static_cast<std::size_t>(key.access);
    return std::hash<const void*>{}(key.algorithm) ^ (small * 0x9e37'79b9'7f4a'7c15u);
  }
};

}  // namespace tutti
