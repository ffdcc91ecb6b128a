#include "gpu/device_arguments.h"

#include <fmt/format.h>

#include "call/layout.h"
#include "gpu/gpu_context.h"
#include "plan/schedule.h"

namespace tutti {
namespace {

/// The buffers that the call uses on this rank; null: unused.
struct UsedBuffers {
  const void* send = nullptr;
  const void* recv = nullptr;
};

UsedBuffers buffers_of(const Request& request, const Communicator& communicator) {
  const Rank rank = communicator.rank();
  const int ranks = communicator.ranks();
  if (request.layout)
    return {.send = request.layout->input_elements > 0 ? request.input : nullptr,
            .recv = request.layout->output_elements > 0 ? request.output : nullptr};
  const bool sends = input_groups(request.collective, ranks, rank, request.root) > 0;
  const bool receives = output_groups(request.collective, ranks, rank, request.root) > 0;
  return {.send = sends ? request.input : nullptr, .recv = receives ? request.output : nullptr};
}

/// Kernels reduce whole elements. A misaligned element breaks the process's CUDA context permanently.
Result<void> check_alignment(const Request& request, const UsedBuffers& buffers) {
  const std::size_t bytes = size_of(request.type);
  if (!reduces(request.collective)) return {};
  for (const auto& [buffer, name] : {std::pair{buffers.send, "sendbuff"}, std::pair{buffers.recv, "recvbuff"}})
    if (reinterpret_cast<std::uintptr_t>(buffer) % bytes != 0)
      return invalid_argument(
          fmt::format("{} is device memory at {}, not a multiple of the {} bytes of an element: pass a buffer aligned "
                      "to its elements",
                      name, buffer, bytes));
  return {};
}

/// GPUs have kernels for some types and operators alone, and all calls on device memory take the same, also those that
/// go through the host.
Result<void> check_device_reduction(const Request& request) {
  if (!reduces(request.collective)) return {};
  if (prefixes(request.collective))
    return invalid_argument(
        "the buffers are device memory, and prefix reductions (tuttiScan, tuttiExScan) are for host memory: copy the "
        "buffers to the host");
  if (static_cast<int>(request.type) >= device_type_count)
    return invalid_argument(
        fmt::format("the buffers are device memory, and the type is {}: reductions of that type are for host memory",
                    name(request.type)));
  if (static_cast<int>(request.op) >= device_op_count)
    return invalid_argument(
        fmt::format("the buffers are device memory, and the operator is {}: reductions by that operator are for host "
                    "memory",
                    name(request.op)));
  return {};
}

/// cudaStreamPerThread names the stream of the thread that queues: in a launch of several ranks perhaps another rank's
/// thread, in all other calls the one that makes the call.
Result<void> check_launch_stream(const GpuContext& context, cuda::Stream stream) {
  const bool alone = context.launch_group->is_alone();
  if (reinterpret_cast<std::uintptr_t>(stream) == cuda::stream_per_thread && !alone)
    return invalid_argument(
        "stream is cudaStreamPerThread, a different stream in every thread, but any thread of the ranks "
        "that share a GPU may launch their kernels: create a stream per rank, or use the default stream");
  return cuda::check_stream(*context.gpu, stream);
}

/// A captured graph is replayed by the GPU alone, so it cannot contain a call that needs the host.
Result<void> check_not_captured(const cuda::Gpu& gpu, cuda::Stream stream) {
  const auto current = TUTTI_TRY(cuda::Current::enter(gpu));
  int state = cuda::capture_none;
  const cuda::Status asked = gpu.api().capture_info(stream, &state, nullptr, nullptr, nullptr, nullptr);
  TUTTI_TRY(gpu.check(asked, "cuStreamGetCaptureInfo"));
  if (state == cuda::capture_none) return {};
  return Error{.code = Code::invalid_usage,
               .what =
                   "the stream is captured, and this call goes through the host, which a replayed graph does not call: "
                   "not all ranks share one GPU and process, and their kernels do not wait for each other; or "
                   "it has a count per rank, which kernels serve between several processes or GPUs alone; or it is a "
                   "send or receive, which kernels serve where every rank has a GPU of its own; or TUTTI_GPU_STAGED is "
                   "always"};
}

/// What all calls on a stream of this GPU ask for, whichever way they go.
Result<void> check_stream(const GpuContext& context, Route route, void* stream) {
  auto* const gpu_stream = static_cast<cuda::Stream>(stream);
  if (route.one_kernel()) return check_launch_stream(context, gpu_stream);
  TUTTI_TRY(cuda::check_stream(*context.gpu, gpu_stream));
  return check_not_captured(*context.gpu, gpu_stream);
}

}  // namespace

Result<bool> is_on_device(const Communicator& communicator, const Request& request, bool gpu_stream) {
  const UsedBuffers buffers = buffers_of(request, communicator);
  const cuda::Gpu& gpu = *gpu_context(communicator)->gpu;
  if (buffers.send != nullptr || buffers.recv != nullptr) return cuda::on_gpu(gpu, buffers.send, buffers.recv);
  if (gpu_stream || !request.layout) return gpu_stream;
  // A rank of a call with a count per rank that has no elements: what it passes all the same tells what it means.
  for (const void* const given : {static_cast<const void*>(request.input), static_cast<const void*>(request.output)})
    if (auto found = cuda::on_gpu(gpu, given, nullptr); given != nullptr && found && *found) return true;
  return false;
}

Result<bool> is_on_device(const Communicator& communicator, const PeerRequest& request, bool gpu_stream) {
  if (request.data == nullptr) return gpu_stream;
  return cuda::on_gpu(*gpu_context(communicator)->gpu, request.send ? request.data : nullptr,
                      request.send ? nullptr : request.data);
}

Result<bool> is_on_device(const Communicator& communicator, const void* buffer) {
  const GpuContext* const context = gpu_context(communicator);
  if (context == nullptr || buffer == nullptr) return false;
  return cuda::on_gpu(*context->gpu, buffer, nullptr);
}

Result<void> check_device_call(const Communicator& communicator, const Request& request) {
  TUTTI_TRY(check_device_reduction(request));
  if (!request.output_aside(communicator.rank())) return {};
  return invalid_argument(
      "recvbuff is sendbuff: with the result at the start of its input, a reduce-scatter takes host "
      "memory; in device memory recvbuff must be block `rank` of sendbuff, or lie apart from it");
}

Result<void> check_routed(const Communicator& communicator, const Request& request) {
  TUTTI_TRY(check_stream(*gpu_context(communicator), request.route, request.stream));
  if (request.route.path == Path::staged) return {};
  return check_alignment(request, buffers_of(request, communicator));
}

Result<void> check_routed(const Communicator& communicator, const PeerRequest& request) {
  return check_stream(*gpu_context(communicator), request.route, request.stream);
}

}  // namespace tutti
