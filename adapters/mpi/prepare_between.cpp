#include "adapters/mpi/prepare_between.h"

#include <optional>

#include "adapters/mpi/arguments.h"
#include "adapters/mpi/reduction.h"

namespace tutti::mpi::between {
namespace {

bool is_root(int root, const RankInfo& place) {
  return root == MPI_ROOT || (root >= 0 && root < place.remote);
}

void with_none(Side& side, const RankInfo& place) {
  side.counts.assign(static_cast<std::size_t>(place.ranks), 0);
  side.displacements.assign(static_cast<std::size_t>(place.ranks), 0);
}

/// `block` bytes with each rank of the other group, `step` bytes apart.
void with_each(Side& side, const RankInfo& place, std::size_t block, std::size_t step) {
  with_none(side, place);
  const auto first = static_cast<std::size_t>(place.remote_first);
  for (std::size_t i = 0; i < static_cast<std::size_t>(place.remote); ++i) {
    side.counts[first + i] = block;
    side.displacements[first + i] = i * step;
  }
}

/// All of it with that rank of the other group.
void with_one(Side& side, const RankInfo& place, int remote) {
  with_none(side, place);
  side.counts[static_cast<std::size_t>(place.remote_first) + static_cast<std::size_t>(remote)] = side.bytes;
}

/// From counts of the other group alone to those of all ranks.
void spread(std::vector<std::size_t>& values, const RankInfo& place) {
  values.insert(values.begin(), static_cast<std::size_t>(place.remote_first), 0);
  values.resize(static_cast<std::size_t>(place.ranks), 0);
}

/// One piece for each rank of the other group.
int take_each(Side& side, const RankInfo& place, const Buffers& buffers) {
  if (const int code = take(side, buffers, place.remote); code != MPI_SUCCESS) return code;
  spread(side.counts, place);
  spread(side.displacements, place);
  return MPI_SUCCESS;
}

/// A buffer that is divided among the ranks of the other group.
int take_each(Side& side, const RankInfo& place, const Buffer& buffer) {
  if (const int code = side.take(piece_of(buffer, place.remote)); code != MPI_SUCCESS) return code;
  const std::size_t block = side.bytes / static_cast<std::size_t>(place.remote);
  with_each(side, place, block, block);
  return MPI_SUCCESS;
}

/// A buffer that all ranks of the other group get.
int take_for_each(Side& side, const RankInfo& place, const Buffer& buffer) {
  if (const int code = side.take(piece_of(buffer)); code != MPI_SUCCESS) return code;
  with_each(side, place, side.bytes, 0);
  return MPI_SUCCESS;
}

int take_for_one(Side& side, const RankInfo& place, const Buffer& buffer, int remote) {
  if (const int code = side.take(piece_of(buffer)); code != MPI_SUCCESS) return code;
  with_one(side, place, remote);
  return MPI_SUCCESS;
}

/// Both sides are set, or have nothing. `code`: of setting them.
Prepared exchange(Call& call, const RankInfo& place, int code) {
  if (code != MPI_SUCCESS) return failed(code);
  call.kind = Kind::all_to_all_v;
  for (Side* const side : {&call.send, &call.recv})
    if (side->counts.empty()) with_none(*side, place);
  code = call.send.pack();
  return {.code = code, .alone = code != MPI_SUCCESS};
}

/// What is wrong with the data of a call with a root.
std::optional<Prepared> fault_of(const Buffer& buffer, const RankInfo& /*place*/) {
  if (!right(buffer)) return refused();
  if (buffer.in_place()) return misplaced();
  return std::nullopt;
}
std::optional<Prepared> fault_of(const Buffers& buffers, const RankInfo& place) {
  if (buffers.in_place()) return misplaced();
  if (!right(buffers, place.remote)) return refused();
  return std::nullopt;
}

/// The inputs of the other group come here, to be combined.
void combine_theirs(Call& call, const RankInfo& place, const Reduce& reduce, std::size_t element_bytes) {
  const auto count = static_cast<std::size_t>(reduce.count);
  const std::size_t block = count * element_bytes;
  call.recv.set_own(block * static_cast<std::size_t>(place.remote));
  with_each(call.recv, place, block, block);
  call.combination = combination_of(reduce, place.remote, count, element_bytes);
}

/// By what both groups know.
Reduction moved(const RankInfo& place, const Reduce& reduce) {
  return reduction_of(reduce.type, reduce.op, static_cast<std::size_t>(reduce.count), place.ranks, /*moves=*/true);
}

}  // namespace

Prepared bcast(Call& call, const RankInfo& place, const Buffer& data, int root) {
  if (root == MPI_PROC_NULL) return exchange(call, place, MPI_SUCCESS);
  if (!is_root(root, place)) return refused();
  if (const auto fault = fault_of(data, place)) return *fault;
  if (root == MPI_ROOT) return exchange(call, place, take_for_each(call.send, place, data));
  return exchange(call, place, take_for_one(call.recv, place, data, root));
}

template <class All>
Prepared with_root(Call& call, const RankInfo& place, const All& all, Side& whole, const Buffer& own, Side& part,
                   int root) {
  if (root == MPI_PROC_NULL) return exchange(call, place, MPI_SUCCESS);
  if (!is_root(root, place)) return refused();
  if (const auto fault = root == MPI_ROOT ? fault_of(all, place) : fault_of(own, place)) return *fault;
  if (root == MPI_ROOT) return exchange(call, place, take_each(whole, place, all));
  return exchange(call, place, take_for_one(part, place, own, root));
}
template Prepared with_root(Call&, const RankInfo&, const Buffer&, Side&, const Buffer&, Side&, int);
template Prepared with_root(Call&, const RankInfo&, const Buffers&, Side&, const Buffer&, Side&, int);

template <class All>
Prepared allgather(Call& call, const RankInfo& place, const Buffer& send, const All& recv) {
  if (send.in_place() || recv.in_place()) return misplaced();
  if (!right(send) || !right(recv, place.remote)) return refused();
  const int code = take_for_each(call.send, place, send);
  return exchange(call, place, code != MPI_SUCCESS ? code : take_each(call.recv, place, recv));
}
template Prepared allgather(Call&, const RankInfo&, const Buffer&, const Buffer&);
template Prepared allgather(Call&, const RankInfo&, const Buffer&, const Buffers&);

template <class All>
Prepared alltoall(Call& call, const RankInfo& place, const All& send, const All& recv) {
  if (send.in_place() || recv.in_place()) return misplaced();
  if (!right(send, place.remote) || !right(recv, place.remote)) return refused();
  const int code = take_each(call.send, place, send);
  return exchange(call, place, code != MPI_SUCCESS ? code : take_each(call.recv, place, recv));
}
template Prepared alltoall(Call&, const RankInfo&, const Buffer&, const Buffer&);
template Prepared alltoall(Call&, const RankInfo&, const Buffers&, const Buffers&);

Prepared allreduce(Call& call, const RankInfo& place, const Reduce& reduce) {
  if (reduce.in_place() || reduce.recv == MPI_IN_PLACE) return misplaced();
  if (!right(reduce, /*receives=*/false)) return refused();
  if (reduce.count == 0) return {.outcome = Outcome::nothing};
  const Reduction how = moved(place, reduce);
  if (!served(how.outcome)) return {.outcome = how.outcome};
  combine_theirs(call, place, reduce, how.bytes);
  const std::size_t block = call.combination.block_bytes;
  call.send.set(reduce.send, block);
  with_each(call.send, place, block, 0);
  return exchange(call, place, MPI_SUCCESS);
}

/// The root's group knows neither count nor operator, so all ranks agree before anything is moved.
Prepared reduce(Call& call, const RankInfo& place, const Reduce& reduce, int root) {
  Prepared prepared;
  if (root == MPI_PROC_NULL) {
    prepared = exchange(call, place, MPI_SUCCESS);
  } else if (!right(reduce, /*receives=*/false) || reduce.in_place() || !is_root(root, place)) {
    prepared = refused();
  } else if (const Reduction how = moved(place, reduce); !served(how.outcome)) {
    prepared.outcome = how.outcome;
  } else {
    if (root == MPI_ROOT) {
      combine_theirs(call, place, reduce, how.bytes);
    } else {
      call.send.set(reduce.send, static_cast<std::size_t>(reduce.count) * how.bytes);
      with_one(call.send, place, root);
    }
    prepared = exchange(call, place, MPI_SUCCESS);
  }
  prepared.agrees = true;
  return prepared;
}

}  // namespace tutti::mpi::between
