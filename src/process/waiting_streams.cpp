#include "process/waiting_streams.h"

namespace tutti {

std::shared_ptr<const void> WaitingStreams::enter(Log& log, std::string_view who) {
  auto entered = count_;
  constexpr long with_itself = 2;  // and the one that is kept here
  if (one_queue_ && entered.use_count() > with_itself && !told_.exchange(true))
    log.warn(
        who,
        "CUDA_DEVICE_MAX_CONNECTIONS is 1: all streams share one queue, so a stream that waits in a call on device "
        "memory holds up the others. With several communicators, ranks must make all their calls in one order, "
        "or they hang; unset the variable to be free of this");
  return entered;
}

}  // namespace tutti
