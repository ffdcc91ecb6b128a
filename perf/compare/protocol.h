/* The protocol that measures every library in the same way: data, alignment of the ranks, samples, and output rows.
 *
 * Each program fills a Library and calls run(). Ranks share a board, a file that COMPARE_BOARD names, which has the
 * barrier before each sample and the samples themselves: neither uses the library under test.
 *
 * Two modes: sync, where a sample is one call with all ranks aligned just before, and batch, where it is BATCH calls
 * back to back, divided by BATCH (small sizes only). A sample is the time of the slowest rank. Rows on standard output:
 *   collective,ranks,bytes,mode,samples,median_us,min_us,max_us,wrong
 * With COMPARE_FIRST=1 there are no such samples: one row "start" says how long the library's initialisation took, with
 * all ranks aligned before it, and one row of mode "first" how long the first call of each collective, at the first
 * size. The first row, and one after each size, "distance", tell how far the cores of ranks 0 and 1 are from each
 * other: on virtual machines cores move, and only times at one distance can be compared. Sizes are nccl-tests': the
 * larger of a rank's two buffers, rounded up to whole elements per rank. */
#ifndef COMPARE_PROTOCOL_H
#define COMPARE_PROTOCOL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RANKS = 64, MAX_SAMPLES = 2000, MIN_SAMPLES = 5, BATCH = 20, BATCH_BYTES_MAX = 65536 };

/* The last eight are limits of the machine, not collectives. */
typedef enum {
  ALL_REDUCE,
  REDUCE_SCATTER,
  ALL_GATHER,
  BROADCAST,
  ALLTOALL,
  REDUCE,
  BARRIER,
  COPY,
  COPY_NT,
  SUM_NT,
  EXCHANGE,
  STREAM,
  STREAM_HALF,
  ONE_WAY,
  PING,
  KINDS
} Kind;
static const char* const kind_names[KINDS] = {"all_reduce", "reduce_scatter", "all_gather",  "broadcast", "alltoall",
                                              "reduce",     "barrier",        "copy",        "copy_nt",   "sum_nt",
                                              "exchange",   "stream",         "stream_half", "one_way",   "ping"};

typedef struct {
  int (*supports)(Kind kind, size_t bytes);
  void* (*allocate)(size_t bytes);          /* NULL: pages of this process */
  void (*prepare)(Kind kind, size_t bytes); /* NULL: nothing to do before the first call of a cell */
  void (*call)(Kind kind, size_t bytes);
  void (*barrier)(void);
  int broadcasts_in_place; /* root's result is its send buffer */
} Library;

typedef struct {
  uint32_t arrived __attribute__((aligned(64)));
  uint32_t generation __attribute__((aligned(64)));
  uint32_t samples __attribute__((aligned(64)));
  uint32_t blob_is_set;
  char blob[256]; /* information that a library's ranks need to connect */
  uint64_t flags[MAX_RANKS][8] __attribute__((aligned(64)));
  uint64_t wrong[MAX_RANKS];
  double seconds[MAX_RANKS][MAX_SAMPLES];
} Board;

#ifdef COMPARE_INTEGERS /* for guests, which emulate floating point at a sixtieth of the speed */
typedef int32_t Element;
static Element element(int value) {
  return value;
}
#elif defined COMPARE_BFLOAT16
typedef uint16_t Element;
static Element element(int value) { /* exact up to 256 */
  const float wide = (float)value;
  uint32_t bits;
  memcpy(&bits, &wide, sizeof bits);
  return (Element)(bits >> 16);
}
#else
typedef float Element;
static Element element(int value) {
  return (float)value;
}
#endif

static Board* board;
static double begun; /* when all ranks were about to start the library */
static int my_rank, rank_count, rank_crowded;
static Element *send_buffer, *recv_buffer;

static void die(const char* what) {
  fprintf(stderr, "compare, rank %d: %s\n", my_rank, what);
  exit(1);
}
static const char* setting(const char* name, const char* otherwise) {
  const char* value = getenv(name);
  return value != NULL && *value != 0 ? value : otherwise;
}
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void align_ranks(void);

/* Before the library starts: joins the board and pins the rank to its core. */
static void join_board(int rank, int ranks) {
  const int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t set;
  int file;
  my_rank = rank;
  rank_count = ranks;
  rank_crowded = ranks > cores;
  if (rank < 0 || ranks < 1 || ranks > MAX_RANKS) die("rank or number of ranks missing");
  CPU_ZERO(&set);
  CPU_SET(rank % cores, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) perror("sched_setaffinity");
  file = open(setting("COMPARE_BOARD", ""), O_RDWR);
  if (file < 0 || ftruncate(file, sizeof(Board)) != 0) die("no board: start through perf/compare/compare");
  board = (Board*)mmap(NULL, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (board == MAP_FAILED) die("cannot map the board");
  close(file);
  align_ranks();
  begun = now();
}

static int only_first_calls(void) {
  return atoi(setting("COMPARE_FIRST", "0")) != 0;
}

static void align_ranks(void) {
  const uint32_t generation = __atomic_load_n(&board->generation, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&board->arrived, 1, __ATOMIC_ACQ_REL) == (uint32_t)rank_count) {
    __atomic_store_n(&board->arrived, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&board->generation, generation + 1, __ATOMIC_RELEASE);
    return;
  }
  for (unsigned spins = 0; __atomic_load_n(&board->generation, __ATOMIC_ACQUIRE) == generation; ++spins)
    if (rank_crowded || spins > 100000) sched_yield();
}

/* ---- data */

static int per_rank(Kind kind) {
  return kind == REDUCE_SCATTER || kind == ALL_GATHER || kind == ALLTOALL;
}
static size_t whole_bytes(Kind kind, size_t bytes) {
  const size_t unit = sizeof(Element) * (per_rank(kind) ? (size_t)rank_count : 1);
  return (bytes + unit - 1) / unit * unit;
}

/* Small whole numbers: every sum of them is exact. */
static int value(int rank, size_t i) {
  return (int)(((uint32_t)i * 7u + (uint32_t)rank * 13u + (uint32_t)(i >> 10)) % 31u);
}
static Element input(int rank, size_t i) {
  return element(value(rank, i));
}
static Element input_sum(size_t i) {
  int sum = 0;
  for (int rank = 0; rank < rank_count; ++rank) sum += value(rank, i);
  return element(sum);
}
static Element expected(Kind kind, size_t count, size_t block, size_t i) {
  const size_t own = (size_t)my_rank * block, half = count / 2;
  switch (kind) {
    case REDUCE:
    case ALL_REDUCE: return input_sum(i);
    case REDUCE_SCATTER: return input_sum(own + i);
    case ALL_GATHER: return input((int)(i / block), i % block);
    case ALLTOALL: return input((int)(i / block), own + i % block);
    case BROADCAST: return input(0, i);
    case STREAM:
    case STREAM_HALF: return input(1 - my_rank, i);
    case ONE_WAY: return input(0, i);
    case SUM_NT: return element(value(my_rank, i % half) + value(my_rank, half + i % half));
    default: return input(my_rank, i); /* a copy */
  }
}
static size_t count_wrong(Kind kind, size_t bytes, const Element* result) {
  const size_t count = bytes / sizeof(Element), block = count / (size_t)rank_count;
  const size_t results = kind == REDUCE_SCATTER || kind == STREAM_HALF ? block
                         : kind == ONE_WAY && my_rank == 0             ? 0
                         : kind == REDUCE && my_rank != 0              ? 0
                                                                       : count;
  size_t wrong = 0;
  for (size_t i = 0; i < results; ++i) wrong += result[i] != expected(kind, count, block, i);
  return wrong;
}
static void* own_pages(size_t bytes) {
  const size_t huge = 2u << 20, length = (bytes + huge - 1) / huge * huge + huge;
  char* at = (char*)mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) die("no memory");
  at += (huge - (uintptr_t)at % huge) % huge;
  madvise(at, length - huge, MADV_HUGEPAGE); /* as good allocators do */
  return at;
}

/* ---- measuring */

static int compare_doubles(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}
static void report_as(const char* name, size_t bytes, const char* mode, uint32_t samples) {
  static double slowest[MAX_SAMPLES];
  uint64_t wrong = 0;
  double median;
  if (my_rank != 0) return;
  for (int rank = 0; rank < rank_count; ++rank) wrong += board->wrong[rank];
  for (uint32_t i = 0; i < samples; ++i) {
    slowest[i] = 0;
    for (int rank = 0; rank < rank_count; ++rank)
      if (board->seconds[rank][i] > slowest[i]) slowest[i] = board->seconds[rank][i];
  }
  qsort(slowest, samples, sizeof(double), compare_doubles);
  median = (slowest[(samples - 1) / 2] + slowest[samples / 2]) / 2;
  printf("%s,%d,%zu,%s,%u,%.4f,%.4f,%.4f,%llu\n", name, rank_count, bytes, mode, samples, median * 1e6,
         slowest[0] * 1e6, slowest[samples - 1] * 1e6, (unsigned long long)wrong);
  fflush(stdout);
}

static void report(Kind kind, size_t bytes, const char* mode, uint32_t samples) {
  report_as(kind_names[kind], bytes, mode, samples);
}

/* Rank 0 decides how many samples fit the budget; all ranks take as many. */
static uint32_t agree_on(double wanted, uint32_t least, uint32_t most) {
  if (my_rank == 0) board->samples = wanted > most ? most : wanted < least ? least : (uint32_t)wanted;
  align_ranks();
  const uint32_t agreed = board->samples;
  align_ranks();
  return agreed;
}
static void measure(const Library* library, Kind kind, size_t bytes, int batch) {
  const double budget = atof(setting("COMPARE_MS", "100")) * 1e-3;
  double begin;
  uint32_t warmups = bytes > (4u << 20) ? 2 : 10, samples;

  library->barrier();
  align_ranks();
  begin = now();
  for (uint32_t i = 0; i < warmups; ++i) library->call(kind, bytes);
  library->barrier();
  warmups = agree_on(0.2 * budget * warmups / (now() - begin), 1, 500);
  begin = now();
  for (uint32_t i = 0; i < warmups; ++i) library->call(kind, bytes);
  library->barrier();
  samples = agree_on(budget * warmups / (now() - begin) / batch, MIN_SAMPLES, MAX_SAMPLES);

  for (uint32_t i = 0; i < samples; ++i) {
    library->barrier();
    align_ranks();
    begin = now();
    for (int k = 0; k < batch; ++k) library->call(kind, bytes);
    board->seconds[my_rank][i] = (now() - begin) / batch;
  }
  library->barrier();
  align_ranks();
  report(kind, bytes, batch == 1 ? "sync" : "batch", samples);
  align_ranks();
}

static void check(const Library* library, Kind kind, size_t bytes) {
  const Element* result = kind == BROADCAST && my_rank == 0 && library->broadcasts_in_place ? send_buffer : recv_buffer;
  memset(recv_buffer, 0xff, bytes);
  library->barrier();
  align_ranks(); /* one-sided libraries write into a peer as soon as they start */
  library->call(kind, bytes);
  board->wrong[my_rank] = count_wrong(kind, bytes, result);
  if (board->wrong[my_rank] > 0)
    fprintf(stderr, "compare, rank %d: %s of %zu B: %llu wrong\n", my_rank, kind_names[kind], bytes,
            (unsigned long long)board->wrong[my_rank]);
}

/* The time of one way of a flag between ranks 0 and 1. */
static void measure_distance(void) {
  enum { SAMPLES = 11, ROUNDS = 100 };
  if (rank_count < 2 || rank_crowded) return;
  for (int i = 0; i < SAMPLES; ++i) {
    align_ranks();
    const double begin = now();
    for (int k = 0; k < ROUNDS && my_rank < 2; ++k) {
      const uint64_t mine = board->flags[my_rank][0] + 1;
      if (my_rank == 1)
        while (__atomic_load_n(&board->flags[0][0], __ATOMIC_ACQUIRE) < mine) {
        }
      __atomic_store_n(&board->flags[my_rank][0], mine, __ATOMIC_RELEASE);
      if (my_rank == 0)
        while (__atomic_load_n(&board->flags[1][0], __ATOMIC_ACQUIRE) < mine) {
        }
    }
    board->seconds[my_rank][i] = (now() - begin) / (2 * ROUNDS);
  }
  align_ranks();
  for (int rank = 0; rank < rank_count && my_rank == 0; ++rank) board->wrong[rank] = 0;
  if (my_rank == 0)
    for (int rank = 1; rank < rank_count; ++rank) memset(board->seconds[rank], 0, SAMPLES * sizeof(double));
  if (my_rank == 0) report_as("distance", 0, "sync", SAMPLES);
  align_ranks();
}

static int listed(const char* list, const char* name) {
  const size_t length = strlen(name);
  for (const char* at = strstr(list, name); at != NULL; at = strstr(at + 1, name))
    if ((at == list || at[-1] == ' ') && (at[length] == 0 || at[length] == ' ')) return 1;
  return 0;
}

/* The start, and the first call of each collective. */
static void run_first_calls(const Library* library, double started, const char* kinds, size_t size) {
  board->seconds[my_rank][0] = started;
  align_ranks();
  report_as("start", 0, "first", 1);
  align_ranks();
  for (int k = 0; k <= BARRIER; ++k) {
    const Kind kind = (Kind)k;
    const size_t bytes = kind == BARRIER ? 0 : whole_bytes(kind, size);
    if (!listed(kinds, kind_names[kind]) || !library->supports(kind, bytes)) continue;
    if (library->prepare != NULL) library->prepare(kind, bytes);
    align_ranks();
    const double begin = now();
    library->call(kind, bytes);
    board->seconds[my_rank][0] = now() - begin;
    align_ranks();
    report(kind, bytes, "first", 1);
    align_ranks();
  }
}

/* Runs all cells that COMPARE_COLLECTIVES and COMPARE_SIZES name and the library supports. */
static void run(const Library* library) {
  const char *kinds = setting("COMPARE_COLLECTIVES", ""), *sizes = setting("COMPARE_SIZES", "");
  const double started = now() - begun;
  size_t largest = 0;
  char* end;
  for (const char* at = sizes; *at != 0; at = *end != 0 ? end + 1 : end) {
    const size_t bytes = strtoull(at, &end, 10);
    if (end == at) die("COMPARE_SIZES is not a list of numbers");
    largest = bytes > largest ? bytes : largest;
  }
  largest += sizeof(Element) * MAX_RANKS;
  send_buffer = (Element*)(library->allocate != NULL ? library->allocate(largest) : own_pages(largest));
  recv_buffer = (Element*)(library->allocate != NULL ? library->allocate(largest) : own_pages(largest));
  for (size_t i = 0; i < largest / sizeof(Element); ++i) send_buffer[i] = input(my_rank, i);
  memset(recv_buffer, 0, largest);
  align_ranks();
  if (only_first_calls()) return run_first_calls(library, started, kinds, strtoull(sizes, &end, 10));
  measure_distance();

  for (int k = 0; k < KINDS; ++k) {
    const Kind kind = (Kind)k;
    const int sized = kind != BARRIER && kind != EXCHANGE && kind != PING;
    if (!listed(kinds, kind_names[kind])) continue;
    for (const char* at = sized ? sizes : "0"; *at != 0; at = *end != 0 ? end + 1 : end) {
      const size_t bytes = whole_bytes(kind, strtoull(at, &end, 10));
      if (!library->supports(kind, bytes)) continue;
      if (library->prepare != NULL) library->prepare(kind, bytes);
      board->wrong[my_rank] = 0;
      if (sized) check(library, kind, bytes);
      align_ranks();
      measure(library, kind, bytes, 1);
      if (bytes <= BATCH_BYTES_MAX) measure(library, kind, bytes, BATCH);
      measure_distance();
    }
  }
}

#endif
