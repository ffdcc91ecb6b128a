// From the arguments of MPI's functions to calls of tutti, on communicators of one rank as well.
//
// Data that is only moved goes as bytes: two ranks may name it by different types and counts, as long as its signature
// is the same. So whether tutti serves such a call depends on no type. What a reduction needs is alike on all ranks.
#pragma once

#include "adapters/mpi/call.h"
#include "adapters/mpi/mpi_header.h"
#include "adapters/mpi/statistics.h"

namespace tutti::mpi {

/// This rank's place. An intercommunicator's ranks are numbered through both groups, one after the other.
struct RankInfo {
  int rank = 0;
  int ranks = 1;
  int remote = 0;        ///< how many ranks the other group of an intercommunicator has; 0: it is none
  int remote_first = 0;  ///< the first of them

  bool between() const { return remote > 0; }
};

/// What came of it: `outcome` is alike on all ranks, unless arguments are wrong. `code`: MPI's.
struct Prepared {
  Outcome outcome = Outcome::tutti;
  int code = MPI_SUCCESS;
  bool alone = false;   ///< `code` is of packing, not of arguments: other ranks do not meet it, and wait
  bool agrees = false;  ///< not all ranks know the outcome, so it is to be agreed on
};

/// A buffer as MPI's functions name it.
struct Buffer {
  const void* at = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;

  bool in_place() const { return at == MPI_IN_PLACE; }
};

/// An array of a program, of int or, in the functions that end in _c, of a larger integer.
template <class Large>
class Array {
 public:
  Array(const int* values) : small_(values) {}    // NOLINT: what MPI's functions take is passed on as it is
  Array(const Large* values) : large_(values) {}  // NOLINT
  explicit operator bool() const { return small_ != nullptr || large_ != nullptr; }
  Large operator[](int i) const { return small_ != nullptr ? small_[i] : large_[i]; }

 private:
  const int* small_ = nullptr;
  const Large* large_ = nullptr;
};

/// As Buffer, with a count and a place for each rank. Alltoallw has a type for each and displacements in bytes.
struct Buffers {
  const void* at;
  Array<MPI_Count> counts;
  Array<MPI_Aint> displacements;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  const MPI_Datatype* types = nullptr;

  bool in_place() const { return at == MPI_IN_PLACE; }
};

Prepared prepare_bcast(Call& call, const RankInfo& place, const Buffer& data, int root);
/// Gathers and scatters. The root has `all`, the side `whole`: `All` is Buffer or, with a count per rank, Buffers. Each
/// rank has one block, `own`, the side `part`.
template <class All>
Prepared prepare_with_root(Call& call, const RankInfo& place, Kind kind, const All& all, Side& whole, const Buffer& own,
                           Side& part, int root);
template <class All>
Prepared prepare_allgather(Call& call, const RankInfo& place, Kind kind, const Buffer& send, const All& recv);
template <class All>
Prepared prepare_alltoall(Call& call, const RankInfo& place, Kind kind, const All& send, const All& recv);

/// `recv` of ranks other than the root has no meaning.
struct Reduce {
  const void* send = nullptr;
  void* recv = nullptr;
  MPI_Count count = 0;  ///< of ReduceScatterBlock: of a block
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;

  bool in_place() const { return send == MPI_IN_PLACE; }
};

Prepared prepare_allreduce(Call& call, const RankInfo& place, const Reduce& reduce);
Prepared prepare_reduce(Call& call, const RankInfo& place, const Reduce& reduce, int root);
Prepared prepare_reduce_scatter_block(Call& call, const RankInfo& place, const Reduce& reduce);
/// `counts`: of each rank's block.
Prepared prepare_reduce_scatter(Call& call, const RankInfo& place, const Reduce& reduce,
                                const Array<MPI_Count>& counts);
Prepared prepare_scan(Call& call, const RankInfo& place, const Reduce& reduce, bool exclusive);

}  // namespace tutti::mpi
