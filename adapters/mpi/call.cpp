#include "adapters/mpi/call.h"

#include <algorithm>
#include <cstring>

namespace tutti::mpi {
namespace {

int combine(const Combination& combination, const std::byte* blocks) {
  if (combination.blocks == 0 || combination.count == 0) return MPI_SUCCESS;
  const auto block = [&](int i) { return blocks + static_cast<std::size_t>(i) * combination.block_bytes; };
  // MPI's order: the first rank's input stands leftmost.
  std::memcpy(combination.result, block(combination.blocks - 1), combination.block_bytes);
  for (int i = combination.blocks - 2; i >= 0; --i) {
    const int code = PMPI_Reduce_local(block(i), combination.result, static_cast<int>(combination.count),
                                       combination.type, combination.op);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

}  // namespace

tuttiResult_t Call::run(tuttiComm_t comm, tuttiStream_t stream) const {
  const std::byte* const in = send.base;
  std::byte* const out = recv.base;
  const auto* const sent = send.counts.data();
  const auto* const from = send.displacements.data();
  const auto* const received = recv.counts.data();
  const auto* const to = recv.displacements.data();
  switch (kind) {
    case Kind::barrier: return tuttiBarrier(comm, stream);
    case Kind::broadcast: return tuttiBroadcast(in, out, count, type, root, comm, stream);
    case Kind::gather: return tuttiGather(in, out, count, type, root, comm, stream);
    case Kind::scatter: return tuttiScatter(in, out, count, type, root, comm, stream);
    case Kind::all_gather: return tuttiAllGather(in, out, count, type, comm, stream);
    case Kind::all_to_all: return tuttiAllToAll(in, out, count, type, comm, stream);
    case Kind::reduce: return tuttiReduce(in, out, count, type, op, root, comm, stream);
    case Kind::all_reduce: return tuttiAllReduce(in, out, count, type, op, comm, stream);
    case Kind::reduce_scatter: return tuttiReduceScatter(in, out, count, type, op, comm, stream);
    case Kind::scan: return tuttiScan(in, out, count, type, op, comm, stream);
    case Kind::ex_scan: return tuttiExScan(in, out, count, type, op, comm, stream);
    case Kind::gather_v: return tuttiGatherV(in, send.bytes, out, received, to, type, root, comm, stream);
    case Kind::scatter_v: return tuttiScatterV(in, sent, from, out, recv.bytes, type, root, comm, stream);
    case Kind::all_gather_v: return tuttiAllGatherV(in, send.bytes, out, received, to, type, comm, stream);
    case Kind::all_to_all_v: return tuttiAllToAllV(in, sent, from, out, received, to, type, comm, stream);
    case Kind::reduce_scatter_v: return tuttiReduceScatterV(in, sent, from, out, count, type, op, comm, stream);
  }
  return tuttiInternalError;
}

void Call::run_alone() const {
  if (send.base != recv.base && recv.base != nullptr && send.base != nullptr)
    std::memmove(recv.base, send.base, std::min(send.bytes, recv.bytes));
}

int Call::finish() {
  if (const int code = combine(combination, recv.base); code != MPI_SUCCESS) return code;
  return recv.unpack();
}

}  // namespace tutti::mpi
