/* How the programs of this folder say that something is wrong: with the rank, and a failed exit status. */
#ifndef TUTTI_TESTS_MPI_CHECK_H
#define TUTTI_TESTS_MPI_CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition, ...)                                     \
  do {                                                            \
    if (!(condition)) {                                           \
      int check_rank = -1;                                        \
      MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);                 \
      printf("rank %d, %s:%d: ", check_rank, __FILE__, __LINE__); \
      printf(__VA_ARGS__);                                        \
      printf("\n");                                               \
      fflush(stdout);                                             \
      MPI_Abort(MPI_COMM_WORLD, 1);                               \
      exit(1);                                                    \
    }                                                             \
  } while (0)

#endif
