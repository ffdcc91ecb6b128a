/* Do collective functions between the two groups of an intercommunicator give what the MPI underneath gives? Both are
 * called with the same inputs, over counts, roots on either side, derived types and operators. */
#include <string.h>

#include "check.h"

#define BYTES_MAX (1 << 20)

static unsigned char input[BYTES_MAX], ours[BYTES_MAX], theirs[BYTES_MAX];
static MPI_Comm comm;
static int rank, ranks, remote, color;

static void start(void) {
  memset(ours, 0xee, sizeof ours);
  memset(theirs, 0xee, sizeof theirs);
}
static void end(const char* what, int detail) {
  int at = 0;
  while (at < BYTES_MAX && ours[at] == theirs[at]) ++at;
  CHECK(at == BYTES_MAX, "%s: results differ from byte %d on (rank %d of %d against %d, case %d)", what, at, rank,
        ranks, remote, detail);
}

#define BOTH(NAME, DETAIL, ...)                                                    \
  do {                                                                             \
    unsigned char* recv = ours;                                                    \
    start();                                                                       \
    CHECK(MPI_##NAME(__VA_ARGS__, comm) == MPI_SUCCESS, "MPI_%s failed", #NAME);   \
    recv = theirs;                                                                 \
    CHECK(PMPI_##NAME(__VA_ARGS__, comm) == MPI_SUCCESS, "PMPI_%s failed", #NAME); \
    end("MPI_" #NAME, DETAIL);                                                     \
  } while (0)

/* What this rank passes where `root` of group `side` is the root. Other ranks of its group know nothing else. */
static int root_here(int side, int root) {
  return color != side ? root : rank == root ? MPI_ROOT : MPI_PROC_NULL;
}

static void rooted(int side, int root, int count, MPI_Datatype type) {
  const int here = root_here(side, root), knows = here != MPI_PROC_NULL;
  int counts[8] = {0}, places[8] = {0}, mine;
  for (int i = 0, at = 0; i < remote; ++i) counts[i] = count + i, places[i] = at, at += counts[i] + 1;
  mine = color == side ? 0 : count + rank;
  start();
  if (here == MPI_ROOT) memcpy(ours, input, 4096), memcpy(theirs, input, 4096);
  MPI_Bcast(ours, knows ? count : 0, knows ? type : MPI_INT, here, comm);
  PMPI_Bcast(theirs, knows ? count : 0, knows ? type : MPI_INT, here, comm);
  end("MPI_Bcast", root);
  BOTH(Gather, root, input, count, type, recv, count, type, here);
  BOTH(Scatter, root, input, count, type, recv, count, type, here);
  BOTH(Gatherv, root, input, mine, type, recv, counts, places, type, here);
  BOTH(Scatterv, root, input, counts, places, type, recv, mine, type, here);
}

static void moved(int count, MPI_Datatype type) {
  int size, counts[8], places[8], wide[8], lengths[8], mine[8];
  MPI_Datatype types[8];
  MPI_Aint lower, extent;
  MPI_Type_size(type, &size);
  MPI_Type_get_extent(type, &lower, &extent);
  for (int i = 0, at = 0, to = 0; i < remote; ++i) {
    counts[i] = count + i, places[i] = at, at += counts[i] + 1;        /* of allgatherv: the other group's */
    lengths[i] = count + rank + i, wide[i] = to, to += lengths[i] + 1; /* of alltoallv: symmetric */
    mine[i] = (int)extent * wide[i], types[i] = type;
  }
  BOTH(Allgather, count, input, count, type, recv, count, type);
  BOTH(Alltoall, count, input, count, type, recv, count, type);
  BOTH(Allgatherv, count, input, count + rank, type, recv, counts, places, type);
  BOTH(Alltoallv, count, input, lengths, wide, type, recv, lengths, wide, type);
  BOTH(Alltoallw, count, input, lengths, mine, types, recv, lengths, mine, types);
}

/* x -> a x + b modulo 251, as one int: the order of ranks matters. */
static void compose(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) {
    const int x = ((int*)in)[i], y = ((int*)inout)[i];
    const int a = (x / 251) * (y / 251) % 251, b = ((x / 251) * (y % 251) + x % 251) % 251;
    ((int*)inout)[i] = a * 251 + b;
  }
}

static void reductions(int count, MPI_Op op) {
  const int expected_root = 0;
  for (int i = 0; i < count; ++i) ((int*)input)[i] = (300 + (color * 5 + rank) * 7919 + i * 31) % (251 * 251);
  BOTH(Allreduce, count, input, recv, count, MPI_INT, op);
  for (int side = 0; side < 2; ++side) {
    const int here = root_here(side, expected_root), knows = here != MPI_PROC_NULL;
    start();
    MPI_Reduce(input, ours, knows ? count : 0, knows ? MPI_INT : MPI_CHAR, knows ? op : MPI_PROD, here, comm);
    PMPI_Reduce(input, theirs, count, MPI_INT, op, here, comm);
    end("MPI_Reduce", side);
  }
}

static void all_of_it(void) {
  MPI_Datatype gaps;
  MPI_Op own;
  for (int i = 0; i < BYTES_MAX; ++i) input[i] = (unsigned char)(i * 7 + i / 256 + rank * 31 + color * 101);
  MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  for (int count = 0; count < 130; count += count < 3 ? 1 : 63) {
    for (int side = 0; side < 2; ++side)
      for (int root = 0; root < (side == color ? ranks : remote); ++root)
        rooted(side, root, count, MPI_INT), rooted(side, root, count, gaps);
    moved(count, MPI_INT), moved(count, gaps);
  }
  CHECK(MPI_Barrier(comm) == MPI_SUCCESS, "MPI_Barrier failed");
  MPI_Op_create(compose, 0, &own);
  for (int count = 1; count < 130; count += 43)
    reductions(count, MPI_SUM), reductions(count, MPI_BXOR), reductions(count, own);
  reductions(1 << 17, MPI_MAX); /* too long for tutti: all ranks leave it to MPI, also those that know no count */
  MPI_Op_free(&own);
  MPI_Type_free(&gaps);
}

int main(int argc, char** argv) {
  MPI_Comm half, again;
  int all, me;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  /* Ranks of the groups are interleaved, and in the reverse order of MPI_COMM_WORLD's. */
  color = me % 2;
  MPI_Comm_split(MPI_COMM_WORLD, color, -me, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, color == 0 ? (all - 1) / 2 * 2 + 1 - (all % 2) * 2 : (all - 1) / 2 * 2,
                       7, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  MPI_Comm_remote_size(comm, &remote);
  all_of_it();
  MPI_Comm_dup(comm, &again);
  MPI_Comm_free(&comm);
  comm = again;
  all_of_it();
  MPI_Comm_free(&comm);
  MPI_Comm_free(&half);
  if (me == 0) printf("all alike\n");
  MPI_Finalize();
  return 0;
}
