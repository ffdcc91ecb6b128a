#include "submit/ending.h"

#include <cstdint>
#include <utility>

#include "collective/mailbox.h"
#include "comm/descriptor_watch.h"
#include "gpu/gpu_context.h"
#include "progress/drive.h"

namespace tutti {
namespace {

/// Waits until everything queued so far has ended or the communicator has failed.
void settle(Communicator& communicator) {
  Waiter waiter(communicator.process(), {}, communicator.members().while_waiting);
  const auto* const device = communicator.device();
  while (!(communicator.order().idle() && (device == nullptr || device->idle())) && !communicator.failed()) {
    communicator.check_device();
    (void)waiter.pause();
  }
}

}  // namespace

Result<void> finish_calls(Communicator& communicator) {
  settle(communicator);
  if (!communicator.failed())
    if (auto alike = check_before_leaving(communicator); !alike) communicator.fail(std::move(alike).error());
  if (!communicator.failed())
    if (auto received = check_all_received(communicator); !received) communicator.fail(std::move(received).error());
  if (!communicator.failed() || communicator.failure().reported() ||
      communicator.failure().error().code != Code::invalid_usage)
    return {};
  return communicator.report_failure();
}

void leave(Communicator& communicator) {
  constexpr std::int64_t limit_ns = 1'000'000'000;
  Process& process = communicator.process();
  if (auto* const background = communicator.beside_calls().background()) background->close();
  if (const auto watch = communicator.beside_calls().take_watch()) process.service.remove(watch.get());
  const std::int64_t deadline = process.system.now_ns() + limit_ns;
  while (!communicator.order().idle() && process.system.now_ns() < deadline) process.system.yield();
  communicator.links().channels().registered_ranges().disown();  // before the caller may free this memory
  if (auto* const context = gpu_context(communicator)) context->leave(communicator, communicator.order().idle());
}

}  // namespace tutti
