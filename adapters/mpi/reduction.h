// How tutti serves a reduction: by an operator of its own, by moving all inputs to where MPI combines them, or not.
#pragma once

#include <cstddef>

#include "adapters/mpi/datatype.h"
#include "adapters/mpi/mpi_header.h"
#include "adapters/mpi/statistics.h"
#include "tutti/tutti.h"

namespace tutti::mpi {

struct Reduction {
  Outcome outcome = Outcome::tutti;  ///< not served(): MPI's
  bool gathered = false;             ///< the inputs of all ranks are moved, then combined by PMPI_Reduce_local
  tuttiDataType_t type = tuttiUint8;
  tuttiRedOp_t op = tuttiSum;
  std::size_t bytes = 0;  ///< from one element to the next
};

/// One of MPI's own operators.
bool is_predefined(MPI_Op op);

/// Gathered reductions of more bytes, all inputs of a rank's result together, are left to MPI.
inline constexpr std::size_t gathered_bytes_max = 256 << 10;

/// `count`: elements that one rank combines, of each of `ranks` ranks. `moves`: by moving inputs only, as between the
/// groups of an intercommunicator. All arguments are alike on all ranks, as MPI requires; so is the answer.
Reduction reduction_of(MPI_Datatype type, MPI_Op op, std::size_t count, int ranks, bool moves = false);

}  // namespace tutti::mpi
