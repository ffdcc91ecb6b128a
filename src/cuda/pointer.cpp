#include "cuda/pointer.h"

#include <array>

#include <fmt/format.h>

namespace tutti::cuda {
namespace {

std::string_view name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::host: return "host";
    case MemoryKind::device: return "device";
    case MemoryKind::managed: return "managed";
  }
  return "unknown";
}

/// Errors: invalid_argument (memory of another GPU), cuda.
Result<MemoryKind> kind_of(const Gpu& gpu, const void* pointer, std::string_view argument) {
  auto facts = TUTTI_TRY(query_pointer(gpu.driver(), pointer));
  if (facts.kind == MemoryKind::device && facts.device != gpu.ordinal())
    return invalid_argument(fmt::format("{} is memory of GPU {}, but this rank of the communicator is on GPU {}",
                                        argument, facts.device, gpu.ordinal()));
  return facts.kind;
}

}  // namespace

Result<PointerFacts> query_pointer(const Driver& driver, const void* pointer) {
  unsigned type = 0;
  unsigned managed = 0;  // the driver writes one byte or four
  int device = -1;
  std::array<int, 3> wanted{pointer_attribute::memory_type, pointer_attribute::is_managed,
                            pointer_attribute::device_ordinal};
  std::array<void*, 3> values{&type, &managed, &device};
  const Status status =
      driver.api.pointer_attributes(3, wanted.data(), values.data(), reinterpret_cast<Address>(pointer));
  if (status == status::invalid_value) return PointerFacts{};  // some drivers return this for memory they do not know
  TUTTI_TRY(driver.check(status, "cuPointerGetAttributes"));
  if (managed != 0) return PointerFacts{.kind = MemoryKind::managed, .device = device};
  if (type == memory_type_device) return PointerFacts{.kind = MemoryKind::device, .device = device};
  return PointerFacts{};
}

Result<bool> on_gpu(const Gpu& gpu, const void* sendbuff, const void* recvbuff) {
  if (sendbuff == nullptr || recvbuff == nullptr || sendbuff == recvbuff) {
    const void* const only = sendbuff != nullptr ? sendbuff : recvbuff;
    auto kind = TUTTI_TRY(kind_of(gpu, only, sendbuff != nullptr ? "sendbuff" : "recvbuff"));
    return kind != MemoryKind::host;
  }
  auto send = TUTTI_TRY(kind_of(gpu, sendbuff, "sendbuff"));
  auto recv = TUTTI_TRY(kind_of(gpu, recvbuff, "recvbuff"));
  if ((send == MemoryKind::host) != (recv == MemoryKind::host))
    return invalid_argument(
        fmt::format("sendbuff is {} memory and recvbuff is {} memory: both buffers of a call must be host memory, or "
                    "both GPU memory",
                    name(send), name(recv)));
  return send != MemoryKind::host;
}

Result<void> check_stream(const Gpu& gpu, Stream stream) {
  constexpr std::uintptr_t special = 2;  // null, legacy, per thread
  if (reinterpret_cast<std::uintptr_t>(stream) <= special) return {};
  Context context = nullptr;
  const Status status = gpu.api().stream_context(stream, &context);
  if (status == status::invalid_handle || status == status::invalid_context)
    return invalid_argument("stream is not a cudaStream_t, or was destroyed");
  TUTTI_TRY(gpu.check(status, "cuStreamGetCtx"));
  if (context == gpu.context()) return {};
  Ordinal device = -1;
  Context before = nullptr;
  if (gpu.api().context_push(context) == status::success) {
    (void)gpu.api().context_device(&device);
    (void)gpu.api().context_pop(&before);
  }
  if (device == gpu.ordinal()) return {};  // another context of the same GPU: work queued there can be waited for
  return invalid_argument(
      fmt::format("stream is of GPU {}, but this rank of the communicator is on GPU {}", device, gpu.ordinal()));
}

}  // namespace tutti::cuda
