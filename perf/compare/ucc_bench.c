/* UCC with the protocol. Collectives are persistent: initialised once per cell, then posted again and again, UCC's
 * fastest use. */
#include "protocol.h" /* first: it asks for GNU's declarations */

#include <ucc/api/ucc.h>

static ucc_context_h context;
static ucc_team_h team;
static ucc_coll_req_h request, barrier_request;

static void must(ucc_status_t status, const char* call) {
  if (status >= 0) return;
  fprintf(stderr, "compare, rank %d: %s: %s\n", my_rank, call, ucc_status_string(status));
  exit(1);
}

/* ---- how UCC's ranks exchange their addresses: through files, between two meetings on the board */

static ucc_status_t all_gather(void* from, void* to, size_t bytes, void* info, void** handle) {
  static int nth;
  char name[512];
  FILE* file;
  (void)info;
  snprintf(name, sizeof name, "%s.%d.%d", setting("COMPARE_BOARD", ""), nth, my_rank);
  file = fopen(name, "wb");
  if (file == NULL || fwrite(from, 1, bytes, file) != bytes) die("cannot write an address");
  fclose(file);
  align_ranks();
  for (int rank = 0; rank < rank_count; ++rank) {
    snprintf(name, sizeof name, "%s.%d.%d", setting("COMPARE_BOARD", ""), nth, rank);
    file = fopen(name, "rb");
    if (file == NULL || fread((char*)to + (size_t)rank * bytes, 1, bytes, file) != bytes) die("cannot read an address");
    fclose(file);
  }
  align_ranks();
  snprintf(name, sizeof name, "%s.%d.%d", setting("COMPARE_BOARD", ""), nth, my_rank);
  remove(name);
  ++nth;
  *handle = NULL;
  return UCC_OK;
}
static ucc_status_t test_gathered(void* handle) {
  (void)handle;
  return UCC_OK;
}
static ucc_status_t free_gathered(void* handle) {
  (void)handle;
  return UCC_OK;
}

static ucc_oob_coll_t exchange(void) {
  ucc_oob_coll_t oob;
  memset(&oob, 0, sizeof oob);
  oob.allgather = all_gather;
  oob.req_test = test_gathered;
  oob.req_free = free_gathered;
  oob.n_oob_eps = (uint32_t)rank_count;
  oob.oob_ep = (uint32_t)my_rank;
  return oob;
}

static void begin(void) {
  ucc_lib_config_h lib_config;
  ucc_context_config_h context_config;
  ucc_lib_h lib;
  ucc_lib_params_t lib_params = {.mask = UCC_LIB_PARAM_FIELD_THREAD_MODE, .thread_mode = UCC_THREAD_SINGLE};
  ucc_context_params_t context_params = {.mask = UCC_CONTEXT_PARAM_FIELD_OOB, .oob = exchange()};
  ucc_team_params_t team_params = {
      .mask = UCC_TEAM_PARAM_FIELD_OOB | UCC_TEAM_PARAM_FIELD_EP | UCC_TEAM_PARAM_FIELD_EP_RANGE,
      .oob = exchange(),
      .ep = (uint64_t)my_rank,
      .ep_range = UCC_COLLECTIVE_EP_RANGE_CONTIG};
  ucc_status_t status;
  must(ucc_lib_config_read(NULL, NULL, &lib_config), "configuration");
  must(ucc_init(&lib_params, lib_config, &lib), "initialisation");
  ucc_lib_config_release(lib_config);
  must(ucc_context_config_read(lib, NULL, &context_config), "configuration of the context");
  must(ucc_context_create(lib, &context_params, context_config, &context), "context");
  ucc_context_config_release(context_config);
  must(ucc_team_create_post(&context, 1, &team_params, &team), "team");
  while ((status = ucc_team_create_test(team)) == UCC_INPROGRESS) ucc_context_progress(context);
  must(status, "team");
}

/* ---- calls */

static int supports(Kind kind, size_t bytes) {
  (void)bytes;
  return kind <= BARRIER;
}

#ifdef COMPARE_BFLOAT16
#define TYPE UCC_DT_BFLOAT16
#else
#define TYPE UCC_DT_FLOAT32
#endif

static ucc_coll_buffer_info_t buffer(void* at, size_t count) {
  ucc_coll_buffer_info_t info = {at, count, TYPE, UCC_MEMORY_TYPE_HOST};
  return info;
}

static ucc_coll_args_t arguments(Kind kind, size_t bytes) {
  const size_t count = bytes / sizeof(Element), block = count / (size_t)rank_count;
  ucc_coll_args_t args;
  memset(&args, 0, sizeof args);
  args.mask = UCC_COLL_ARGS_FIELD_FLAGS;
  args.flags = UCC_COLL_ARGS_FLAG_PERSISTENT;
  args.op = UCC_OP_SUM;
  args.src.info = buffer(send_buffer, count);
  args.dst.info = buffer(recv_buffer, count);
  switch (kind) {
    case ALL_REDUCE: args.coll_type = UCC_COLL_TYPE_ALLREDUCE; break;
    case REDUCE_SCATTER:
      args.coll_type = UCC_COLL_TYPE_REDUCE_SCATTER;
      args.dst.info.count = block;
      break;
    case ALL_GATHER:
      args.coll_type = UCC_COLL_TYPE_ALLGATHER;
      args.src.info.count = block;
      break;
    case BROADCAST:
      args.coll_type = UCC_COLL_TYPE_BCAST;
      args.src.info = buffer(my_rank == 0 ? send_buffer : recv_buffer, count);
      break;
    case ALLTOALL: args.coll_type = UCC_COLL_TYPE_ALLTOALL; break;
    case REDUCE: args.coll_type = UCC_COLL_TYPE_REDUCE; break; /* to root 0 */
    default: args.coll_type = UCC_COLL_TYPE_BARRIER; args.src.info.count = args.dst.info.count = 0;
  }
  return args;
}

static ucc_coll_req_h initialised(Kind kind, size_t bytes) {
  ucc_coll_args_t args = arguments(kind, bytes);
  ucc_coll_req_h made;
  must(ucc_collective_init(&args, &made, team), kind_names[kind]);
  return made;
}

static void wait_for(ucc_coll_req_h posted) {
  ucc_status_t status;
  must(ucc_collective_post(posted), "post");
  while ((status = ucc_collective_test(posted)) == UCC_INPROGRESS) ucc_context_progress(context);
  must(status, "test");
}

static void prepare(Kind kind, size_t bytes) {
  if (request != NULL) ucc_collective_finalize(request);
  request = initialised(kind, bytes);
}
static void call(Kind kind, size_t bytes) {
  (void)kind;
  (void)bytes;
  wait_for(request);
}
static void barrier(void) {
  wait_for(barrier_request);
}

int main(void) {
  const Library library = {supports, NULL, prepare, call, barrier, 1};
  join_board(atoi(setting("COMPARE_RANK", "-1")), atoi(setting("COMPARE_RANKS", "-1")));
  begin();
  barrier_request = initialised(BARRIER, 0);
  run(&library);
  /* Ranks end together; UCC's own end takes a team that others still use from them. */
  align_ranks();
  fflush(NULL);
  _exit(0);
}
