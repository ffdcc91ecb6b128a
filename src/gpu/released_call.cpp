#include "gpu/released_call.h"

namespace tutti {

/// Between the caller's buffer and the buffer used in its place.
Result<void> ReleasedCall::copy_if_apart(std::byte* to, const std::byte* from, std::size_t bytes) const {
  return bytes == 0 || to == from ? Result<void>() : gpu().copy(to, from, bytes, stream());
}

Result<void> ReleasedCall::queue_before_signal() {
  TUTTI_TRY(setup_->of->take_turn(stream()));
  const PeerCallSetup::Side& input = setup_->input;
  return copy_if_apart(input.used, input.given, input.bytes);
}

Result<void> ReleasedCall::queue_before_wait() {
  for (std::uint32_t kernel = 1; kernel <= setup_->kernels.size(); ++kernel) {
    TUTTI_TRY(buffer().await(stream(), kernel));
    TUTTI_TRY(setup_->of->launch(*setup_, kernel, stream(), buffer().device_table()));
    TUTTI_TRY(buffer().signal(stream(), kernel));
  }
  return {};
}

Result<void> ReleasedCall::queue_after_wait() {
  const PeerCallSetup::Side& output = setup_->output;
  TUTTI_TRY(copy_if_apart(output.given, output.used, output.bytes));
  return setup_->of->end_turn(stream());
}

}  // namespace tutti
