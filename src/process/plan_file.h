// The plan of TUTTI_PLAN_FILE: which calls it serves, and how.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "plan/plan.h"
#include "plan/schedule.h"

namespace tutti {

/// Proven when it was read; not changed since.
class PlanFile {
 public:
  /// Reads MSCCL XML or MSCCL++ JSON. Errors: system; invalid_argument (names the file, the place in it, and the wrong
  /// rank, step and block).
  static Result<std::shared_ptr<const PlanFile>> read(const std::string& path);

  const std::string& name() const { return name_; }  ///< reported as the algorithm: "plan file ring"
  const Schedule& schedule() const { return schedule_; }
  bool rank_order() const { return rank_order_; }
  std::uint64_t digest() const { return digest_; }  ///< of the bytes of the file; ranks compare it

  /// Whether calls of this shape use the plan when the largest buffer of a rank has `bytes`.
  bool serves(const Shape& shape, std::size_t bytes) const;
  /// Always true for slots.
  bool carried_by(Access access) const { return carried_by_[static_cast<std::size_t>(access)]; }
  /// "all_reduce of 4 ranks, 3 steps"
  std::string text() const;

 private:
  explicit PlanFile(Schedule schedule) : schedule_(std::move(schedule)) {}

  Schedule schedule_;
  std::string name_;
  std::uint64_t digest_ = 0;
  std::uint64_t bytes_min_ = 0;
  std::uint64_t bytes_max_ = 0;
  bool rank_order_ = false;
  std::array<bool, 4> carried_by_{};
};

}  // namespace tutti
