// Calls in a communicator with a GPU: what memory and which stream they name, and what is refused.
#include <fmt/format.h>

#include "comm/api_submit.h"
#include "comm/layout.h"
#include "cuda/pointer.h"
#include "plan/schedule.h"

namespace tutti::api {
namespace {

Error refused(Code code, std::string what) {
  return {.code = code, .what = std::move(what)};
}

bool is_host_stream(tuttiStream_t stream) {
  return HandleTable<Stream>::is_handle(stream);
}

/// The buffers that the call looks at on this rank; null: none.
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
  return cuda::on_gpu(*communicator.gpu()->gpu, buffers.send, buffers.recv);
}

/// Kernels reduce whole elements. A GPU that meets one across their boundary breaks the process's context for good.
Result<void> check_alignment(const Request& request, const Buffers& buffers) {
  const std::size_t bytes = size_of(request.type);
  if (!reduces(request.collective)) return {};
  for (const auto& [buffer, name] : {std::pair{buffers.send, "sendbuff"}, std::pair{buffers.recv, "recvbuff"}})
    if (reinterpret_cast<std::uintptr_t>(buffer) % bytes != 0)
      return refused(
          Code::invalid_argument,
          fmt::format("{} is device memory at {}, no multiple of the {} bytes of an element: reductions on a "
                      "GPU need that",
                      name, buffer, bytes));
  return {};
}

/// It would be the launching thread's, whose else.
Result<void> check_stream(const GpuSeat& seat, const Request& request, int ranks) {
  if (reinterpret_cast<std::uintptr_t>(request.gpu_stream) == cuda::stream_per_thread && ranks > 1)
    return refused(Code::invalid_argument,
                   "stream is cudaStreamPerThread, another one in every thread: ranks that share a GPU are launched by "
                   "any of their threads, so each needs a stream of its own, or the default one");
  return cuda::check_stream(*seat.gpu, request.gpu_stream);
}

Result<void> start_on_gpu(CommEntry& entry, const Request& request) {
  auto& communicator = entry.communicator;
  communicator->look_at_gpu();
  if (communicator->failed()) return communicator->failure();
  if (Group::current().open()) return Group::current().add(communicator, nullptr, request);
  auto batch = std::make_unique<Batch>(communicator);
  batch->add(request);
  batch->enqueue();
  Submission submission;
  submission.operations.push_back(std::move(batch));
  return run_now(communicator->process(), submission);
}

}  // namespace

Result<void> start_beside_gpu(CommEntry& entry, tuttiStream_t stream, Request request) {
  const auto& communicator = *entry.communicator;
  const GpuSeat& seat = *communicator.gpu();
  // Nothing tells then what memory was meant, and ranks may have meant different ones.
  if (request.count == 0 && !request.layout && request.collective != Collective::barrier) return {};
  auto on_gpu = goes_to_gpu(request, communicator, stream);
  if (!on_gpu) return std::move(on_gpu).error();
  if (!*on_gpu) {
    if (stream == nullptr || is_host_stream(stream)) return start_on_host(entry, stream, request);
    return refused(Code::invalid_argument,
                   "the buffers are host memory, and stream is not a tuttiStream_t: a cudaStream_t goes with device "
                   "memory");
  }
  if (is_host_stream(stream))
    return refused(Code::invalid_argument,
                   "the buffers are device memory, and stream is a tuttiStream_t: they need a cudaStream_t");
  if (request.layout) return refused(Code::invalid_usage, "calls with a count per rank take host memory only, so far");
  if (!seat.team)
    return refused(Code::invalid_usage,
                   "calls on device memory need all ranks of the communicator in one process, so far");
  request.on_gpu = true;
  request.gpu_stream = reinterpret_cast<cuda::Stream>(stream);
  if (auto fits = check_stream(seat, request, communicator.ranks()); !fits) return fits;
  if (auto fits = check_alignment(request, buffers_of(request, communicator.rank(), communicator.ranks())); !fits)
    return fits;
  return start_on_gpu(entry, request);
}

Result<void> check_on_host(const CommEntry& entry, const void* buffer, const char* call) {
  const GpuSeat* const seat = entry.communicator->gpu();
  if (seat == nullptr || buffer == nullptr) return {};
  auto facts = cuda::look_at(seat->gpu->driver(), buffer);
  if (!facts) return std::move(facts).error();
  if (facts->kind != cuda::MemoryKind::device) return {};
  return refused(Code::invalid_usage, fmt::format("{} takes host memory only, so far", call));
}

}  // namespace tutti::api
