#include "comm/comm_failure.h"

namespace tutti {

Error CommFailure::error() const {
  const std::lock_guard lock(mutex_);
  return *error_;
}

void CommFailure::note_loss(Error error, bool at_rest) {
  const std::lock_guard lock(mutex_);
  if (loss_) return;
  if (at_rest) lost_at_rest_.store(true, std::memory_order_relaxed);
  loss_ = std::make_unique<Error>(std::move(error));
}

std::optional<Error> CommFailure::error_or_loss() const {
  const std::lock_guard lock(mutex_);
  if (error_) return *error_;
  if (loss_) return *loss_;
  return std::nullopt;
}

std::optional<Error> CommFailure::leave() {
  auto known = error_or_loss();
  if (known) left_after_loss_ = true;
  return known;
}

}  // namespace tutti
