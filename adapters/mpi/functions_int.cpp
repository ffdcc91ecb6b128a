// MPI's collective functions with counts of int.
#include "adapters/mpi/functions.h"

using namespace tutti::mpi;  // NOLINT: the definitions below are functions of mpi.h
using Count = int;
using Displacement = int;

TUTTI_MPI_FUNCTIONS(Barrier, barrier, , (MPI_Comm comm), (comm), Prepared{})

#define FUNCTION(Name, name, ...) TUTTI_MPI_FUNCTIONS(Name, name, , __VA_ARGS__)
#include "adapters/mpi/functions.inc"
