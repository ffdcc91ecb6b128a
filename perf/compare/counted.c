/* The calls whose instructions `compare --check` counts: two ranks, started by it under callgrind.
 *
 * A count must not depend on how long a rank waits. So rank 0, whose instructions are counted, calls only once rank 1
 * has published its part, and waits for that outside of the counted code. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tutti/tutti.h>
#include <valgrind/callgrind.h>

enum { WARM = 40, BATCHES = 10, CALLS = 24, BYTES = 4096, PUBLISHING_US = 500 };

typedef struct {
  unsigned begun __attribute__((aligned(64))); /* calls that rank 1 has begun */
  unsigned ended __attribute__((aligned(64))); /* calls that rank 0 has ended */
  tuttiUniqueId id;
  unsigned id_is_set;
} Shared;

static Shared* shared;
static tuttiComm_t comm;
static float *input, *output;
static int rank;

static void must(tuttiResult_t result) {
  if (result == tuttiSuccess) return;
  fprintf(stderr, "counted, rank %d: %s: %s\n", rank, tuttiGetErrorString(result), tuttiGetLastError(comm));
  exit(1);
}

static void all_reduce_8(void) {
  must(tuttiAllReduce(input, output, 2, tuttiFloat32, tuttiSum, comm, NULL));
}
static void grouped(void) { /* with a plan, unlike the others */
  must(tuttiGroupStart());
  must(tuttiAllReduce(input, output, 2, tuttiFloat32, tuttiSum, comm, NULL));
  must(tuttiGroupEnd());
}
static void all_gather_8(void) {
  must(tuttiAllGather(input, output, 2, tuttiFloat32, comm, NULL));
}
static void all_to_all_1k(void) {
  must(tuttiAllToAll(input, output, 128, tuttiFloat32, comm, NULL));
}
static void broadcast_8(void) {
  must(tuttiBroadcast(input, output, 2, tuttiFloat32, 1, comm, NULL));
}
static void barrier(void) {
  must(tuttiBarrier(comm, NULL));
}

static const struct {
  const char* name;
  void (*make)(void);
} calls[] = {{"all_reduce 8 B", all_reduce_8},
             {"all_gather 8 B", all_gather_8},
             {"all_to_all 1 KB", all_to_all_1k},
             {"broadcast 8 B at a leaf", broadcast_8},
             {"barrier", barrier},
             {"all_reduce 8 B in a group", grouped}};

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Time for rank 1 to publish the call that it has begun. Where it is too short, polls are counted too: the least count
 * of a batch has few of them. */
static void let_publish(void) {
  const double begin = now_us();
  while (now_us() < begin + PUBLISHING_US) {
  }
}

static void make(void (*call)(void), int counted) {
  static unsigned number;
  ++number;
  if (rank == 1) {
    while (__atomic_load_n(&shared->ended, __ATOMIC_ACQUIRE) != number - 1) {
    }
    __atomic_store_n(&shared->begun, number, __ATOMIC_RELEASE);
    call();
    return;
  }
  while (__atomic_load_n(&shared->begun, __ATOMIC_ACQUIRE) != number)
    if (waitpid(-1, NULL, WNOHANG) > 0) exit(1); /* rank 1 has said why */
  let_publish();
  if (counted) CALLGRIND_TOGGLE_COLLECT;
  call();
  if (counted) CALLGRIND_TOGGLE_COLLECT;
  __atomic_store_n(&shared->ended, number, __ATOMIC_RELEASE);
}

int main(void) {
  shared = (Shared*)mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  const pid_t parent = getpid(), child = fork();
  if (child < 0) return 1;
  rank = child == 0 ? 1 : 0;
  if (rank == 1 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)) return 1;
  if (rank == 0) {
    must(tuttiGetUniqueId(&shared->id));
    __atomic_store_n(&shared->id_is_set, 1, __ATOMIC_RELEASE);
  }
  while (!__atomic_load_n(&shared->id_is_set, __ATOMIC_ACQUIRE)) sched_yield();
  must(tuttiCommInitRank(&comm, 2, shared->id, rank));
  must(tuttiMemAlloc((void**)&input, BYTES));
  must(tuttiMemAlloc((void**)&output, BYTES));
  memset(input, 0, BYTES);
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; ++i) {
    for (int k = 0; k < WARM; ++k) make(calls[i].make, 0);
    for (int batch = 0; batch < BATCHES; ++batch) {
      CALLGRIND_ZERO_STATS;
      for (int k = 0; k < CALLS; ++k) make(calls[i].make, 1);
      if (rank == 0) CALLGRIND_DUMP_STATS_AT(calls[i].name);
    }
  }
  must(tuttiCommDestroy(comm));
  if (rank == 1) return 0;
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
