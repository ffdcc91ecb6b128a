// MPI's collective functions with large counts, of MPI 4.
#include "adapters/mpi/functions.h"

#if MPI_VERSION >= 4

using namespace tutti::mpi;  // NOLINT: the definitions below are functions of mpi.h
using Count = MPI_Count;
using Displacement = MPI_Aint;

#define FUNCTION(Name, name, ...) TUTTI_MPI_FUNCTIONS(Name, name, _c, __VA_ARGS__)
#include "adapters/mpi/functions.inc"

#endif
