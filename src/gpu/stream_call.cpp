#include "gpu/stream_call.h"

namespace tutti {

StreamCall::~StreamCall() {
  StreamCall::give_up();
  StreamCall::finish();
}

/// finish() sets finished_ and then reads begun_; this function sets begun_ and then reads finished_. So at least one
/// of both sees the other, and the buffer is released.
Result<bool> StreamCall::take_buffer(std::uint64_t batch, bool signals) {
  auto buffer = TUTTI_TRY(pool_->lease(host_bytes(), batch));
  if (buffer == nullptr) return false;
  buffer_ = std::move(buffer);
  signals_ = signals;
  begun_.store(true, std::memory_order_seq_cst);
  if (finished_.load(std::memory_order_seq_cst)) finish();
  return true;
}

Result<bool> StreamCall::queue_input(std::uint64_t batch) {
  const auto current = TUTTI_TRY(cuda::Current::enter(gpu()));
  if (auto can = ready(); !can || !*can) return can;
  if (auto taken = take_buffer(batch, /*signals=*/true); !taken || !*taken) return taken;
  TUTTI_TRY(queue_before_signal());
  TUTTI_TRY(buffer_->signal(stream_));
  return true;
}

Result<bool> StreamCall::queue_nothing(std::uint64_t batch) {
  const auto current = TUTTI_TRY(cuda::Current::enter(gpu()));
  return take_buffer(batch, /*signals=*/false);
}

Result<void> StreamCall::queue_output() {
  const auto current = TUTTI_TRY(cuda::Current::enter(gpu()));
  TUTTI_TRY(queue_before_wait());
  TUTTI_TRY(buffer_->await(stream_));
  TUTTI_TRY(queue_after_wait());
  sealed_ = true;
  return buffer_->seal(stream_);
}

void StreamCall::give_up() {
  if (!buffer_ || sealed_) return;
  sealed_ = true;
  if (auto current = cuda::Current::enter(gpu())) (void)buffer_->seal(stream_);
}

void StreamCall::finish() {
  finished_.store(true, std::memory_order_seq_cst);
  if (begun_.load(std::memory_order_seq_cst) && !released_.exchange(true, std::memory_order_acq_rel))
    buffer_->release();
}

}  // namespace tutti
