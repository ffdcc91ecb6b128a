// Reductions: by tutti's operators, or moved to where MPI combines them.
#include "adapters/mpi/arguments.h"
#include "adapters/mpi/prepare.h"
#include "adapters/mpi/prepare_between.h"
#include "adapters/mpi/reduction.h"

namespace tutti::mpi {
namespace {

const void* input_of(const Reduce& reduce) {
  return reduce.in_place() ? reduce.recv : reduce.send;
}

Prepared in_bytes_alone(Call& call, const Reduce& reduce, bool moves) {
  if (reduce.op == MPI_OP_NULL) return refused();
  if (!moves || reduce.in_place()) return {};
  const auto side = [&](const void* at) { return piece_of({at, reduce.count, reduce.type}); };
  if (const int code = call.send.take(side(reduce.send)); code != MPI_SUCCESS) return failed(code);
  if (const int code = call.recv.take(side(reduce.recv)); code != MPI_SUCCESS) return failed(code);
  return {.code = call.send.pack()};
}

/// All ranks get all inputs, or the root does, or each rank those of its block.
Prepared gathered(Call& call, const RankInfo& place, const Reduce& reduce, const Reduction& how, Kind kind,
                  int blocks) {
  const auto count = static_cast<std::size_t>(reduce.count);
  call.kind = kind;
  call.count = count * how.bytes;
  const std::size_t all = call.count * static_cast<std::size_t>(place.ranks);
  call.send.set(input_of(reduce), kind == Kind::all_to_all ? all : call.count);
  if (kind != Kind::gather || place.rank == call.root) call.recv.set_own(all);
  call.combination = combination_of(reduce, blocks, count, how.bytes);
  return {};
}

/// By tutti's operator.
void reduced(Call& call, Kind kind, std::size_t count, const Reduction& how) {
  call.kind = kind;
  call.count = count;
  call.type = how.type;
  call.op = how.op;
}

/// All ranks have one count. `moved`: how inputs are moved where tutti lacks the operator; this rank then combines
/// `blocks` of them. `copies_alone`: the result of a rank alone is its input.
Prepared with_one_count(Call& call, const RankInfo& place, const Reduce& reduce, Kind kind, Kind moved, int blocks,
                        bool has_result, bool copies_alone) {
  if (reduce.count == 0) return {.outcome = Outcome::nothing};
  if (place.ranks == 1) return in_bytes_alone(call, reduce, copies_alone);
  const auto count = static_cast<std::size_t>(reduce.count);
  const Reduction how = reduction_of(reduce.type, reduce.op, count, place.ranks);
  if (!served(how.outcome)) return {.outcome = how.outcome};
  if (how.gathered) return gathered(call, place, reduce, how, moved, blocks);
  reduced(call, kind, count, how);
  call.send.base = static_cast<std::byte*>(const_cast<void*>(input_of(reduce)));
  call.recv.base = has_result ? static_cast<std::byte*>(reduce.recv) : nullptr;
  return {};
}

}  // namespace

Combination combination_of(const Reduce& reduce, int blocks, std::size_t count, std::size_t element_bytes) {
  return {.result = static_cast<std::byte*>(reduce.recv),
          .blocks = blocks,
          .block_bytes = count * element_bytes,
          .count = count,
          .type = reduce.type,
          .op = reduce.op};
}

Prepared prepare_allreduce(Call& call, const RankInfo& place, const Reduce& reduce) {
  if (place.between()) return between::allreduce(call, place, reduce);
  if (!right(reduce, /*receives=*/true)) return refused();
  return with_one_count(call, place, reduce, Kind::all_reduce, Kind::all_gather, place.ranks, /*has_result=*/true,
                        /*copies_alone=*/true);
}

Prepared prepare_reduce(Call& call, const RankInfo& place, const Reduce& reduce, int root) {
  if (place.between()) return between::reduce(call, place, reduce, root);
  const bool is_root = place.rank == root;
  if (!right(reduce, is_root) || root < 0 || root >= place.ranks) return refused();
  if (reduce.in_place() && !is_root) return refused();
  call.root = root;
  return with_one_count(call, place, reduce, Kind::reduce, Kind::gather, is_root ? place.ranks : 0,
                        /*has_result=*/is_root, /*copies_alone=*/true);
}

Prepared prepare_reduce_scatter_block(Call& call, const RankInfo& place, const Reduce& reduce) {
  if (place.between()) return {.outcome = Outcome::intercommunicator};
  if (!right(reduce, /*receives=*/true)) return refused();
  return with_one_count(call, place, reduce, Kind::reduce_scatter, Kind::all_to_all, place.ranks, /*has_result=*/true,
                        /*copies_alone=*/true);
}

Prepared prepare_reduce_scatter(Call& call, const RankInfo& place, const Reduce& reduce,
                                const Array<MPI_Count>& counts) {
  if (place.between()) return {.outcome = Outcome::intercommunicator};
  if (!counts || !right(reduce, /*receives=*/true)) return refused();
  const auto ranks = static_cast<std::size_t>(place.ranks);
  std::size_t all = 0;
  for (std::size_t i = 0; i < ranks; ++i) {
    if (counts[static_cast<int>(i)] < 0) return refused();
    all += static_cast<std::size_t>(counts[static_cast<int>(i)]);
  }
  if (all == 0) return {.outcome = Outcome::nothing};
  const auto own = static_cast<std::size_t>(counts[place.rank]);
  Reduce whole = reduce;
  whole.count = static_cast<MPI_Count>(all);
  if (place.ranks == 1) return in_bytes_alone(call, whole, true);
  // The rank with the longest block combines the most, but each rank's share of that must be judged alike.
  const Reduction how = reduction_of(reduce.type, reduce.op, all, place.ranks);
  if (!served(how.outcome)) return {.outcome = how.outcome};
  const std::size_t unit = how.gathered ? how.bytes : 1;
  std::size_t at = 0;
  for (std::size_t i = 0; i < ranks; ++i) {
    call.send.counts.push_back(static_cast<std::size_t>(counts[static_cast<int>(i)]) * unit);
    call.send.displacements.push_back(at);
    at += call.send.counts.back();
  }
  if (how.gathered) {
    call.kind = Kind::all_to_all_v;
    call.send.set(input_of(reduce), all * how.bytes);
    call.recv.set_own(own * how.bytes * ranks);
    for (std::size_t i = 0; i < ranks; ++i) {
      call.recv.counts.push_back(own * how.bytes);
      call.recv.displacements.push_back(i * own * how.bytes);
    }
    call.combination = combination_of(reduce, place.ranks, own, how.bytes);
    return {};
  }
  reduced(call, Kind::reduce_scatter_v, own, how);
  call.send.set(input_of(reduce), all * how.bytes);
  call.recv.base = static_cast<std::byte*>(reduce.recv);
  return {};
}

Prepared prepare_scan(Call& call, const RankInfo& place, const Reduce& reduce, bool exclusive) {
  if (place.between()) return {.outcome = Outcome::intercommunicator};
  if (!right(reduce, /*receives=*/true)) return refused();
  const int blocks = exclusive ? place.rank : place.rank + 1;
  return with_one_count(call, place, reduce, exclusive ? Kind::ex_scan : Kind::scan, Kind::all_gather, blocks,
                        /*has_result=*/blocks > 0, /*copies_alone=*/!exclusive);
}

}  // namespace tutti::mpi
