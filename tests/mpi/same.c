/* Does each collective function give what the MPI underneath gives? Both are called with the same inputs, blocking and
 * not, over types, operators, counts, roots, in place, derived types, and communicators. */
#include <string.h>

#include "check.h"

#define BYTES_MAX (1 << 18)

static unsigned char input[BYTES_MAX], ours[BYTES_MAX], theirs[BYTES_MAX];
static MPI_Comm comm;
static int rank, ranks, later; /* later: by the non-blocking functions */
static const char *what, *of = "data";
static MPI_Request request;

static void fill(unsigned char* to, int bytes, unsigned seed) {
  for (int i = 0; i < bytes; ++i) {
    seed = seed * 1103515245u + 12345u;
    to[i] = (unsigned char)(seed >> 16);
  }
}

/* Small numbers: sums and products are exact in whatever order. */
static void fill_numbers(MPI_Datatype type, int count) {
  for (int i = 0; i < count; ++i) {
    const int value = 1 + (rank * 7 + i * 3) % 3;
    if (type == MPI_FLOAT)
      ((float*)input)[i] = (float)value;
    else if (type == MPI_DOUBLE)
      ((double*)input)[i] = value;
    else if (type == MPI_LONG_DOUBLE)
      ((long double*)input)[i] = value;
    else if (type == MPI_INT)
      ((int*)input)[i] = value;
    else if (type == MPI_LONG)
      ((long*)input)[i] = value;
    else if (type == MPI_SHORT)
      ((short*)input)[i] = (short)value;
    else if (type == MPI_UNSIGNED_CHAR)
      input[i] = (unsigned char)value;
    else if (type == MPI_C_DOUBLE_COMPLEX)
      ((double*)input)[2 * i] = value, ((double*)input)[2 * i + 1] = 0;
    else if (type == MPI_2INT)
      ((int*)input)[2 * i] = value, ((int*)input)[2 * i + 1] = rank;
    else if (type == MPI_DOUBLE_INT) {
      struct {
        double value;
        int place;
      } pair;
      memset(&pair, 0, sizeof pair);
      pair.value = value, pair.place = rank;
      memcpy(input + (size_t)i * sizeof pair, &pair, sizeof pair);
    }
  }
}

static void start(void) {
  memset(ours, 0xee, sizeof ours);
  memset(theirs, 0xee, sizeof theirs);
}
static void in_place_from(const unsigned char* from, int bytes) {
  memcpy(ours, from, (size_t)bytes);
  memcpy(theirs, from, (size_t)bytes);
}
static int padded; /* elements are a double, an int and a gap, which may have any content */
static void end(int detail) {
  for (int i = 12; padded && i < BYTES_MAX; i += 16) memset(ours + i, 0, 4), memset(theirs + i, 0, 4);
  int at = 0;
  while (at < BYTES_MAX && ours[at] == theirs[at]) ++at;
  CHECK(at == BYTES_MAX, "%s%s of %s: results differ from byte %d on (%d of %d ranks, case %d)",
        later ? "non-blocking " : "", what, of, at, rank, ranks, detail);
}

/* In place, what lies behind a scattered result is not defined. */
static void end_prefix(int bytes) {
  memset(ours + bytes, 0, sizeof ours - (size_t)bytes);
  memset(theirs + bytes, 0, sizeof theirs - (size_t)bytes);
  end(bytes);
}

/* The function, or its non-blocking form and a wait; then PMPI's. */
#define BOTH(NAME, INAME, ...)                                                             \
  do {                                                                                     \
    unsigned char* recv = ours;                                                            \
    what = "MPI_" #NAME;                                                                   \
    if (later) {                                                                           \
      CHECK(MPI_I##INAME(__VA_ARGS__, comm, &request) == MPI_SUCCESS, "%s refused", what); \
      CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "%s failed", what);      \
    } else {                                                                               \
      CHECK(MPI_##NAME(__VA_ARGS__, comm) == MPI_SUCCESS, "%s failed", what);              \
    }                                                                                      \
    recv = theirs;                                                                         \
    CHECK(PMPI_##NAME(__VA_ARGS__, comm) == MPI_SUCCESS, "P%s failed", what);              \
  } while (0)

/* x -> a x + b modulo 251, as one int; one after the other: the order of ranks matters, that of brackets does not. */
static void compose(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) {
    const int x = ((int*)in)[i], y = ((int*)inout)[i];
    const int a = (x / 251) * (y / 251) % 251, b = ((x / 251) * (y % 251) + x % 251) % 251;
    ((int*)inout)[i] = a * 251 + b;
  }
}
static MPI_Op own;

static void reductions(const char* name, MPI_Datatype type, int size, MPI_Op op, int count) {
  of = name;
  int counts[8];
  padded = type == MPI_DOUBLE_INT;
  fill_numbers(type, count * ranks);
  if (op == own)
    for (int i = 0; i < count * ranks; ++i) ((int*)input)[i] = (300 + rank * 7919 + i * 31) % (251 * 251);
  start();
  BOTH(Allreduce, allreduce, input, recv, count, type, op);
  end(count);
  start();
  in_place_from(input, count * size);
  BOTH(Allreduce, allreduce, MPI_IN_PLACE, recv, count, type, op);
  end(count);
  for (int root = 0; root < ranks; ++root) {
    start();
    BOTH(Reduce, reduce, input, recv, count, type, op, root);
    end(count);
    /* MPICH 4.0.2 itself crashes in place where the root is not rank 0. */
    start();
    if (rank == root) memcpy(ours, input, (size_t)(count * size));
    if (later) {
      MPI_Ireduce(rank == root ? MPI_IN_PLACE : input, ours, count, type, op, root, comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Reduce(rank == root ? MPI_IN_PLACE : input, ours, count, type, op, root, comm);
    }
    PMPI_Reduce(input, theirs, count, type, op, root, comm);
    end(count);
  }
  start();
  BOTH(Reduce_scatter_block, reduce_scatter_block, input, recv, count, type, op);
  end(count);
  start();
  in_place_from(input, count * size * ranks);
  BOTH(Reduce_scatter_block, reduce_scatter_block, MPI_IN_PLACE, recv, count, type, op);
  end_prefix(count * size);
  for (int i = 0; i < ranks; ++i) counts[i] = (count * (i + 1)) / ranks;
  start();
  BOTH(Reduce_scatter, reduce_scatter, input, recv, counts, type, op);
  end(count);
  start();
  in_place_from(input, count * size * ranks);
  BOTH(Reduce_scatter, reduce_scatter, MPI_IN_PLACE, recv, counts, type, op);
  end_prefix(counts[rank] * size);
  start();
  BOTH(Scan, scan, input, recv, count, type, op);
  end(count);
  start();
  in_place_from(input, count * size);
  BOTH(Scan, scan, MPI_IN_PLACE, recv, count, type, op);
  end(count);
  start();
  BOTH(Exscan, exscan, input, recv, count, type, op);
  if (rank > 0) end(count);
  start();
  in_place_from(input, count * size);
  BOTH(Exscan, exscan, MPI_IN_PLACE, recv, count, type, op);
  if (rank > 0) end(count);
  padded = 0;
}

/* More than is gathered: by tutti's own operators, else MPI's. */
static void long_prefixes(void) {
  const int count = 60000;
  of = "60000 INT MPI_SUM";
  fill_numbers(MPI_INT, count);
  start();
  BOTH(Scan, scan, input, recv, count, MPI_INT, MPI_SUM);
  end(count);
  start();
  in_place_from(input, count * 4);
  BOTH(Scan, scan, MPI_IN_PLACE, recv, count, MPI_INT, MPI_SUM);
  end(count);
  start();
  BOTH(Exscan, exscan, input, recv, count, MPI_INT, MPI_SUM);
  CHECK(rank > 0 || ours[0] == 0xee, "MPI_Exscan wrote on rank 0");
  if (rank > 0) end(count);
  start();
  in_place_from(input, count * 4);
  BOTH(Exscan, exscan, MPI_IN_PLACE, recv, count, MPI_INT, MPI_SUM);
  if (rank > 0) end(count);
  of = "30000 2INT MPI_MINLOC";
  fill_numbers(MPI_2INT, count / 2);
  start();
  BOTH(Scan, scan, input, recv, count / 2, MPI_2INT, MPI_MINLOC);
  end(count);
}

static void all_reductions(void) {
  static const int counts[] = {0, 1, 7, 501};
  const struct {
    MPI_Datatype type;
    int size;
  } numbers[] = {{MPI_INT, 4}, {MPI_FLOAT, 4}, {MPI_DOUBLE, 8}, {MPI_LONG, 8}, {MPI_UNSIGNED_CHAR, 1}, {MPI_SHORT, 2}};
  const MPI_Op arithmetic[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN};
  MPI_Op_create(compose, 0, &own);
  for (int c = 0; c < 4; ++c) {
    for (int t = 0; t < 6; ++t)
      for (int o = 0; o < 4; ++o)
        if (t < 2 || (t + o) % 3 == 0)
          reductions("numbers", numbers[t].type, numbers[t].size, arithmetic[o], counts[c]);
    reductions("INT MPI_BXOR", MPI_INT, 4, MPI_BXOR, counts[c]);
    reductions("INT MPI_LAND", MPI_INT, 4, MPI_LAND, counts[c]);
    reductions("C_DOUBLE_COMPLEX MPI_SUM", MPI_C_DOUBLE_COMPLEX, 16, MPI_SUM, counts[c]);
    reductions("C_DOUBLE_COMPLEX MPI_PROD", MPI_C_DOUBLE_COMPLEX, 16, MPI_PROD, counts[c]);
    reductions("2INT MPI_MINLOC", MPI_2INT, 8, MPI_MINLOC, counts[c]);
    reductions("DOUBLE_INT MPI_MAXLOC", MPI_DOUBLE_INT, 16, MPI_MAXLOC, counts[c]);
    if (MPI_INTEGER != MPI_DATATYPE_NULL) reductions("INTEGER MPI_SUM", MPI_INTEGER, 4, MPI_SUM, counts[c]);
    reductions("INT own", MPI_INT, 4, own, counts[c]);
  }
  fill_numbers(MPI_INT, 40000);
  start();
  BOTH(Allreduce, allreduce, input, recv, 40000, MPI_INT, MPI_SUM);
  end(40000);
  start();
  BOTH(Allreduce, allreduce, input, recv, 40000, MPI_INT, MPI_BOR);
  end(40000);
  start();
  BOTH(Allreduce, allreduce, input, recv, 20000, MPI_2INT, MPI_MAXLOC);
  end(40000); /* too long: MPI's */
  long_prefixes();
  MPI_Op_free(&own);
}

/* Types of two ints each: the same signature, in memory dense, with a gap, or in the other order. */
static MPI_Datatype pairs[4];
static int spans[4]; /* bytes from one element to the next */

static void make_pairs(void) {
  const int first = 0;
  MPI_Datatype gap, parts[2] = {MPI_INT, MPI_INT}, whole;
  MPI_Aint ascending[] = {0, 4};
  int lengths[] = {1, 1};
  MPI_Aint places[] = {4, 0};
  MPI_Type_contiguous(2, MPI_INT, &pairs[0]);
  MPI_Type_vector(2, 1, 2, MPI_INT, &gap);
  MPI_Type_create_resized(gap, 0, 16, &pairs[1]);
  MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &pairs[2]);
  MPI_Type_create_indexed_block(1, 1, &first, MPI_INT, &parts[1]);
  MPI_Type_create_struct(2, lengths, ascending, parts, &whole);
  MPI_Type_dup(whole, &pairs[3]);
  spans[0] = spans[2] = spans[3] = 8, spans[1] = 16;
  for (int i = 0; i < 4; ++i) MPI_Type_commit(&pairs[i]);
  MPI_Type_free(&gap), MPI_Type_free(&parts[1]), MPI_Type_free(&whole);
}

/* `shift` gives each rank other types to send and to receive; count: pairs of a block. */
static void moves(int count, int shift) {
  const int root = (count + shift) % ranks;
  const int mine = (rank + shift) % 5, from = (rank + shift + 1) % 4;
  const MPI_Datatype st = mine == 4 ? MPI_INT : pairs[mine], rt = pairs[from];
  const int sn = mine == 4 ? 2 * count : count, span = spans[from], detail = count * 10 + shift;
  fill(input, BYTES_MAX, 17u + (unsigned)rank);
  MPI_Barrier(comm);
  start();
  in_place_from(input, BYTES_MAX / 4);
  BOTH(Bcast, bcast, recv, sn, st, root);
  end(detail);
  start();
  BOTH(Gather, gather, input, sn, st, recv, count, rt, root);
  end(detail);
  start();
  BOTH(Scatter, scatter, input, sn, st, recv, count, rt, root);
  end(detail);
  start();
  BOTH(Allgather, allgather, input, sn, st, recv, count, rt);
  end(detail);
  start();
  BOTH(Alltoall, alltoall, input, sn, st, recv, count, rt);
  end(detail);
  start();
  in_place_from(input, ranks * count * span);
  BOTH(Gather, gather, rank == root ? MPI_IN_PLACE : input, sn, st, recv, count, rt, root);
  end(detail);
  start();
  in_place_from(input, ranks * count * span);
  BOTH(Allgather, allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, count, rt);
  end(detail);
  start();
  in_place_from(input, ranks * count * span);
  BOTH(Alltoall, alltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, count, rt);
  end(detail);
  start();
  BOTH(Scatter, scatter, input, sn, st, rank == root ? (void*)MPI_IN_PLACE : recv, count, rt, root);
  end(detail);
}

/* A count per rank; blocks lie in reverse order, with an element between them. */
static void moves_v(int count, int shift) {
  const int root = (count + shift) % ranks, detail = count * 10 + shift;
  const int mine = (rank + shift) % 5, from = (rank + shift + 1) % 4;
  const MPI_Datatype st = mine == 4 ? MPI_INT : pairs[mine], rt = pairs[from];
  const int send_span = mine == 4 ? 8 : spans[mine], span = spans[from];
  int sc[8], sd[8], rc[8], rd[8], sw[8], rw[8], ones[8], one_at[8];
  MPI_Datatype sts[8], rts[8];
  const int per = mine == 4 ? 2 : 1;
  for (int i = 0; i < ranks; ++i) {
    sc[i] = ((count + rank + i) % 4) * per, rc[i] = (count + rank + i) % 4; /* alike from both ends */
    sd[i] = (ranks - 1 - i) * 5 * per, rd[i] = (ranks - 1 - i) * 5;
    sw[i] = sd[i] / per * send_span, rw[i] = rd[i] * span;
    sts[i] = st, rts[i] = rt;
    ones[i] = (count + i) % 4, one_at[i] = (ranks - 1 - i) * 5;
  }
  const int own = ((count + rank) % 4) * per;
  int root_counts[8];
  for (int i = 0; i < ranks; ++i) root_counts[i] = ones[i] * per;
  start();
  BOTH(Alltoallv, alltoallv, input, sc, sd, st, recv, rc, rd, rt);
  end(detail);
  start();
  BOTH(Alltoallw, alltoallw, input, sc, sw, sts, recv, rc, rw, rts);
  end(detail);
  start();
  BOTH(Allgatherv, allgatherv, input, own, st, recv, ones, one_at, rt);
  end(detail);
  start();
  BOTH(Gatherv, gatherv, input, own, st, recv, ones, one_at, rt, root);
  end(detail);
  start();
  BOTH(Scatterv, scatterv, input, root_counts, sd, st, recv, ones[rank], rt, root);
  end(detail);
  start();
  in_place_from(input, BYTES_MAX / 4);
  BOTH(Allgatherv, allgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, ones, one_at, rt);
  end(detail);
  start();
  in_place_from(input, BYTES_MAX / 4);
  BOTH(Gatherv, gatherv, rank == root ? MPI_IN_PLACE : input, own, st, recv, ones, one_at, rt, root);
  end(detail);
  start();
  in_place_from(input, BYTES_MAX / 4);
  BOTH(Alltoallv, alltoallv, MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, recv, rc, rd, rt);
  end(detail);
}

/* A predefined type with a gap, as data. */
static void gaps(void) {
  static const int places[] = {12, 20};
  const MPI_Datatype types[] = {MPI_DOUBLE_INT, MPI_LONG_DOUBLE_INT};
  fill(input, BYTES_MAX, 5u + (unsigned)rank);
  for (int t = 0; t < 2; ++t) {
    start();
    BOTH(Allgather, allgather, input, 1, types[t], recv, 1, types[t]);
    for (int i = 0; i < ranks; ++i) {
      const int at = t == 0 ? 16 * i : 32 * i;
      memset(ours + at + places[t], 0, t == 0 ? 4 : 12), memset(theirs + at + places[t], 0, t == 0 ? 4 : 12);
      if (t == 1) memset(ours + at + 10, 0, 6), memset(theirs + at + 10, 0, 6); /* of a long double */
    }
    end(t);
  }
}

/* A type that has the address itself. */
static void from_bottom(void) {
  for (int time = 0; time < 2; ++time) {
    unsigned char* const recv = time == 0 ? ours : theirs;
    MPI_Datatype there;
    MPI_Aint address;
    int length = 64;
    if (time == 0) start();
    memcpy(recv, input, 64);
    MPI_Get_address(recv, &address);
    MPI_Type_create_hindexed(1, &length, &address, MPI_BYTE, &there);
    MPI_Type_commit(&there);
    what = "MPI_Bcast from MPI_BOTTOM";
    if (time == 1) {
      PMPI_Bcast(MPI_BOTTOM, 1, there, ranks - 1, comm);
    } else if (later) {
      MPI_Ibcast(MPI_BOTTOM, 1, there, ranks - 1, comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Bcast(MPI_BOTTOM, 1, there, ranks - 1, comm);
    }
    MPI_Type_free(&there);
  }
  end(0);
}

static void all_on(MPI_Comm on) {
  comm = on;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  MPI_Barrier(comm); /* from here on non-blocking calls are served, too */
  for (later = 0; later < 2; ++later) {
    static const int counts[] = {0, 1, 3, 1000};
    all_reductions();
    of = "data";
    gaps();
    from_bottom();
    for (int c = 0; c < 4; ++c)
      for (int shift = 0; shift < 5; ++shift) moves(counts[c], shift), moves_v(counts[c], shift);
  }
}

int main(int argc, char** argv) {
  int world_rank = 0, threads = 0;
  MPI_Comm part;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads); /* checks more than MPI_Init */
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  make_pairs();
  all_on(MPI_COMM_WORLD);
  /* In the other order, and without rank 0. */
  MPI_Comm_split(MPI_COMM_WORLD, world_rank == 0 ? MPI_UNDEFINED : 0, -world_rank, &part);
  if (part != MPI_COMM_NULL) {
    all_on(part);
    MPI_Comm_free(&part);
  }
  all_on(MPI_COMM_SELF);
  for (int i = 0; i < 4; ++i) MPI_Type_free(&pairs[i]);
  MPI_Finalize();
  if (world_rank == 0) printf("all alike\n");
  return 0;
}
