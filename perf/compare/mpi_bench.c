/* MPI with the protocol: built once with Open MPI's compiler and once with MPICH's. */
#include "protocol.h" /* first: it asks for GNU's declarations */

#include <mpi.h>

#ifdef COMPARE_INTEGERS
#define TYPE MPI_INT32_T
#else
#define TYPE MPI_FLOAT
#endif

static int supports(Kind kind, size_t bytes) {
  return kind <= BARRIER && bytes / sizeof(Element) <= 0x7fffffff;
}

static void call(Kind kind, size_t bytes) {
  const int count = (int)(bytes / sizeof(Element)), block = count / rank_count;
  switch (kind) {
    case ALL_REDUCE: MPI_Allreduce(send_buffer, recv_buffer, count, TYPE, MPI_SUM, MPI_COMM_WORLD); break;
    case REDUCE_SCATTER:
      MPI_Reduce_scatter_block(send_buffer, recv_buffer, block, TYPE, MPI_SUM, MPI_COMM_WORLD);
      break;
    case ALL_GATHER: MPI_Allgather(send_buffer, block, TYPE, recv_buffer, block, TYPE, MPI_COMM_WORLD); break;
    case BROADCAST: MPI_Bcast(my_rank == 0 ? send_buffer : recv_buffer, count, TYPE, 0, MPI_COMM_WORLD); break;
    case ALLTOALL: MPI_Alltoall(send_buffer, block, TYPE, recv_buffer, block, TYPE, MPI_COMM_WORLD); break;
    case REDUCE: MPI_Reduce(send_buffer, recv_buffer, count, TYPE, MPI_SUM, 0, MPI_COMM_WORLD); break;
    default: MPI_Barrier(MPI_COMM_WORLD);
  }
}
static void barrier(void) {
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  const Library library = {supports, NULL, NULL, call, barrier, 1};
  /* Before MPI_Init, so that its threads and memory are pinned too. */
  const char* rank = setting("OMPI_COMM_WORLD_RANK", setting("PMI_RANK", "-1"));
  const char* ranks = setting("OMPI_COMM_WORLD_SIZE", setting("PMI_SIZE", "-1"));
  join_board(atoi(rank), atoi(ranks));
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) die("MPI_Init");
  run(&library);
  MPI_Finalize();
  return 0;
}
