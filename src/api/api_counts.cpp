// The C functions of collectives with a count per rank, and tuttiScatterGather.
#include "api/api_submit.h"
#include "call/arguments.h"
#include "call/layout.h"
#include "collective/scatter_gather.h"

namespace tutti::api {
namespace {

tuttiResult_t with_counts(tuttiComm_t comm, tuttiStream_t stream, Request request, int type, const Counts& send,
                          const Counts& recv, std::optional<int> op = {}) {
  return guarded([&]() -> Result<void> {
    auto entry = use(comm);
    if (!entry) return or_refuse(std::move(entry).error());
    if (auto set = set_type_and_op(request, type, op, **entry); !set) return or_refuse(std::move(set));
    const auto& communicator = *(*entry)->communicator;
    auto laid_out = lay_out(request, communicator.rank(), communicator.ranks(), send, recv);
    return or_refuse(laid_out ? start(**entry, stream, request) : std::move(laid_out));
  });
}

/// Runs an equivalent collective if there is one, otherwise an all-to-all with a count per rank.
Result<void> scatter_gather(CommEntry& entry, tuttiStream_t stream, Request request, const ScatterGather& call) {
  const auto& communicator = *entry.communicator;
  const Rank rank = communicator.rank();
  const int ranks = communicator.ranks();
  if (auto checked = check_lists(call, ranks); !checked) return checked;
  if (const auto known = amounts_to(call, ranks)) {
    request.collective = known->collective;
    request.count = known->count;
    request.root = known->root;
    auto checked = check_arguments(request, rank, ranks);
    return checked ? start(entry, stream, request) : std::move(checked);
  }
  const Exchanged all = exchanged(call, rank, ranks);
  request.collective = Collective::all_to_all;
  auto laid_out = lay_out(request, rank, ranks, {all.send_counts.data(), all.send_at.data()},
                          {all.recv_counts.data(), all.recv_at.data()});
  if (!laid_out) return laid_out;
  request.form = Form::scatter_gather;
  request.count = call.unit;
  request.lists = fingerprint(call);
  return start(entry, stream, request);
}

/// Errors: invalid_argument.
Result<std::span<const int>> list(const int* ranks, int count, const char* name) {
  if (count < 0)
    return Error{.code = Code::invalid_argument, .what = std::string("the number of ") + name + " is negative"};
  if (auto given = not_null(ranks, name); !given) return std::move(given).error();
  return std::span(ranks, static_cast<std::size_t>(count));
}

}  // namespace
}  // namespace tutti::api

using namespace tutti;       // NOLINT: the definitions below are the C functions of tutti.h
using namespace tutti::api;  // NOLINT

tuttiResult_t tuttiAllGatherV(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t* recvcounts,
                              const size_t* rdispls, tuttiDataType_t type, tuttiComm_t comm, tuttiStream_t stream) {
  return with_counts(comm, stream,
                     {.collective = Collective::all_gather, .input = bytes(sendbuff), .output = bytes(recvbuff)}, type,
                     {&sendcount, nullptr}, {recvcounts, rdispls});
}

tuttiResult_t tuttiReduceScatterV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
                                  size_t recvcount, tuttiDataType_t type, tuttiRedOp_t op, tuttiComm_t comm,
                                  tuttiStream_t stream) {
  return with_counts(comm, stream,
                     {.collective = Collective::reduce_scatter, .input = bytes(sendbuff), .output = bytes(recvbuff)},
                     type, {sendcounts, sdispls}, {&recvcount, nullptr}, static_cast<int>(op));
}

tuttiResult_t tuttiAllToAllV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
                             const size_t* recvcounts, const size_t* rdispls, tuttiDataType_t type, tuttiComm_t comm,
                             tuttiStream_t stream) {
  return with_counts(comm, stream,
                     {.collective = Collective::all_to_all, .input = bytes(sendbuff), .output = bytes(recvbuff)}, type,
                     {sendcounts, sdispls}, {recvcounts, rdispls});
}

tuttiResult_t tuttiGatherV(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t* recvcounts,
                           const size_t* rdispls, tuttiDataType_t type, int root, tuttiComm_t comm,
                           tuttiStream_t stream) {
  return with_counts(
      comm, stream,
      {.collective = Collective::gather, .input = bytes(sendbuff), .output = bytes(recvbuff), .root = root}, type,
      {&sendcount, nullptr}, {recvcounts, rdispls});
}

tuttiResult_t tuttiScatterV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
                            size_t recvcount, tuttiDataType_t type, int root, tuttiComm_t comm, tuttiStream_t stream) {
  return with_counts(
      comm, stream,
      {.collective = Collective::scatter, .input = bytes(sendbuff), .output = bytes(recvbuff), .root = root}, type,
      {sendcounts, sdispls}, {&recvcount, nullptr});
}

tuttiResult_t tuttiScatterGather(const void* sendbuff, void* recvbuff, const int* sources, int nsources,
                                 const int* destinations, int ndestinations, size_t unitcount, size_t totalcount,
                                 tuttiDataType_t type, tuttiComm_t comm, tuttiStream_t stream) {
  return guarded([&]() -> Result<void> {
    auto entry = use(comm);
    if (!entry) return or_refuse(std::move(entry).error());
    Request request{.input = bytes(sendbuff), .output = bytes(recvbuff)};
    if (auto set = set_type_and_op(request, type, {}, **entry); !set) return or_refuse(std::move(set));
    auto from = list(sources, nsources, "sources");
    if (!from) return or_refuse(std::move(from).error());
    auto to = list(destinations, ndestinations, "destinations");
    if (!to) return or_refuse(std::move(to).error());
    const ScatterGather call{.sources = *from, .destinations = *to, .unit = unitcount, .total = totalcount};
    return or_refuse(scatter_gather(**entry, stream, request, call));
  });
}
