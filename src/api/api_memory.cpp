// The C functions about memory, host streams and operators.
#include <cstring>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "api/api_support.h"
#include "call/arguments.h"

using namespace tutti;       // NOLINT: the definitions below are the C functions of tutti.h
using namespace tutti::api;  // NOLINT

tuttiResult_t tuttiMemAlloc(void** ptr, size_t bytes) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(ptr, "ptr"));
    auto process = TUTTI_TRY(Process::get());
    *ptr = TUTTI_TRY(process->memory.allocate(bytes == 0 ? 1 : bytes, /*touch=*/true));
    return {};
  });
}

tuttiResult_t tuttiMemAllocDevice(void** ptr, size_t bytes, int device) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(ptr, "ptr"));
    auto process = TUTTI_TRY(Process::get());
    *ptr = TUTTI_TRY(process->gpus.allocate(device, bytes == 0 ? 1 : bytes));
    return {};
  });
}

tuttiResult_t tuttiMemFree(void* ptr) {
  return guarded([&]() -> Result<void> {
    if (ptr == nullptr) return {};
    auto process = TUTTI_TRY(Process::get());
    if (process->gpus.free(static_cast<std::byte*>(ptr))) return {};
    return process->memory.segments.free(static_cast<std::byte*>(ptr));
  });
}

namespace {

/// With TUTTI_REGISTER=mapped. Memory that cannot be adopted stays ordinary, which only costs time.
std::optional<AdoptedMemory> adopt(const Communicator& communicator, std::span<std::byte> memory) {
  Process& process = communicator.process();
  if (process.config.text("TUTTI_REGISTER") != "mapped") return std::nullopt;
  auto adopted = AdoptedMemory::adopt(process.memory.segments, memory);
  if (adopted) return *std::move(adopted);
  process.log.info(LogTopic::alloc, communicator.members().who, "tuttiCommRegister: {}", adopted.error().text());
  return std::nullopt;
}

}  // namespace

tuttiResult_t tuttiCommRegister(tuttiComm_t comm, void* buff, size_t bytes, void** handle) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(buff, "buff"));
    TUTTI_TRY(not_null(handle, "handle"));
    auto entry = TUTTI_TRY(use(comm));
    if (bytes == 0) return invalid_argument("bytes is 0: there is nothing to register");
    RegisteredRanges& ranges = entry->communicator->links().channels().registered_ranges();
    const std::span memory(static_cast<std::byte*>(buff), bytes);
    *handle = reinterpret_cast<void*>(ranges.add(memory, adopt(*entry->communicator, memory)));
    return {};
  });
}

tuttiResult_t tuttiCommDeregister(tuttiComm_t comm, void* handle) {
  return guarded([&]() -> Result<void> {
    auto entry = TUTTI_TRY(use(comm));
    const auto id = reinterpret_cast<std::uint64_t>(handle);
    if (!entry->communicator->links().channels().registered_ranges().remove(id))
      return invalid_argument("handle is not from tuttiCommRegister on this communicator, or was already deregistered");
    return {};
  });
}

tuttiResult_t tuttiStreamCreate(tuttiStream_t* stream) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(stream, "stream"));
    auto process = TUTTI_TRY(Process::get());
    auto made = std::make_shared<Stream>(*process);
    TUTTI_TRY(made->start());
    void* const handle = handles<Stream>().open(std::move(made));
    if (handle == nullptr) return Error{.code = Code::system, .what = "more than 65536 streams"};
    *stream = static_cast<tuttiStream_t>(handle);
    return {};
  });
}

namespace {

template <class Ask>
tuttiResult_t on_stream(tuttiStream_t stream, Ask&& ask) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(stream, "stream"));
    auto known = TUTTI_TRY(use(stream));
    return ask(*known);
  });
}

}  // namespace

tuttiResult_t tuttiStreamSynchronize(tuttiStream_t stream) {
  return on_stream(stream, [](Stream& s) { return s.synchronize(); });
}

tuttiResult_t tuttiStreamQuery(tuttiStream_t stream) {
  bool idle = true;
  const auto result = on_stream(stream, [&idle](Stream& s) -> Result<void> {
    idle = s.idle();
    return idle ? s.take_error() : Result<void>();
  });
  return result == tuttiSuccess && !idle ? tuttiInProgress : result;
}

tuttiResult_t tuttiStreamAddCallback(tuttiStream_t stream, void (*callback)(void* context, tuttiResult_t result),
                                     void* context) {
  return on_stream(stream, [&](Stream& s) -> Result<void> {
    if (callback == nullptr) return invalid_argument("callback is NULL");
    s.push([callback, context](const Error* first) {
      callback(context, first == nullptr ? tuttiSuccess : static_cast<tuttiResult_t>(first->code));
    });
    return {};
  });
}

tuttiResult_t tuttiStreamDestroy(tuttiStream_t stream) {
  return guarded([&]() -> Result<void> {
    auto process = TUTTI_TRY(Process::get());
    if (!handles<Stream>().close(process->system, stream))
      return invalid_argument("stream is not a stream, or was destroyed already");
    return {};
  });
}

tuttiResult_t tuttiRedOpCreatePreMulSum(tuttiRedOp_t* op, void* scalar, tuttiDataType_t type,
                                        tuttiScalarResidence_t residence, tuttiComm_t comm) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(op, "op"));
    TUTTI_TRY(not_null(scalar, "scalar"));
    if (residence != tuttiScalarHostImmediate && residence != tuttiScalarDevice)
      return invalid_argument(fmt::format("residence {} is not a tuttiScalarResidence_t", static_cast<int>(residence)));
    auto known = TUTTI_TRY(data_type(type));
    if (!applies(ReduceOp::pre_mul_sum, known))
      return invalid_argument(fmt::format("there are no pre-multiplied sums of {}", name(known)));
    auto entry = TUTTI_TRY(use(comm));
    UserOp made{.type = known, .scalar = 0};
    std::memcpy(&made.scalar, scalar, size_of(known));
    *op = static_cast<tuttiRedOp_t>(entry->next_op++);
    entry->user_ops[*op] = made;
    return {};
  });
}

tuttiResult_t tuttiRedOpCreate(tuttiRedOp_t* op, tuttiRedOpFunction_t function, void* context, tuttiDataType_t type,
                               tuttiComm_t comm) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(op, "op"));
    if (function == nullptr) return invalid_argument("function is NULL");
    auto known = TUTTI_TRY(data_type(type));
    auto entry = TUTTI_TRY(use(comm));
    // An enumeration without negative values is passed like an unsigned.
    using Combine = decltype(UserFunction::combine);
    const UserFunction own{.combine = reinterpret_cast<Combine>(function), .context = context};
    *op = static_cast<tuttiRedOp_t>(entry->next_op++);
    entry->user_ops[*op] = {.type = known, .function = own};
    return {};
  });
}

tuttiResult_t tuttiRedOpDestroy(tuttiRedOp_t op, tuttiComm_t comm) {
  return guarded([&]() -> Result<void> {
    auto entry = TUTTI_TRY(use(comm));
    if (entry->user_ops.erase(op) == 0)
      return invalid_argument(
          fmt::format("op {} was not made by tuttiRedOpCreatePreMulSum or tuttiRedOpCreate on this communicator",
                      static_cast<int>(op)));
    return {};
  });
}
