#include "adapters/mpi/prepare.h"

#include <type_traits>
#include <vector>

#include "adapters/mpi/arguments.h"
#include "adapters/mpi/prepare_between.h"

namespace tutti::mpi {
namespace {

bool is_rank(int root, const RankInfo& place) {
  return root >= 0 && root < place.ranks;
}

/// Both sides are set: packs what is to be sent. `All`: Buffer or Buffers; calls with one size for all ranks say how
/// many bytes go to or from each rank, and have nothing to do where that is none.
template <class All>
Prepared ready(Call& call, Kind kind, std::size_t block, bool packs_recv) {
  constexpr bool one_size = std::is_same_v<All, Buffer>;
  if (one_size && block == 0) return {.outcome = Outcome::nothing};
  call.kind = kind;
  call.count = one_size ? block : 0;
  int code = call.send.pack();
  if (code == MPI_SUCCESS && packs_recv) code = call.recv.pack();
  return {.code = code, .alone = code != MPI_SUCCESS};
}

int take(Side& side, const Buffer& buffer, int ranks) {
  return side.take(piece_of(buffer, ranks));
}

std::size_t block_bytes(const Side& whole, const RankInfo& place) {
  return whole.bytes / static_cast<std::size_t>(place.ranks);
}

/// This rank's block of a side that has one for each rank.
void set_own_block(Side& part, const Side& whole, const RankInfo& place) {
  const auto own = static_cast<std::size_t>(place.rank);
  const std::size_t block = block_bytes(whole, place);
  if (whole.counts.empty()) return part.set(whole.base + block * own, block);
  part.set(whole.base + whole.displacements[own], whole.counts[own]);
}

/// Each rank has one block, `own`, and those that have all of them may have it in place there.
template <class All>
Prepared with_own_block(Call& call, const RankInfo& place, Kind kind, bool has_all, const All& all, Side& whole,
                        const Buffer& own, Side& part) {
  const bool in_place = has_all && own.in_place();
  if (own.in_place() != in_place || (has_all && all.in_place())) return misplaced();
  if ((!in_place && !right(own)) || (has_all && !right(all, place.ranks))) return refused();
  if (has_all)
    if (const int code = take(whole, all, place.ranks); code != MPI_SUCCESS) return failed(code);
  if (in_place) {
    set_own_block(part, whole, place);
  } else if (const int code = part.take(piece_of(own)); code != MPI_SUCCESS) {
    return failed(code);
  }
  return ready<All>(call, kind, has_all ? block_bytes(whole, place) : part.bytes, in_place && &whole == &call.recv);
}

}  // namespace

bool right(const Buffers& buffers, int ranks) {
  if (!buffers.counts || !buffers.displacements) return false;
  for (int rank = 0; rank < ranks; ++rank) {
    if (buffers.counts[rank] < 0) return false;
    const bool has_data = buffers.counts[rank] > 0;
    if (has_data && buffers.types != nullptr && buffers.types[rank] == MPI_DATATYPE_NULL) return false;
  }
  return buffers.types != nullptr || buffers.type != MPI_DATATYPE_NULL;
}

int take(Side& side, const Buffers& buffers, int ranks) {
  std::vector<Piece> pieces(static_cast<std::size_t>(ranks));
  TypeFacts facts;
  if (buffers.types == nullptr)
    if (const int code = check_type(buffers.type, facts); code != MPI_SUCCESS) return code;
  auto* const start = static_cast<std::byte*>(const_cast<void*>(buffers.at));
  for (int rank = 0; rank < ranks; ++rank) {
    const std::ptrdiff_t step = buffers.types != nullptr ? 1 : facts.extent;
    pieces[static_cast<std::size_t>(rank)] = {.at = start + buffers.displacements[rank] * step,
                                              .count = buffers.counts[rank],
                                              .type = buffers.types != nullptr ? buffers.types[rank] : buffers.type};
  }
  return side.take(pieces);
}

Prepared prepare_bcast(Call& call, const RankInfo& place, const Buffer& data, int root) {
  if (place.between()) return between::bcast(call, place, data, root);
  if (!right(data) || !is_rank(root, place)) return refused();
  if (data.in_place()) return misplaced();
  call.root = root;
  // The root's data is only read: it may be constant.
  Side& mine = place.rank == root ? call.send : call.recv;
  Side& other = place.rank == root ? call.recv : call.send;
  if (const int code = mine.take(piece_of(data)); code != MPI_SUCCESS) return failed(code);
  other.set(mine.base, mine.bytes);
  return ready<Buffer>(call, Kind::broadcast, mine.bytes, /*packs_recv=*/false);
}

template <class All>
Prepared prepare_with_root(Call& call, const RankInfo& place, Kind kind, const All& all, Side& whole, const Buffer& own,
                           Side& part, int root) {
  if (place.between()) return between::with_root(call, place, all, whole, own, part, root);
  if (!is_rank(root, place)) return refused();
  call.root = root;
  return with_own_block(call, place, kind, place.rank == root, all, whole, own, part);
}
template Prepared prepare_with_root(Call&, const RankInfo&, Kind, const Buffer&, Side&, const Buffer&, Side&, int);
template Prepared prepare_with_root(Call&, const RankInfo&, Kind, const Buffers&, Side&, const Buffer&, Side&, int);

template <class All>
Prepared prepare_allgather(Call& call, const RankInfo& place, Kind kind, const Buffer& send, const All& recv) {
  if (place.between()) return between::allgather(call, place, send, recv);
  return with_own_block(call, place, kind, /*has_all=*/true, recv, call.recv, send, call.send);
}
template Prepared prepare_allgather(Call&, const RankInfo&, Kind, const Buffer&, const Buffer&);
template Prepared prepare_allgather(Call&, const RankInfo&, Kind, const Buffer&, const Buffers&);

template <class All>
Prepared prepare_alltoall(Call& call, const RankInfo& place, Kind kind, const All& send, const All& recv) {
  if (place.between()) return between::alltoall(call, place, send, recv);
  if (recv.in_place()) return misplaced();
  if ((!send.in_place() && !right(send, place.ranks)) || !right(recv, place.ranks)) return refused();
  if (const int code = take(call.recv, recv, place.ranks); code != MPI_SUCCESS) return failed(code);
  if (send.in_place()) {
    call.send.set(call.recv.base, call.recv.bytes);
    call.send.counts = call.recv.counts;
    call.send.displacements = call.recv.displacements;
  } else if (const int code = take(call.send, send, place.ranks); code != MPI_SUCCESS) {
    return failed(code);
  }
  return ready<All>(call, kind, block_bytes(call.recv, place), send.in_place());
}
template Prepared prepare_alltoall(Call&, const RankInfo&, Kind, const Buffer&, const Buffer&);
template Prepared prepare_alltoall(Call&, const RankInfo&, Kind, const Buffers&, const Buffers&);

}  // namespace tutti::mpi
