// A collective call in tutti's words: what goes in, what comes out, and what is left to do here when it has ended.
#pragma once

#include <cstddef>

#include "adapters/mpi/mpi_header.h"
#include "adapters/mpi/side.h"
#include "tutti/tutti.h"

namespace tutti::mpi {

enum class Kind {
  barrier,
  broadcast,
  gather,
  scatter,
  all_gather,
  all_to_all,
  reduce,
  all_reduce,
  reduce_scatter,
  scan,
  ex_scan,
  gather_v,
  scatter_v,
  all_gather_v,
  all_to_all_v,
  reduce_scatter_v
};

/// A reduction by an operator that tutti lacks: the receive side has the inputs of all ranks, a block each.
struct Combination {
  std::byte* result = nullptr;
  int blocks = 0;  ///< how many are combined, from the first on; 0: none, and the result stays as it is
  std::size_t block_bytes = 0;
  std::size_t count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
};

struct Call {
  Kind kind = Kind::barrier;
  int root = 0;
  std::size_t count = 0;  ///< of calls without a count per rank
  tuttiDataType_t type = tuttiUint8;
  tuttiRedOp_t op = tuttiSum;
  Side send;
  Side recv;
  Combination combination;

  /// As the C API: with a stream, returns once the call is queued.
  tuttiResult_t run(tuttiComm_t comm, tuttiStream_t stream) const;
  /// What a rank alone does instead.
  void run_alone() const;
  /// To be called once, when the call has ended: puts the result where the user wants it. Errors: MPI's, as a code.
  int finish();
};

}  // namespace tutti::mpi
