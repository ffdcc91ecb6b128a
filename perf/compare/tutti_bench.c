/* tutti with the protocol. COMPARE_MALLOC=1: with memory that peers cannot map; COMPARE_REGISTER=1: with such memory,
 * registered. */
#include "protocol.h" /* first: it asks for GNU's declarations */

#include <tutti/tutti.h>

#ifdef COMPARE_INTEGERS
#define TYPE tuttiInt32
#elif defined COMPARE_BFLOAT16
#define TYPE tuttiBfloat16
#else
#define TYPE tuttiFloat32
#endif

static tuttiComm_t comm;

static void must(tuttiResult_t result, const char* call) {
  if (result == tuttiSuccess) return;
  fprintf(stderr, "compare, rank %d: %s: %s: %s\n", my_rank, call, tuttiGetErrorString(result),
          tuttiGetLastError(comm));
  exit(1);
}

static int supports(Kind kind, size_t bytes) {
  (void)bytes;
  return kind <= BARRIER;
}

static void call(Kind kind, size_t bytes) {
  const size_t count = bytes / sizeof(Element), block = count / (size_t)rank_count;
  switch (kind) {
    case ALL_REDUCE:
      must(tuttiAllReduce(send_buffer, recv_buffer, count, TYPE, tuttiSum, comm, NULL), "all-reduce");
      break;
    case REDUCE_SCATTER:
      must(tuttiReduceScatter(send_buffer, recv_buffer, block, TYPE, tuttiSum, comm, NULL), "reduce-scatter");
      break;
    case ALL_GATHER: must(tuttiAllGather(send_buffer, recv_buffer, block, TYPE, comm, NULL), "all-gather"); break;
    case BROADCAST: /* root in place, as for the other libraries */
      must(tuttiBroadcast(send_buffer, my_rank == 0 ? send_buffer : recv_buffer, count, TYPE, 0, comm, NULL),
           "broadcast");
      break;
    case ALLTOALL: must(tuttiAllToAll(send_buffer, recv_buffer, block, TYPE, comm, NULL), "all-to-all"); break;
    case REDUCE: must(tuttiReduce(send_buffer, recv_buffer, count, TYPE, tuttiSum, 0, comm, NULL), "reduce"); break;
    default: must(tuttiBarrier(comm, NULL), "barrier");
  }
}
static void barrier(void) {
  must(tuttiBarrier(comm, NULL), "barrier");
}

static void* allocate(size_t bytes) {
  void* at = NULL;
  must(tuttiMemAlloc(&at, bytes), "allocation");
  return at;
}

static void* allocate_registered(size_t bytes) {
  void *const at = own_pages(bytes), *handle = NULL;
  must(tuttiCommRegister(comm, at, bytes, &handle), "registration");
  return at;
}

int main(void) {
  void* (*const ordinary)(size_t) = atoi(setting("COMPARE_REGISTER", "0")) != 0 ? allocate_registered : NULL;
  const int mapped = ordinary == NULL && atoi(setting("COMPARE_MALLOC", "0")) == 0;
  const Library library = {supports, mapped ? allocate : ordinary, NULL, call, barrier, 1};
  tuttiUniqueId id;
  join_board(atoi(setting("COMPARE_RANK", "-1")), atoi(setting("COMPARE_RANKS", "-1")));
  if (my_rank == 0) {
    must(tuttiGetUniqueId(&id), "id");
    memcpy(board->blob, &id, sizeof id);
  }
  align_ranks();
  memcpy(&id, board->blob, sizeof id);
  must(tuttiCommInitRank(&comm, rank_count, id, my_rank), "initialisation");
  run(&library);
  must(tuttiCommDestroy(comm), "destroy");
  return 0;
}
