// A row of functions.inc as functions of mpi.h, which serve() and serve_later() carry out.
#pragma once

#include "adapters/mpi/mpi_header.h"
#include "adapters/mpi/prepare.h"
#include "adapters/mpi/serve.h"

#define TUTTI_MPI_LIST(...) __VA_ARGS__

/// MPI_<Name><suffix> and MPI_I<name><suffix>; without a suffix, an empty argument.
#define TUTTI_MPI_FUNCTIONS(Name, name, suffix, parameters, arguments, preparation)                       \
  int MPI_##Name##suffix parameters {                                                                     \
    return serve(                                                                                         \
        Function::name, comm,                                                                             \
        [&]([[maybe_unused]] Call& call, [[maybe_unused]] const RankInfo& place) { return preparation; }, \
        [&] { return PMPI_##Name##suffix arguments; });                                                   \
  }                                                                                                       \
  int MPI_I##name##suffix(TUTTI_MPI_LIST parameters, MPI_Request* request) {                              \
    return serve_later(                                                                                   \
        Function::name, comm, request,                                                                    \
        [&]([[maybe_unused]] Call& call, [[maybe_unused]] const RankInfo& place) { return preparation; }, \
        [&] { return PMPI_I##name##suffix(TUTTI_MPI_LIST arguments, request); });                         \
  }
