#include "submit/submit_call.h"

#include <optional>

#include "gpu/device_arguments.h"
#include "gpu/gpu_context.h"
#include "gpu/host_staged_call.h"
#include "gpu/released_call.h"
#include "submit/blocking_call.h"
#include "submit/group.h"
#include "submit/route.h"

namespace tutti {
namespace {

/// Device memory needs a cudaStream_t, host memory a tuttiStream_t. Errors: invalid_argument.
Result<void> check_fit(const Communicator& communicator, bool on_device, const CallStream& stream) {
  if (on_device && stream.host != nullptr)
    return invalid_argument("the buffers are device memory, and stream is a tuttiStream_t: they need a cudaStream_t");
  if (on_device || stream.gpu == nullptr) return {};
  return invalid_argument(
      communicator.device() == nullptr
          ? "stream is not a stream, or was destroyed"
          : "the buffers are host memory, and stream is not a tuttiStream_t: a cudaStream_t goes with device "
            "memory");
}

/// Sets the request's route and its stream. Errors: as is_on_device; invalid_argument.
template <class R>
Result<void> find_route(const Communicator& communicator, R& request, const CallStream& stream) {
  const RoutedCall call = RoutedCall::of(request);
  const RouteFacts facts = route_facts(communicator);
  request.route = route(call, /*on_device=*/false, facts);
  if (request.route.path == Path::nothing) return {};
  bool on_device = false;
  if (communicator.device() != nullptr) {
    on_device = TUTTI_TRY(is_on_device(communicator, request, stream.gpu != nullptr));
    if (on_device) request.route = route(call, on_device, facts);
  }
  request.stream = stream.gpu;
  return check_fit(communicator, on_device, stream);
}

/// Makes what carries the request out while its stream waits. Errors: as GpuPeers::prepare.
Result<void> make_queued(Communicator& communicator, Request& request) {
  const GpuContext& context = *gpu_context(communicator);
  auto* const stream = static_cast<cuda::Stream>(request.stream);
  if (request.route.path == Path::released) {
    auto setup = TUTTI_TRY(context.staging.peers().prepare(communicator, request));
    request.queued = std::make_shared<ReleasedCall>(context.staging.pool(), stream, std::move(setup));
    return {};
  }
  request.queued = std::make_shared<HostStagedCall>(
      context.staging.pool(), stream, host_staged_buffers(request, communicator.rank(), communicator.ranks()));
  return {};
}

Result<void> make_queued(Communicator& communicator, PeerRequest& request) {
  request.queued =
      std::make_shared<HostStagedCall>(gpu_context(communicator)->staging.pool(),
                                       static_cast<cuda::Stream>(request.stream), host_staged_buffers(request));
  return {};
}

/// Checks what the route asks for, and makes what the call needs. Errors: as check_routed, make_queued; the
/// communicator's failure.
template <class R>
Result<void> prepare(Communicator& communicator, R& request) {
  TUTTI_TRY(check_routed(communicator, request));
  communicator.check_device();
  // Kernels have no number by which to know whether a rank that is gone had completed theirs.
  if (request.route.one_kernel() && !communicator.failed())
    if (auto lost = communicator.failure().error_or_loss()) communicator.fail(*std::move(lost));
  if (communicator.failed()) return communicator.report_failure();
  if (!request.route.queued()) return {};
  GpuContext& context = *gpu_context(communicator);
  TUTTI_TRY(context.staging.make(communicator.process(), context));
  return make_queued(communicator, request);
}

template <class R>
Result<void> start(const std::shared_ptr<Communicator>& communicator, const R& request, const CallStream& stream) {
  if (Group::open()) return Group::current().add(communicator, stream.host, request);
  const auto of_one = [&request](auto batch) {
    batch->add(request);
    return Submission::of(std::move(batch));
  };
  Submission submission = request.route.queued() ? of_one(std::make_unique<HostStagedBatch>(communicator))
                                                 : of_one(std::make_unique<Batch>(communicator));
  if (stream.host == nullptr) return run_now(communicator->process(), submission);
  stream.host->push(std::move(submission));
  return {};
}

}  // namespace

/// Not inlined: what it needs room for would cost the smallest calls, which do without it.
[[gnu::noinline]] Result<void> submit(const std::shared_ptr<Communicator>& communicator, Request& request,
                                      const CallStream& stream) {
  std::optional<Uncancelled> whole;  // calls inside a host come to no cancellation point
  if (communicator->members().spans_hosts() || communicator->device() != nullptr) whole.emplace();
  TUTTI_TRY(find_route(*communicator, request, stream));
  if (request.route.path == Path::nothing) return {};
  if (request.route.on_device()) {
    TUTTI_TRY(check_device_call(*communicator, request));
    TUTTI_TRY(prepare(*communicator, request));
  }
  if (stream.host != nullptr || Group::open() || request.route.queued()) return start(communicator, request, stream);
  if (auto* const device = communicator->device()) device->count(request);
  return request.route.on_device() ? run_in_turn(*communicator, request) : run_alone(*communicator, request);
}

Result<void> submit(const std::shared_ptr<Communicator>& communicator, PeerRequest& request, const CallStream& stream) {
  TUTTI_TRY(find_route(*communicator, request, stream));
  if (request.route.path == Path::nothing) return {};
  if (request.route.on_device()) TUTTI_TRY(prepare(*communicator, request));
  return start(communicator, request, stream);
}

Result<void> check_on_host(const Communicator& communicator, const void* buffer) {
  if (!TUTTI_TRY(is_on_device(communicator, buffer))) return {};
  return invalid_argument(
      "the buffer is device memory: messages with tags are for host memory; use tuttiSend and tuttiRecv");
}

}  // namespace tutti
