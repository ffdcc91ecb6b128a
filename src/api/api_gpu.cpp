// Calls in a communicator with a GPU: classifies their memory and stream, and refuses invalid combinations.
#include <fmt/format.h>

#include "api/api_submit.h"
#include "call/layout.h"
#include "cuda/pointer.h"
#include "gpu/gpu_call.h"
#include "gpu/gpu_context.h"
#include "gpu/gpu_messages.h"
#include "gpu/gpu_peers.h"
#include "plan/schedule.h"

namespace tutti::api {
namespace {

Error refused(Code code, std::string what) {
  return {.code = code, .what = std::move(what)};
}

bool is_host_stream(tuttiStream_t stream) {
  return HandleTable<Stream>::is_handle(stream);
}

/// The buffers that the call uses on this rank; null: unused.
struct Buffers {
  const void* send = nullptr;
  const void* recv = nullptr;
};

Buffers buffers_of(const Request& request, Rank rank, int ranks) {
  if (request.layout)
    return {.send = request.layout->input_elements > 0 ? request.input : nullptr,
            .recv = request.layout->output_elements > 0 ? request.output : nullptr};
  const bool sends = input_groups(request.collective, ranks, rank, request.root) > 0;
  const bool receives = output_groups(request.collective, ranks, rank, request.root) > 0;
  return {.send = sends ? request.input : nullptr, .recv = receives ? request.output : nullptr};
}

Result<bool> goes_to_gpu(const Request& request, const Communicator& communicator, tuttiStream_t stream) {
  const Buffers buffers = buffers_of(request, communicator.rank(), communicator.ranks());
  if (request.collective == Collective::barrier || (buffers.send == nullptr && buffers.recv == nullptr))
    return stream != nullptr && !is_host_stream(stream);
  return cuda::on_gpu(*gpu_context(communicator)->gpu, buffers.send, buffers.recv);
}

/// Kernels reduce whole elements. A misaligned element breaks the process's CUDA context permanently.
Result<void> check_alignment(const Request& request, const Buffers& buffers) {
  const std::size_t bytes = size_of(request.type);
  if (!reduces(request.collective)) return {};
  for (const auto& [buffer, name] : {std::pair{buffers.send, "sendbuff"}, std::pair{buffers.recv, "recvbuff"}})
    if (reinterpret_cast<std::uintptr_t>(buffer) % bytes != 0)
      return refused(Code::invalid_argument, fmt::format("{} is device memory at {}, not a multiple of the {} bytes of "
                                                         "an element: pass a buffer aligned to its elements",
                                                         name, buffer, bytes));
  return {};
}

/// cudaStreamPerThread names the stream of the thread that queues: in a launch of several ranks perhaps another rank's
/// thread, in all other calls the one that makes the call.
Result<void> check_launch_stream(const GpuContext& context, cuda::Stream stream) {
  const bool alone = context.launch_group->is_alone();
  if (reinterpret_cast<std::uintptr_t>(stream) == cuda::stream_per_thread && !alone)
    return refused(Code::invalid_argument,
                   "stream is cudaStreamPerThread, a different stream in every thread, but any thread of the ranks "
                   "that share a GPU may launch their kernels: create a stream per rank, or use the default stream");
  return cuda::check_stream(*context.gpu, stream);
}

/// Device memory needs a cudaStream_t, host memory a tuttiStream_t. Errors: invalid_argument.
Result<void> check_fit(bool on_gpu, tuttiStream_t stream) {
  if (on_gpu && is_host_stream(stream))
    return refused(Code::invalid_argument,
                   "the buffers are device memory, and stream is a tuttiStream_t: they need a cudaStream_t");
  if (!on_gpu && stream != nullptr && !is_host_stream(stream))
    return refused(Code::invalid_argument,
                   "the buffers are host memory, and stream is not a tuttiStream_t: a cudaStream_t goes with device "
                   "memory");
  return {};
}

/// GPUs have kernels for some types and operators alone, and all calls on device memory take the same, also those that
/// go through the host.
Result<void> check_device_reduction(const Request& request) {
  if (!reduces(request.collective)) return {};
  if (prefixes(request.collective))
    return refused(Code::invalid_argument,
                   "the buffers are device memory, and prefix reductions (tuttiScan, "
                   "tuttiExScan) are for host memory: copy the buffers to the host");
  if (static_cast<int>(request.type) >= device_type_count)
    return refused(Code::invalid_argument, fmt::format("the buffers are device memory, and the type is {}: reductions "
                                                       "of that type are for host memory",
                                                       name(request.type)));
  if (static_cast<int>(request.op) >= device_op_count)
    return refused(Code::invalid_argument, fmt::format("the buffers are device memory, and the operator is {}: "
                                                       "reductions by that operator are for host memory",
                                                       name(request.op)));
  return {};
}

/// A captured graph is replayed by the GPU alone, so it cannot contain a call that needs the host.
Result<void> check_not_captured(const cuda::Gpu& gpu, cuda::Stream stream) {
  const auto current = TUTTI_TRY(cuda::Current::enter(gpu));
  int state = cuda::capture_none;
  const cuda::Status asked = gpu.api().capture_info(stream, &state, nullptr, nullptr, nullptr, nullptr);
  TUTTI_TRY(gpu.check(asked, "cuStreamGetCaptureInfo"));
  if (state == cuda::capture_none) return {};
  return refused(Code::invalid_usage,
                 "the stream is captured, and this call goes through the host, which a replayed graph does not call: "
                 "not all ranks share one GPU and process, and their kernels do not wait for each other; or "
                 "it has a count per rank, which kernels serve between several processes or GPUs alone; or it is a "
                 "send or receive, which kernels serve where every rank has a GPU of its own; or TUTTI_GPU_STAGED is "
                 "always");
}

/// Whether kernels that reach peers' memory serve the call. All ranks agree: the size of a group is equal on all.
bool goes_to_peers(const Request& request, const GpuContext& context) {
  if (request.layout || request.collective == Collective::barrier) return false;
  return context.reaches_peers && request.group_bytes() >= context.peer_bytes_min;
}

template <class R>
Result<void> start_on_gpu(CommEntry& entry, const R& request) {
  auto& communicator = entry.communicator;
  communicator->check_device();
  // Kernels have no number by which to know whether a rank that is gone had completed theirs.
  if (auto lost = communicator->first_error(); lost && !communicator->failed()) communicator->fail(*std::move(lost));
  if (communicator->failed()) return communicator->report_failure();
  if (Group::current().open()) {
    if (request.device->takes_turn()) return Group::current().add(communicator, nullptr, request);
    Group::current().add_kernel(communicator, request);
    return {};
  }
  Submission submission = Submission::of(std::make_unique<Batch>(communicator, request));
  return run_now(communicator->process(), submission);
}

/// Starts a call that the host carries out: by copies through bounce buffers, or by kernels that reach peers' memory
/// and start when the host releases them.
template <class R>
Result<void> start_host_staged(CommEntry& entry, const R& request, cuda::Stream stream) {
  const auto& communicator = entry.communicator;
  GpuContext& context = *gpu_context(*communicator);
  TUTTI_TRY(cuda::check_stream(*context.gpu, stream));
  TUTTI_TRY(check_not_captured(*context.gpu, stream));
  communicator->check_device();
  if (communicator->failed()) return communicator->report_failure();
  TUTTI_TRY(context.ready_to_stage(communicator->process()));
  auto call = TUTTI_TRY(stage(*communicator, request, stream));
  if (Group::current().open()) return Group::current().add_host_staged(communicator, request, call);
  auto batch = std::make_unique<HostStagedBatch>(communicator);
  batch->add(request, call);
  Submission submission = Submission::of(std::move(batch));
  return run_now(communicator->process(), submission);
}

}  // namespace

Result<void> start_beside_gpu(CommEntry& entry, tuttiStream_t stream, Request request) {
  const auto& communicator = *entry.communicator;
  GpuContext& context = *gpu_context(communicator);
  auto on_gpu = TUTTI_TRY(goes_to_gpu(request, communicator, stream));
  TUTTI_TRY(check_fit(on_gpu, stream));
  if (on_gpu) TUTTI_TRY(check_device_reduction(request));
  if (on_gpu && request.output_aside(communicator.rank()))
    return refused(Code::invalid_argument,
                   "recvbuff is sendbuff: with the result at the start of its input, a reduce-scatter takes host "
                   "memory; in device memory recvbuff must be block `rank` of sendbuff, or lie apart from it");
  if (!on_gpu) {
    if (stream == nullptr && !Group::current().open()) {
      context.count_collective();
      context.note_host();
    }
    return start_on_host(entry, stream, request);
  }
  auto* const gpu_stream = reinterpret_cast<cuda::Stream>(stream);
  const bool launches = context.launches(request);
  if (!launches && goes_to_peers(request, context)) {
    TUTTI_TRY(check_alignment(request, buffers_of(request, communicator.rank(), communicator.ranks())));
    request.form = Form::device;
    return start_host_staged(entry, request, gpu_stream);
  }
  if (!launches) return start_host_staged(entry, request, gpu_stream);
  TUTTI_TRY(check_launch_stream(context, gpu_stream));
  TUTTI_TRY(check_alignment(request, buffers_of(request, communicator.rank(), communicator.ranks())));
  request.device = std::make_shared<KernelCall>(gpu_stream, context.launch_group->is_single_launch());
  return start_on_gpu(entry, request);
}

Result<void> check_on_host(const Communicator& communicator, const void* buffer) {
  const GpuContext* const context = gpu_context(communicator);
  if (context == nullptr || buffer == nullptr) return {};
  auto found = TUTTI_TRY(cuda::on_gpu(*context->gpu, buffer, nullptr));
  if (found)
    return refused(Code::invalid_argument,
                   "the buffer is device memory: messages with tags are for host memory; use tuttiSend and tuttiRecv");
  return {};
}

Result<bool> start_peer_on_gpu(CommEntry& entry, tuttiStream_t stream, PeerRequest request) {
  const GpuContext* const context = gpu_context(*entry.communicator);
  if (context == nullptr) return false;
  // As in collectives; and the kind of memory, by which both ranks must do the same, may be unknown.
  if (context->serves_messages && request.bytes == 0) return true;
  bool on_gpu = stream != nullptr && !is_host_stream(stream);
  if (request.data != nullptr) {
    auto found =
        cuda::on_gpu(*context->gpu, request.send ? request.data : nullptr, request.send ? nullptr : request.data);
    if (!found) return std::move(found).error();
    on_gpu = *found;
  }
  TUTTI_TRY(check_fit(on_gpu, stream));
  if (!on_gpu) return false;
  if (context->serves_messages) {
    auto* const gpu_stream = reinterpret_cast<cuda::Stream>(stream);
    TUTTI_TRY(check_launch_stream(*context, gpu_stream));
    request.device = std::make_shared<KernelMessage>(gpu_stream);
    TUTTI_TRY(start_on_gpu(entry, request));
    return true;
  }
  TUTTI_TRY(start_host_staged(entry, request, reinterpret_cast<cuda::Stream>(stream)));
  return true;
}

}  // namespace tutti::api
