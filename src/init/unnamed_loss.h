// Waits for the name of a lost rank where what is known first is only that something failed.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "base/system.h"
#include "call/operation.h"

namespace tutti {

/// The ranks that meet know each other by their places in the new communicator, and not all of them see who was lost:
/// where the root was in the lost rank's process, it is the root that they miss. Where one that waited has left because
/// of the loss, others may miss that one first.
class UnnamedLoss {
 public:
  explicit UnnamedLoss(System& system) : system_(system) {}

  /// A lost member may be the cause of this error, the first of its kind.
  void note(const Error& error) {
    error_ = error;
    noted_ns_ = system_.now_ns();
  }
  bool noted() const { return error_.has_value(); }

  /// Requires that an error was noted. `seen`: what is known of the members. Blocked while that may yet name one, and
  /// then, or when nobody is named in time, that error or the noted one.
  Result<Progress> name(const Result<void>& seen) const {
    if (!seen) return seen.error();
    if (system_.now_ns() - noted_ns_ >= limit_ns) return *error_;
    return Progress::blocked;
  }

 private:
  static constexpr std::int64_t limit_ns = 2'000'000'000;  // for the end of a member to be seen

  System& system_;
  std::optional<Error> error_;
  std::int64_t noted_ns_ = 0;
};

}  // namespace tutti
