#include "adapters/mpi/prepare.h"

#include <vector>

#include "adapters/mpi/arguments.h"
#include "adapters/mpi/prepare_between.h"

namespace tutti::mpi {
namespace {

bool is_rank(int root, const RankInfo& place) {
  return root >= 0 && root < place.ranks;
}

/// Both sides are set: packs what is to be sent; of calls that say how many bytes go to or from each rank, those.
Prepared ready(Call& call, Kind kind, std::size_t bytes, bool packs_recv = false) {
  call.kind = kind;
  call.count = bytes;
  int code = call.send.pack();
  if (code == MPI_SUCCESS && packs_recv) code = call.recv.pack();
  return {.code = code, .alone = code != MPI_SUCCESS};
}

/// Calls with one size for all ranks have nothing to do where that is none.
Prepared ready_unless_empty(Call& call, Kind kind, std::size_t bytes, bool packs_recv = false) {
  if (bytes == 0) return {.outcome = Outcome::nothing};
  return ready(call, kind, bytes, packs_recv);
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
  if (buffers.types == nullptr) {
    if (const int code = check_type(buffers.type); code != MPI_SUCCESS) return code;
    if (const int code = facts_of(buffers.type, facts); code != MPI_SUCCESS) return code;
  }
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
  return ready_unless_empty(call, Kind::broadcast, mine.bytes);
}

Prepared prepare_gather(Call& call, const RankInfo& place, const Buffer& send, const Buffer& recv, int root) {
  if (place.between()) return between::gather(call, place, send, recv, root);
  if (!is_rank(root, place)) return refused();
  call.root = root;
  const bool is_root = place.rank == root;
  const bool in_place = is_root && send.in_place();
  if (send.in_place() != in_place || (is_root && recv.in_place())) return misplaced();
  if ((!in_place && !right(send)) || (is_root && !right(recv))) return refused();
  if (is_root)
    if (const int code = call.recv.take(piece_of(recv, place.ranks)); code != MPI_SUCCESS) return failed(code);
  std::size_t block = call.recv.bytes / static_cast<std::size_t>(place.ranks);
  if (in_place) {
    call.send.set(call.recv.base + block * static_cast<std::size_t>(root), block);
  } else if (const int code = call.send.take(piece_of(send)); code != MPI_SUCCESS) {
    return failed(code);
  }
  if (!is_root) block = call.send.bytes;
  return ready_unless_empty(call, Kind::gather, block, in_place);
}

Prepared prepare_scatter(Call& call, const RankInfo& place, const Buffer& send, const Buffer& recv, int root) {
  if (place.between()) return between::scatter(call, place, send, recv, root);
  if (!is_rank(root, place)) return refused();
  call.root = root;
  const bool is_root = place.rank == root;
  const bool in_place = is_root && recv.in_place();
  if (recv.in_place() != in_place || (is_root && send.in_place())) return misplaced();
  if ((!in_place && !right(recv)) || (is_root && !right(send))) return refused();
  if (is_root)
    if (const int code = call.send.take(piece_of(send, place.ranks)); code != MPI_SUCCESS) return failed(code);
  std::size_t block = call.send.bytes / static_cast<std::size_t>(place.ranks);
  if (in_place) {
    call.recv.set(call.send.base + block * static_cast<std::size_t>(root), block);
  } else if (const int code = call.recv.take(piece_of(recv)); code != MPI_SUCCESS) {
    return failed(code);
  }
  if (!is_root) block = call.recv.bytes;
  return ready_unless_empty(call, Kind::scatter, block);
}

Prepared prepare_allgather(Call& call, const RankInfo& place, const Buffer& send, const Buffer& recv) {
  if (place.between()) return between::allgather(call, place, send, recv);
  if (recv.in_place()) return misplaced();
  if ((!send.in_place() && !right(send)) || !right(recv)) return refused();
  if (const int code = call.recv.take(piece_of(recv, place.ranks)); code != MPI_SUCCESS) return failed(code);
  const std::size_t block = call.recv.bytes / static_cast<std::size_t>(place.ranks);
  if (send.in_place()) {
    call.send.set(call.recv.base + block * static_cast<std::size_t>(place.rank), block);
  } else if (const int code = call.send.take(piece_of(send)); code != MPI_SUCCESS) {
    return failed(code);
  }
  return ready_unless_empty(call, Kind::all_gather, block, send.in_place());
}

Prepared prepare_alltoall(Call& call, const RankInfo& place, const Buffer& send, const Buffer& recv) {
  if (place.between()) return between::alltoall(call, place, send, recv);
  if (recv.in_place()) return misplaced();
  if ((!send.in_place() && !right(send)) || !right(recv)) return refused();
  if (const int code = call.recv.take(piece_of(recv, place.ranks)); code != MPI_SUCCESS) return failed(code);
  if (send.in_place()) {
    call.send.set(call.recv.base, call.recv.bytes);
  } else if (const int code = call.send.take(piece_of(send, place.ranks)); code != MPI_SUCCESS) {
    return failed(code);
  }
  return ready_unless_empty(call, Kind::all_to_all, call.recv.bytes / static_cast<std::size_t>(place.ranks),
                            send.in_place());
}

Prepared prepare_gatherv(Call& call, const RankInfo& place, const Buffer& send, const Buffers& recv, int root) {
  if (place.between()) return between::gatherv(call, place, send, recv, root);
  if (!is_rank(root, place)) return refused();
  call.root = root;
  const bool is_root = place.rank == root;
  const bool in_place = is_root && send.in_place();
  if (send.in_place() != in_place || (is_root && recv.in_place())) return misplaced();
  if ((!in_place && !right(send)) || (is_root && !right(recv, place.ranks))) return refused();
  if (is_root)
    if (const int code = take(call.recv, recv, place.ranks); code != MPI_SUCCESS) return failed(code);
  const auto own = static_cast<std::size_t>(root);
  if (in_place) {
    call.send.set(call.recv.base + call.recv.displacements[own], call.recv.counts[own]);
  } else if (const int code = call.send.take(piece_of(send)); code != MPI_SUCCESS) {
    return failed(code);
  }
  return ready(call, Kind::gather_v, 0, in_place);
}

Prepared prepare_scatterv(Call& call, const RankInfo& place, const Buffers& send, const Buffer& recv, int root) {
  if (place.between()) return between::scatterv(call, place, send, recv, root);
  if (!is_rank(root, place)) return refused();
  call.root = root;
  const bool is_root = place.rank == root;
  const bool in_place = is_root && recv.in_place();
  if (recv.in_place() != in_place || (is_root && send.in_place())) return misplaced();
  if ((!in_place && !right(recv)) || (is_root && !right(send, place.ranks))) return refused();
  if (is_root)
    if (const int code = take(call.send, send, place.ranks); code != MPI_SUCCESS) return failed(code);
  const auto own = static_cast<std::size_t>(root);
  if (in_place) {
    call.recv.set(call.send.base + call.send.displacements[own], call.send.counts[own]);
  } else if (const int code = call.recv.take(piece_of(recv)); code != MPI_SUCCESS) {
    return failed(code);
  }
  return ready(call, Kind::scatter_v, 0);
}

Prepared prepare_allgatherv(Call& call, const RankInfo& place, const Buffer& send, const Buffers& recv) {
  if (place.between()) return between::allgatherv(call, place, send, recv);
  if (recv.in_place()) return misplaced();
  if ((!send.in_place() && !right(send)) || !right(recv, place.ranks)) return refused();
  if (const int code = take(call.recv, recv, place.ranks); code != MPI_SUCCESS) return failed(code);
  const auto own = static_cast<std::size_t>(place.rank);
  if (send.in_place()) {
    call.send.set(call.recv.base + call.recv.displacements[own], call.recv.counts[own]);
  } else if (const int code = call.send.take(piece_of(send)); code != MPI_SUCCESS) {
    return failed(code);
  }
  return ready(call, Kind::all_gather_v, 0, send.in_place());
}

Prepared prepare_alltoallv(Call& call, const RankInfo& place, const Buffers& send, const Buffers& recv) {
  if (place.between()) return between::alltoallv(call, place, send, recv);
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
  return ready(call, Kind::all_to_all_v, 0, send.in_place());
}

}  // namespace tutti::mpi
