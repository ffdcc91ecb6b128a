// The C functions of collectives with a count per rank, and tuttiScatterGather.
#include <fmt/format.h>

#include "api/api_submit.h"
#include "call/arguments.h"
#include "call/layout.h"
#include "call/scatter_gather.h"
#include "plan/schedule.h"

namespace tutti::api {
namespace {

tuttiResult_t with_counts(tuttiComm_t comm, tuttiStream_t stream, Request request, int type, const Counts& send,
                          const Counts& recv, std::optional<int> op = {}) {
  return guarded_in_group([&]() -> Result<void> {
    auto entry = TUTTI_TRY(use(comm));
    TUTTI_TRY(set_type_and_op(request, type, op, *entry));
    const Communicator& communicator = *entry->communicator;
    TUTTI_TRY(lay_out(request, communicator.rank(), communicator.ranks(), send, recv));
    return start(*entry, stream, request);
  });
}

/// The user's arguments for one buffer, as ints.
struct Counts32 {
  const int* counts = nullptr;
  const int* displacements = nullptr;
};

/// The same numbers as size_t, which is what all else takes.
class Widened {
 public:
  /// `groups`: how many counts there are. `side`: "send" or "recv". Displacements of empty blocks are ignored, as those
  /// of size_t are. Errors: invalid_argument (a negative number).
  static Result<Widened> of(const Counts32& given, int groups, const char* side) {
    Widened all;
    if (given.counts == nullptr) return all;  // which is an error if the rank needs them
    all.counts_.resize(static_cast<std::size_t>(groups));
    if (given.displacements != nullptr) all.displacements_.resize(all.counts_.size());
    for (std::size_t g = 0; g < all.counts_.size(); ++g) {
      if (given.counts[g] < 0) return negative(side, "counts", g, given.counts[g]);
      all.counts_[g] = static_cast<std::size_t>(given.counts[g]);
      if (all.displacements_.empty() || given.counts[g] == 0) continue;
      if (given.displacements[g] < 0) return negative(side, "displs", g, given.displacements[g]);
      all.displacements_[g] = static_cast<std::size_t>(given.displacements[g]);
    }
    return all;
  }
  Counts counts() const {
    return {.counts = counts_.empty() ? nullptr : counts_.data(),
            .displacements = displacements_.empty() ? nullptr : displacements_.data()};
  }

 private:
  static Error negative(const char* side, const char* what, std::size_t group, int value) {
    const std::string name = std::string(what) == "displs" ? std::string(1, side[0]) + what : std::string(side) + what;
    return {.code = Code::invalid_argument, .what = fmt::format("{}[{}] = {} is negative", name, group, value)};
  }

  std::vector<std::size_t> counts_, displacements_;
};

tuttiResult_t with_counts32(tuttiComm_t comm, tuttiStream_t stream, const Request& request, int type,
                            const Counts32& send, const Counts32& recv, std::optional<int> op = {}) {
  std::optional<Widened> sent, received;
  const auto read = guarded_in_group([&]() -> Result<void> {
    auto entry = TUTTI_TRY(use(comm));
    const Rank rank = entry->communicator->rank();
    const int ranks = entry->communicator->ranks();
    sent = TUTTI_TRY(Widened::of(send, input_groups(request.collective, ranks, rank, request.root), "send"));
    received = TUTTI_TRY(Widened::of(recv, output_groups(request.collective, ranks, rank, request.root), "recv"));
    return {};
  });
  if (read != tuttiSuccess) return read;
  return with_counts(comm, stream, request, type, sent->counts(), received->counts(), op);
}

/// Counts in bytes, from counts of elements with a type each. Errors: invalid_argument.
Result<std::vector<std::size_t>> in_bytes(const std::size_t* counts, const tuttiDataType_t* types, int groups,
                                          const char* side) {
  TUTTI_TRY(not_null(counts, fmt::format("{}counts", side).c_str()));
  TUTTI_TRY(not_null(types, fmt::format("{}types", side).c_str()));
  std::vector<std::size_t> bytes(static_cast<std::size_t>(groups));
  for (std::size_t g = 0; g < bytes.size(); ++g) {
    auto known = data_type(types[g]);
    if (!known) return std::move(known).error().during(fmt::format("{}types[{}]", side, g));
    if (__builtin_mul_overflow(counts[g], size_of(*known), &bytes[g]))
      return invalid_argument(fmt::format("{}counts[{}] = {} exceeds the address space", side, g, counts[g]));
  }
  return bytes;
}

/// Runs an equivalent collective if there is one, otherwise an all-to-all with a count per rank.
Result<void> scatter_gather(CommEntry& entry, tuttiStream_t stream, Request request, const ScatterGather& call) {
  const auto& communicator = *entry.communicator;
  const Rank rank = communicator.rank();
  const int ranks = communicator.ranks();
  TUTTI_TRY(check_lists(call, ranks));
  if (const auto known = amounts_to(call, ranks)) {
    request.collective = known->collective;
    request.count = known->count;
    request.root = known->root;
    TUTTI_TRY(check_arguments(request, rank, ranks));
    return start(entry, stream, request);
  }
  const Exchanged all = exchanged(call, rank, ranks);
  request.collective = Collective::all_to_all;
  TUTTI_TRY(lay_out(request, rank, ranks, {all.send_counts.data(), all.send_at.data()},
                    {all.recv_counts.data(), all.recv_at.data()}));
  request.form = Form::scatter_gather;
  request.count = call.unit;
  request.lists = fingerprint(call);
  return start(entry, stream, request);
}

/// Errors: invalid_argument.
Result<std::span<const int>> list(const int* ranks, int count, const char* name) {
  if (count < 0) return invalid_argument(std::string("the number of ") + name + " is negative");
  TUTTI_TRY(not_null(ranks, name));
  return std::span(ranks, static_cast<std::size_t>(count));
}

}  // namespace
}  // namespace tutti::api

using namespace tutti;       // NOLINT: the definitions below are the C functions of tutti.h
using namespace tutti::api;  // NOLINT

tuttiResult_t tuttiAllGatherV(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t* recvcounts,
                              const size_t* rdispls, tuttiDataType_t type, tuttiComm_t comm, tuttiStream_t stream) {
  return with_counts(comm, stream, request_of(Collective::all_gather, sendbuff, recvbuff), type, {&sendcount, nullptr},
                     {recvcounts, rdispls});
}

tuttiResult_t tuttiReduceScatterV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
                                  size_t recvcount, tuttiDataType_t type, tuttiRedOp_t op, tuttiComm_t comm,
                                  tuttiStream_t stream) {
  return with_counts(comm, stream, request_of(Collective::reduce_scatter, sendbuff, recvbuff), type,
                     {sendcounts, sdispls}, {&recvcount, nullptr}, static_cast<int>(op));
}

tuttiResult_t tuttiAllToAllV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
                             const size_t* recvcounts, const size_t* rdispls, tuttiDataType_t type, tuttiComm_t comm,
                             tuttiStream_t stream) {
  return with_counts(comm, stream, request_of(Collective::all_to_all, sendbuff, recvbuff), type, {sendcounts, sdispls},
                     {recvcounts, rdispls});
}

tuttiResult_t tuttiAllToAllW(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                             const tuttiDataType_t* sendtypes, void* recvbuff, const size_t* recvcounts,
                             const size_t* rdispls, const tuttiDataType_t* recvtypes, tuttiComm_t comm,
                             tuttiStream_t stream) {
  std::vector<std::size_t> sent, received;
  const auto read = guarded_in_group([&]() -> Result<void> {
    auto entry = TUTTI_TRY(use(comm));
    const int ranks = entry->communicator->ranks();
    sent = TUTTI_TRY(in_bytes(sendcounts, sendtypes, ranks, "send"));
    received = TUTTI_TRY(in_bytes(recvcounts, recvtypes, ranks, "recv"));
    return {};
  });
  if (read != tuttiSuccess) return read;
  return with_counts(comm, stream, request_of(Collective::all_to_all, sendbuff, recvbuff), tuttiUint8,
                     {sent.data(), sdispls}, {received.data(), rdispls});
}

tuttiResult_t tuttiGatherV(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t* recvcounts,
                           const size_t* rdispls, tuttiDataType_t type, int root, tuttiComm_t comm,
                           tuttiStream_t stream) {
  return with_counts(comm, stream, request_of(Collective::gather, sendbuff, recvbuff, /*count=*/0, root), type,
                     {&sendcount, nullptr}, {recvcounts, rdispls});
}

tuttiResult_t tuttiScatterV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
                            size_t recvcount, tuttiDataType_t type, int root, tuttiComm_t comm, tuttiStream_t stream) {
  return with_counts(comm, stream, request_of(Collective::scatter, sendbuff, recvbuff, /*count=*/0, root), type,
                     {sendcounts, sdispls}, {&recvcount, nullptr});
}

tuttiResult_t tuttiAllGatherV32(const void* sendbuff, int sendcount, void* recvbuff, const int* recvcounts,
                                const int* rdispls, tuttiDataType_t type, tuttiComm_t comm, tuttiStream_t stream) {
  return with_counts32(comm, stream, request_of(Collective::all_gather, sendbuff, recvbuff), type,
                       {&sendcount, nullptr}, {recvcounts, rdispls});
}

tuttiResult_t tuttiReduceScatterV32(const void* sendbuff, const int* sendcounts, const int* sdispls, void* recvbuff,
                                    int recvcount, tuttiDataType_t type, tuttiRedOp_t op, tuttiComm_t comm,
                                    tuttiStream_t stream) {
  return with_counts32(comm, stream, request_of(Collective::reduce_scatter, sendbuff, recvbuff), type,
                       {sendcounts, sdispls}, {&recvcount, nullptr}, static_cast<int>(op));
}

tuttiResult_t tuttiAllToAllV32(const void* sendbuff, const int* sendcounts, const int* sdispls, void* recvbuff,
                               const int* recvcounts, const int* rdispls, tuttiDataType_t type, tuttiComm_t comm,
                               tuttiStream_t stream) {
  return with_counts32(comm, stream, request_of(Collective::all_to_all, sendbuff, recvbuff), type,
                       {sendcounts, sdispls}, {recvcounts, rdispls});
}

tuttiResult_t tuttiGatherV32(const void* sendbuff, int sendcount, void* recvbuff, const int* recvcounts,
                             const int* rdispls, tuttiDataType_t type, int root, tuttiComm_t comm,
                             tuttiStream_t stream) {
  return with_counts32(comm, stream, request_of(Collective::gather, sendbuff, recvbuff, /*count=*/0, root), type,
                       {&sendcount, nullptr}, {recvcounts, rdispls});
}

tuttiResult_t tuttiScatterV32(const void* sendbuff, const int* sendcounts, const int* sdispls, void* recvbuff,
                              int recvcount, tuttiDataType_t type, int root, tuttiComm_t comm, tuttiStream_t stream) {
  return with_counts32(comm, stream, request_of(Collective::scatter, sendbuff, recvbuff, /*count=*/0, root), type,
                       {sendcounts, sdispls}, {&recvcount, nullptr});
}

tuttiResult_t tuttiScatterGather(const void* sendbuff, void* recvbuff, const int* sources, int nsources,
                                 const int* destinations, int ndestinations, size_t unitcount, size_t totalcount,
                                 tuttiDataType_t type, tuttiComm_t comm, tuttiStream_t stream) {
  return guarded_in_group([&]() -> Result<void> {
    auto entry = TUTTI_TRY(use(comm));
    Request request{.input = bytes(sendbuff), .output = bytes(recvbuff)};
    TUTTI_TRY(set_type_and_op(request, type, {}, *entry));
    ScatterGather call{.unit = unitcount, .total = totalcount};
    call.sources = TUTTI_TRY(list(sources, nsources, "sources"));
    call.destinations = TUTTI_TRY(list(destinations, ndestinations, "destinations"));
    return scatter_gather(*entry, stream, request, call);
  });
}
