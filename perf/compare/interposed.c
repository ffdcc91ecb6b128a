/* All-reduce as OSU's benchmark times it: by the interposer, and by the MPI underneath it, in turn in one process.
 * Blocks of calls back to back; a block's time is that of the slowest rank. Started by compare --mpi-interposer, with
 * libtutti_mpi loaded before MPI.
 *
 * Usage: interposed ROUNDS BLOCK_US BYTES...      a row per size and round: bytes,round,tutti_us,mpi_us,wrong */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef int AllReduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);

static int rank, ranks;
static float *send, *recv;

static double seconds_of(AllReduce* all_reduce, int count, int calls) {
  double mine, slowest;
  PMPI_Barrier(MPI_COMM_WORLD);
  mine = PMPI_Wtime();
  for (int i = 0; i < calls; ++i) all_reduce(send, recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  mine = PMPI_Wtime() - mine;
  PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest / calls;
}

static long count_wrong(int count) {
  long wrong = 0;
  for (int i = 0; i < count; ++i) {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) sum += (float)((i * 7 + r * 13) % 31);
    wrong += recv[i] != sum;
  }
  return wrong;
}

/* Calls that take about that long together, by whoever is slower. */
static int calls_for(double block_us, int count) {
  const double tutti = seconds_of(MPI_Allreduce, count, 8), mpi = seconds_of(PMPI_Allreduce, count, 8);
  double calls = block_us * 1e-6 / (tutti > mpi ? tutti : mpi);
  PMPI_Bcast(&calls, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return calls < 4 ? 4 : calls > 20000 ? 20000 : (int)calls;
}

static void measure(size_t bytes, int rounds, double block_us) {
  const int count = (int)(bytes / sizeof(float)), calls = calls_for(block_us, count);
  for (int round = 0; round < rounds; ++round) {
    double tutti, mpi;
    long mine, wrong;
    if (round % 2 == 0) {
      tutti = seconds_of(MPI_Allreduce, count, calls);
      mine = count_wrong(count);
      mpi = seconds_of(PMPI_Allreduce, count, calls);
    } else {
      mpi = seconds_of(PMPI_Allreduce, count, calls);
      tutti = seconds_of(MPI_Allreduce, count, calls);
      mine = count_wrong(count);
    }
    PMPI_Allreduce(&mine, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%zu,%d,%.4f,%.4f,%ld\n", bytes, round, tutti * 1e6, mpi * 1e6, wrong);
  }
}

static void pin(void) {
  const int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(rank % cores, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) perror("sched_setaffinity");
}

int main(int argc, char** argv) {
  size_t most = 0;
  if (argc < 4) return 2;
  for (int i = 3; i < argc; ++i) most = strtoul(argv[i], NULL, 10) > most ? strtoul(argv[i], NULL, 10) : most;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  pin();
  if (posix_memalign((void**)&send, 4096, most) != 0 || posix_memalign((void**)&recv, 4096, most) != 0)
    PMPI_Abort(MPI_COMM_WORLD, 1);
  for (size_t i = 0; i < most / sizeof(float); ++i) send[i] = (float)(((int)i * 7 + rank * 13) % 31);
  for (int i = 3; i < argc; ++i) measure(strtoul(argv[i], NULL, 10), atoi(argv[1]), atof(argv[2]));
  MPI_Finalize();
  return 0;
}
