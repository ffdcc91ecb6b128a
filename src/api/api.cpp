// The C functions that move data: check, convert, call, translate the error.
#include <fmt/format.h>

#include "api/api_submit.h"
#include "call/arguments.h"

namespace tutti::api {
namespace {

/// Not inlined: its arguments come in registers, where each C function of its own would store them for the lambda.
/// `op` is an int: what a user passes may be no value of tuttiRedOp_t, and std::optional would read it as one.
[[gnu::noinline]] tuttiResult_t collective(tuttiComm_t comm, tuttiStream_t stream, Request request, int type,
                                           std::optional<int> op = {}) {
  // Latency matters most for small calls in shared memory. Their wait contains no cancellation point, so they need no
  // Uncancelled; run_in_turn and submit have one for the others.
  return guarded_but_for_cancellation([&] {
    return or_refuse([&]() -> Result<void> {
      auto entry = TUTTI_TRY(use(comm));
      TUTTI_TRY(set_type_and_op(request, type, op, *entry));
      const Communicator& communicator = *entry->communicator;
      TUTTI_TRY(check_arguments(request, communicator.rank(), communicator.ranks()));
      return start(*entry, stream, request);
    }());
  });
}

/// Prefixes have no common number of inputs to divide by.
tuttiResult_t prefix(tuttiComm_t comm, tuttiStream_t stream, const Request& request, int type, tuttiRedOp_t op) {
  if (op != tuttiAvg) return collective(comm, stream, request, type, static_cast<int>(op));
  return guarded_in_group([&]() -> Result<void> {
    return invalid_argument(
        fmt::format("tuttiAvg is not an operator of a prefix reduction ({}): each rank's result combines "
                    "another number of inputs",
                    name(request.collective)));
  });
}

tuttiResult_t peer(tuttiComm_t comm, tuttiStream_t stream, PeerRequest request, std::size_t count, int type) {
  return guarded_in_group([&]() -> Result<void> {
    auto entry = TUTTI_TRY(use(comm));
    request.type = TUTTI_TRY(data_type(type));
    request.bytes = count * size_of(request.type);
    auto& communicator = entry->communicator;
    TUTTI_TRY(check_arguments(request, count, communicator->ranks()));
    if (communicator->failed()) return communicator->report_failure();
    return submit(communicator, request, TUTTI_TRY(named(stream)));
  });
}

}  // namespace
}  // namespace tutti::api

using namespace tutti;       // NOLINT: the definitions below are the C functions of tutti.h
using namespace tutti::api;  // NOLINT

tuttiResult_t tuttiAllReduce(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type, tuttiRedOp_t op,
                             tuttiComm_t comm, tuttiStream_t stream) {
  return collective(comm, stream, request_of(Collective::all_reduce, sendbuff, recvbuff, count), type,
                    static_cast<int>(op));
}

tuttiResult_t tuttiReduce(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type, tuttiRedOp_t op,
                          int root, tuttiComm_t comm, tuttiStream_t stream) {
  return collective(comm, stream, request_of(Collective::reduce, sendbuff, recvbuff, count, root), type,
                    static_cast<int>(op));
}

tuttiResult_t tuttiBroadcast(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type, int root,
                             tuttiComm_t comm, tuttiStream_t stream) {
  return collective(comm, stream, request_of(Collective::broadcast, sendbuff, recvbuff, count, root), type);
}

tuttiResult_t tuttiAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, tuttiDataType_t type,
                             tuttiComm_t comm, tuttiStream_t stream) {
  return collective(comm, stream, request_of(Collective::all_gather, sendbuff, recvbuff, sendcount), type);
}

tuttiResult_t tuttiReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, tuttiDataType_t type,
                                 tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream) {
  return collective(comm, stream, request_of(Collective::reduce_scatter, sendbuff, recvbuff, recvcount), type,
                    static_cast<int>(op));
}

tuttiResult_t tuttiAllToAll(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type, tuttiComm_t comm,
                            tuttiStream_t stream) {
  return collective(comm, stream, request_of(Collective::all_to_all, sendbuff, recvbuff, count), type);
}

tuttiResult_t tuttiGather(const void* sendbuff, void* recvbuff, size_t sendcount, tuttiDataType_t type, int root,
                          tuttiComm_t comm, tuttiStream_t stream) {
  return collective(comm, stream, request_of(Collective::gather, sendbuff, recvbuff, sendcount, root), type);
}

tuttiResult_t tuttiScatter(const void* sendbuff, void* recvbuff, size_t recvcount, tuttiDataType_t type, int root,
                           tuttiComm_t comm, tuttiStream_t stream) {
  return collective(comm, stream, request_of(Collective::scatter, sendbuff, recvbuff, recvcount, root), type);
}

tuttiResult_t tuttiScan(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type, tuttiRedOp_t op,
                        tuttiComm_t comm, tuttiStream_t stream) {
  return prefix(comm, stream, request_of(Collective::scan, sendbuff, recvbuff, count), type, op);
}

tuttiResult_t tuttiExScan(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type, tuttiRedOp_t op,
                          tuttiComm_t comm, tuttiStream_t stream) {
  return prefix(comm, stream, request_of(Collective::ex_scan, sendbuff, recvbuff, count), type, op);
}

tuttiResult_t tuttiBarrier(tuttiComm_t comm, tuttiStream_t stream) {
  return collective(comm, stream, {.collective = Collective::barrier}, tuttiUint8);
}

tuttiResult_t tuttiSend(const void* sendbuff, size_t count, tuttiDataType_t type, int to, tuttiComm_t comm,
                        tuttiStream_t stream) {
  return peer(comm, stream, {.send = true, .data = bytes(const_cast<void*>(sendbuff)), .peer = to}, count, type);
}

tuttiResult_t tuttiRecv(void* recvbuff, size_t count, tuttiDataType_t type, int from, tuttiComm_t comm,
                        tuttiStream_t stream) {
  return peer(comm, stream, {.send = false, .data = bytes(recvbuff), .peer = from}, count, type);
}

tuttiResult_t tuttiGroupStart(void) {
  Group::current().start();
  return tuttiSuccess;
}

tuttiResult_t tuttiGroupEnd(void) {
  return guarded([]() -> Result<void> {
    auto process = TUTTI_TRY(Process::get());
    return Group::current().end(*process);
  });
}
