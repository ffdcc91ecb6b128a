#include "submit/ending.h"

#include <cstdint>
#include <utility>

#include "collective/mailbox.h"
#include "gpu/gpu_context.h"
#include "progress/drive.h"

namespace tutti {
namespace {

/// Waits until everything queued so far has ended or the communicator has failed.
void settle(Communicator& communicator) {
  Waiter waiter(communicator.process(), {}, communicator.members().while_waiting);
  while (!(communicator.idle() && communicator.device_idle()) && !communicator.failed()) {
    communicator.check_device();
    (void)waiter.pause();
  }
}

}  // namespace

Result<void> finish_calls(Communicator& communicator) {
  settle(communicator);
  if (!communicator.failed())
    if (auto alike = communicator.check_before_leaving(); !alike) communicator.fail(std::move(alike).error());
  if (!communicator.failed())
    if (auto received = check_all_received(communicator); !received) communicator.fail(std::move(received).error());
  if (!communicator.failed() || communicator.reported() || communicator.failure().code != Code::invalid_usage)
    return {};
  return communicator.report_failure();
}

void leave(Communicator& communicator) {
  constexpr std::int64_t limit_ns = 1'000'000'000;
  Process& process = communicator.process();
  if (auto* const background = communicator.background()) background->close();
  if (const auto watch = communicator.take_watch()) process.service.remove(watch.get());
  const std::int64_t deadline = process.system.now_ns() + limit_ns;
  while (!communicator.idle() && process.system.now_ns() < deadline) process.system.yield();
  communicator.channels().registered_ranges().disown();  // before the caller may free this memory
  if (auto* const context = gpu_context(communicator)) context->leave(communicator, communicator.idle());
}

}  // namespace tutti
