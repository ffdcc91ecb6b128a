// The C functions about memory, host streams and operators.
#include <cstring>

#include <fmt/format.h>

#include "api/api_support.h"
#include "call/arguments.h"

using namespace tutti;       // NOLINT: the definitions below are the C functions of tutti.h
using namespace tutti::api;  // NOLINT

tuttiResult_t tuttiMemAlloc(void** ptr, size_t bytes) {
  return guarded([&]() -> Result<void> {
    if (auto given = not_null(ptr, "ptr"); !given) return given;
    auto process = Process::get();
    if (!process) return std::move(process).error();
    auto memory = (*process)->allocate(bytes == 0 ? 1 : bytes, /*touch=*/true);
    if (!memory) return std::move(memory).error();
    *ptr = *memory;
    return {};
  });
}

tuttiResult_t tuttiMemAllocDevice(void** ptr, size_t bytes, int device) {
  return guarded([&]() -> Result<void> {
    if (auto given = not_null(ptr, "ptr"); !given) return given;
    auto process = Process::get();
    if (!process) return std::move(process).error();
    auto memory = (*process)->gpus.allocate(device, bytes == 0 ? 1 : bytes);
    if (!memory) return std::move(memory).error();
    *ptr = *memory;
    return {};
  });
}

tuttiResult_t tuttiMemFree(void* ptr) {
  return guarded([&]() -> Result<void> {
    if (ptr == nullptr) return {};
    auto process = Process::get();
    if (!process) return std::move(process).error();
    if ((*process)->gpus.free(static_cast<std::byte*>(ptr))) return {};
    return (*process)->segments.free(static_cast<std::byte*>(ptr));
  });
}

tuttiResult_t tuttiCommRegister(tuttiComm_t comm, void* buff, size_t bytes, void** handle) {
  return guarded([&]() -> Result<void> {
    if (auto given = not_null(buff, "buff"); !given) return given;
    if (auto given = not_null(handle, "handle"); !given) return given;
    auto entry = use(comm);
    if (!entry) return std::move(entry).error();
    if (bytes == 0) return Error{.code = Code::invalid_argument, .what = "bytes is 0: there is nothing to register"};
    RegisteredRanges& ranges = (*entry)->communicator->channels().registered_ranges();
    *handle = reinterpret_cast<void*>(ranges.add({static_cast<std::byte*>(buff), bytes}));
    return {};
  });
}

tuttiResult_t tuttiCommDeregister(tuttiComm_t comm, void* handle) {
  return guarded([&]() -> Result<void> {
    auto entry = use(comm);
    if (!entry) return std::move(entry).error();
    if (!(*entry)->communicator->channels().registered_ranges().remove(reinterpret_cast<std::uint64_t>(handle)))
      return Error{.code = Code::invalid_argument,
                   .what = "handle is not from tuttiCommRegister on this communicator, or was already deregistered"};
    return {};
  });
}

tuttiResult_t tuttiStreamCreate(tuttiStream_t* stream) {
  return guarded([&]() -> Result<void> {
    if (auto given = not_null(stream, "stream"); !given) return given;
    auto process = Process::get();
    if (!process) return std::move(process).error();
    auto made = std::make_shared<Stream>(**process);
    if (auto started = made->start(); !started) return started;
    void* const handle = streams().open(std::move(made));
    if (handle == nullptr) return Error{.code = Code::system, .what = "more than 65536 streams"};
    *stream = static_cast<tuttiStream_t>(handle);
    return {};
  });
}

namespace {

template <class Ask>
tuttiResult_t on_stream(tuttiStream_t stream, Ask&& ask) {
  return guarded([&]() -> Result<void> {
    if (auto given = not_null(stream, "stream"); !given) return given;
    auto known = use(stream);
    if (!known) return std::move(known).error();
    return ask(**known);
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
    if (callback == nullptr) return Error{.code = Code::invalid_argument, .what = "callback is NULL"};
    s.push([callback, context](const Error* first) {
      callback(context, first == nullptr ? tuttiSuccess : static_cast<tuttiResult_t>(first->code));
    });
    return {};
  });
}

tuttiResult_t tuttiStreamDestroy(tuttiStream_t stream) {
  return guarded([&]() -> Result<void> {
    auto process = Process::get();
    if (!process) return std::move(process).error();
    constexpr std::int64_t limit_ns = 1'000'000'000;
    auto closed = streams().close((*process)->system, stream, limit_ns);
    if (!closed)
      return Error{.code = Code::invalid_argument, .what = "stream is not a stream, or was destroyed already"};
    return {};
  });
}

tuttiResult_t tuttiRedOpCreatePreMulSum(tuttiRedOp_t* op, void* scalar, tuttiDataType_t type,
                                        tuttiScalarResidence_t residence, tuttiComm_t comm) {
  return guarded([&]() -> Result<void> {
    if (auto given = not_null(op, "op"); !given) return given;
    if (auto given = not_null(scalar, "scalar"); !given) return given;
    if (residence != tuttiScalarHostImmediate && residence != tuttiScalarDevice)
      return Error{.code = Code::invalid_argument,
                   .what = fmt::format("residence {} is not a tuttiScalarResidence_t", static_cast<int>(residence))};
    auto known = data_type(type);
    if (!known) return std::move(known).error();
    auto entry = use(comm);
    if (!entry) return std::move(entry).error();
    UserOp made{.type = *known, .scalar = 0};
    std::memcpy(&made.scalar, scalar, size_of(*known));
    *op = static_cast<tuttiRedOp_t>((*entry)->next_op++);
    (*entry)->user_ops[*op] = made;
    return {};
  });
}

tuttiResult_t tuttiRedOpDestroy(tuttiRedOp_t op, tuttiComm_t comm) {
  return guarded([&]() -> Result<void> {
    auto entry = use(comm);
    if (!entry) return std::move(entry).error();
    if ((*entry)->user_ops.erase(op) == 0)
      return Error{.code = Code::invalid_argument,
                   .what = fmt::format("op {} was not made by tuttiRedOpCreatePreMulSum on this communicator",
                                       static_cast<int>(op))};
    return {};
  });
}
