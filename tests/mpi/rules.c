/* MPI's rules that the interposer must keep. Usage: rules PART, a part being a function below. */
#include <sched.h>
#include <string.h>

#include "check.h"

#define LONG (1 << 22)

static int rank, ranks;
static char *sent, *received;

/* A rank that waits in a collective call still has to get its messages through. */
static void progress(void) {
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  MPI_Request request;
  int one = 1, sum = 0;
  /* The first call of all also makes tutti's communicator. */
  for (int time = 0; time < 3; ++time) {
    sent[LONG - 1] = (char)(rank + time);
    if (rank == 0) {
      MPI_Isend(sent, LONG, MPI_CHAR, right, 7, MPI_COMM_WORLD, &request);
      if (time == 1)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      else
        MPI_Barrier(MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      if (left == 0) {
        MPI_Recv(received, LONG, MPI_CHAR, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(received[LONG - 1] == (char)time, "wrong message");
      }
      if (time == 1)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      else
        MPI_Barrier(MPI_COMM_WORLD);
    }
  }
  CHECK(sum == ranks, "sum is %d", sum);
}

/* Non-blocking calls and messages, waited for and tested together, by each of MPI's functions. */
static void mixed(void) {
  enum { requests_max = 6 };
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int way = 0; way < 8; ++way) {
    MPI_Request requests[requests_max];
    MPI_Status statuses[requests_max];
    int indices[requests_max], sums[3] = {0, 0, 0}, ones[3] = {1, 2, 3}, token = -1, done = 0, flag = 0, count = 0;
    MPI_Irecv(&token, 1, MPI_INT, left, way, MPI_COMM_WORLD, &requests[0]);
    MPI_Iallreduce(&ones[0], &sums[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[2]);
    MPI_Iallreduce(&ones[1], &sums[1], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[3]);
    MPI_Isend(&rank, 1, MPI_INT, right, way, MPI_COMM_WORLD, &requests[4]);
    MPI_Iallreduce(&ones[2], &sums[2], 1, MPI_INT, MPI_BAND, MPI_COMM_WORLD, &requests[5]);
    switch (way) {
      case 0: MPI_Waitall(requests_max, requests, MPI_STATUSES_IGNORE); break;
      case 1:
        for (int i = requests_max; i-- > 0;) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        break;
      case 2:
        for (; done < requests_max; ++done) {
          MPI_Waitany(requests_max, requests, &count, &statuses[0]);
          CHECK(count >= 0 && count < requests_max, "MPI_Waitany: index %d", count);
        }
        break;
      case 3:
        while (done < requests_max) {
          MPI_Waitsome(requests_max, requests, &count, indices, statuses);
          CHECK(count > 0, "MPI_Waitsome: %d", count);
          done += count;
        }
        break;
      case 4:
        while (!flag) MPI_Testall(requests_max, requests, &flag, statuses);
        break;
      case 5:
        for (; done < requests_max; done += flag) MPI_Testany(requests_max, requests, &count, &flag, MPI_STATUS_IGNORE);
        break;
      case 6:
        for (; done < requests_max; done += count) MPI_Testsome(requests_max, requests, &count, indices, statuses);
        break;
      default:
        for (int i = 0; i < requests_max; ++i, flag = 0) {
          while (!flag) MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
          for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
        }
    }
    for (int i = 0; i < requests_max; ++i) CHECK(requests[i] == MPI_REQUEST_NULL, "way %d: request %d is left", way, i);
    CHECK(token == left, "way %d: token %d", way, token);
    CHECK(sums[0] == ranks && sums[1] == 2 * ranks && sums[2] == 3, "way %d: %d %d %d", way, sums[0], sums[1], sums[2]);
  }
  /* A rank that waits for a message does not hold up the calls that it has started. */
  MPI_Request barrier;
  int token = rank;
  MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
  if (rank == 0) MPI_Recv(&token, 1, MPI_INT, 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&barrier, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(&token, 1, MPI_INT, 0, 99, MPI_COMM_WORLD);
}

static int deleted_sum;
static int fail_once(MPI_Comm comm, int key, void* value, void* extra) {
  int one = 1;
  (void)key, (void)extra;
  MPI_Allreduce(&one, &deleted_sum, 1, MPI_INT, MPI_SUM, comm);
  return (*(int*)value)++ == 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* A delete callback may still use the communicator; if it fails, the communicator stays. */
static void callbacks(void) {
  MPI_Comm comm;
  int key, calls = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &fail_once, &key, NULL);
  MPI_Comm_set_attr(comm, key, &calls);
  MPI_Barrier(comm);
  CHECK(MPI_Comm_free(&comm) != MPI_SUCCESS && comm != MPI_COMM_NULL, "a failing callback passed");
  CHECK(deleted_sum == ranks, "the callback's sum is %d", deleted_sum);
  CHECK(MPI_Barrier(comm) == MPI_SUCCESS, "the communicator is lost");
#ifdef OPEN_MPI /* MPICH 4.0.2 itself cannot free it any more */
  deleted_sum = 0;
  CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS && calls == 2 && deleted_sum == ranks, "it cannot be freed");
#endif
  MPI_Comm_free_keyval(&key);
}

/* Ranks start calls on two communicators in opposite orders; a non-blocking call before any blocking one. */
static void communicators(void) {
  MPI_Comm comms[2];
  MPI_Request requests[2];
  int sums[2] = {0, 0}, values[2] = {1, 10};
  for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int time = 0; time < 20; ++time) {
    for (int i = 0; i < 2; ++i) {
      const int which = (i + rank) % 2;
      MPI_Iallreduce(&values[which], &sums[which], 1, MPI_INT, MPI_SUM, comms[which], &requests[which]);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(sums[0] == ranks && sums[1] == 10 * ranks, "%d and %d", sums[0], sums[1]);
    if (time == 10)
      for (int i = 0; i < 2; ++i) MPI_Barrier(comms[i]);
  }
  for (int time = 0; time < 5; ++time) {
    MPI_Comm part;
    int sum = 0, size = 0;
    MPI_Comm_split(comms[0], (rank + time) % 2, rank, &part);
    MPI_Comm_size(part, &size);
    MPI_Allreduce(&values[0], &sum, 1, MPI_INT, MPI_SUM, part);
    CHECK(sum == size, "part of %d: %d", size, sum);
    MPI_Comm_free(&part);
  }
  /* In opposite orders, and one much later. */
  for (int i = 0; i < 2; ++i) {
    int token = 0;
    MPI_Comm_free(&comms[(i + rank) % 2]);
    if (i == 0 && rank == 0) MPI_Send(&token, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
    if (i == 0 && rank == 1) MPI_Recv(&token, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

/* The last rank makes its first call long after the others: tutti starts all the same. */
static void late(void) {
  int one = 1, sum = 0;
  const double until = MPI_Wtime() + 3; /* twice the limit of a start that the test sets */
  while (rank == ranks - 1 && MPI_Wtime() < until) sched_yield();
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == ranks, "sum is %d", sum);
}

static MPI_Comm blamed;
static int blame;
static void note(MPI_Comm* comm, int* code, ...) {
  blamed = *comm, blame = *code;
}

/* A rank that has no memory to pack its data leaves no others waiting. `first`: it is the communicator's first call. */
static void no_memory(int first) {
  int value = 0;
  MPI_Comm comm;
  MPI_Datatype large;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Type_vector(1 << 17, 1, 2, MPI_LONG, &large);
  MPI_Type_commit(&large);
  if (!first) MPI_Barrier(comm);
  const int code = MPI_Bcast(&value, rank == 1 ? 2147483647 : 1, rank == 1 ? large : MPI_INT, 1, comm);
  CHECK(code != MPI_SUCCESS, "a broadcast without data passed");
  CHECK(MPI_Barrier(comm) != MPI_SUCCESS, "the communicator goes on without rank 1");
  CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS, "it cannot be freed");
  MPI_Type_free(&large);
}

/* A rank that is still in a call of a communicator fails with it, so none may be when the others go wrong. */
static void all_are_out(void) {
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Calls that fail later: each request's status has its error, also if the communicator is freed meanwhile. */
static void late_errors(MPI_Errhandler handler) {
  char sentence[MPI_MAX_ERROR_STRING];
  int values[8] = {0}, results[8], length = 0;
  MPI_Request requests[3];
  MPI_Status statuses[3];
  MPI_Comm comms[2];
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    MPI_Comm_set_errhandler(comms[i], handler);
    MPI_Barrier(comms[i]);
  }
  requests[0] = MPI_REQUEST_NULL;
  CHECK(MPI_Iallreduce(values, results, 1 + rank, MPI_INT, MPI_SUM, comms[0], &requests[1]) == MPI_SUCCESS, "refused");
  MPI_Ibarrier(comms[1], &requests[2]);
  blame = MPI_SUCCESS;
  CHECK(MPI_Waitall(3, requests, statuses) == MPI_ERR_IN_STATUS, "MPI_Waitall does not point to statuses");
  CHECK(blame != MPI_SUCCESS && statuses[1].MPI_ERROR == blame, "the status has no error");
  CHECK(statuses[0].MPI_ERROR == MPI_SUCCESS && statuses[2].MPI_ERROR == MPI_SUCCESS, "another status has an error");
  all_are_out();
  CHECK(MPI_Iallreduce(values, results, 1 + rank, MPI_INT, MPI_SUM, comms[1], &requests[0]) == MPI_SUCCESS, "refused");
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&comms[i]);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  const int code = MPI_Wait(&requests[0], &statuses[0]);
  CHECK(code != MPI_SUCCESS && blame == code && blamed == MPI_COMM_WORLD, "nobody hears of an error after the end");
  MPI_Error_string(code, sentence, &length);
  CHECK(strncmp(sentence, "tutti: ", 7) == 0 && strstr(sentence, "rank") != NULL, "the sentence is \"%s\"", sentence);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* The root of a broadcast only reads its data. (MPICH 4.0.2 itself writes it.) */
static void constant_data(void) {
  static const int data[4] = {1, 2, 3, 4}; /* in memory that cannot be written */
  int copy[4] = {0};
  MPI_Datatype type;
  MPI_Type_vector(2, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  for (int root = 0; root < ranks; ++root) {
    copy[0] = copy[2] = 0;
    MPI_Bcast(rank == root ? (void*)data : copy, 1, type, root, MPI_COMM_WORLD);
    CHECK(rank == root || (copy[0] == 1 && copy[1] == 0 && copy[2] == 3), "broadcast: %d %d", copy[0], copy[2]);
  }
  MPI_Type_free(&type);
}

/* Ranks disagree: the communicator's handler hears of it, in tutti's words. */
static void errors(void) {
  constant_data();
  char sentence[MPI_MAX_ERROR_STRING], values[64] = {0}, results[64];
  int length = 0;
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Barrier(comm);
  MPI_Comm_create_errhandler(&note, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  all_are_out();
  const int code = MPI_Allreduce(values, results, 1 + rank, MPI_INT, MPI_SUM, comm);
  CHECK(code != MPI_SUCCESS, "a mismatch went unnoticed");
  CHECK(blamed == comm && blame == code, "the handler did not hear of it");
  MPI_Error_string(code, sentence, &length);
  CHECK(strncmp(sentence, "tutti: ", 7) == 0 && strstr(sentence, "rank") != NULL, "the sentence is \"%s\"", sentence);
  blame = MPI_SUCCESS;
  int later = MPI_Ibarrier(comm, &request);
  if (later == MPI_SUCCESS) later = MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(later != MPI_SUCCESS && blame == later, "the next call does not fail");
  /* Wrong arguments are MPI's to report, and hurt nobody. */
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
  CHECK(MPI_Bcast(values, -1, MPI_INT, 0, other) != MPI_SUCCESS, "a negative count passed");
  CHECK(MPI_Bcast(values, 1, MPI_INT, ranks, other) != MPI_SUCCESS, "a wrong root passed");
  CHECK(MPI_Allreduce(values, results, 1, MPI_INT, MPI_MINLOC, other) != MPI_SUCCESS, "MPI_MINLOC of int passed");
  int in = MPI_SUCCESS;
  MPI_Datatype raw; /* not committed */
  MPI_Type_vector(2, 1, 2, MPI_INT, &raw);
  CHECK(MPI_Bcast(values, 1, raw, 0, other) != MPI_SUCCESS, "a type that is not committed passed");
  MPI_Type_free(&raw);
  MPI_Error_class(MPI_Allgather(values, 1, MPI_CHAR, MPI_IN_PLACE, 1, MPI_CHAR, other), &in);
  CHECK(in == MPI_ERR_BUFFER, "MPI_IN_PLACE as a receive buffer passed");
  CHECK(MPI_Barrier(other) == MPI_SUCCESS, "a wrong argument broke the communicator");
  MPI_Comm_free(&other);
  late_errors(handler);
  no_memory(0), no_memory(1);
  MPI_Errhandler_free(&handler);
}

int main(int argc, char** argv) {
  const struct {
    const char* name;
    void (*run)(void);
  } parts[] = {{"progress", progress}, {"mixed", mixed},         {"communicators", communicators},
               {"errors", errors},     {"callbacks", callbacks}, {"late", late}};
  int found = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  sent = calloc(LONG, 1), received = calloc(LONG, 1);
  for (int i = 0; i < (int)(sizeof parts / sizeof parts[0]); ++i)
    if (argc > 1 && strcmp(argv[1], parts[i].name) == 0) parts[i].run(), found = 1;
  CHECK(found, "no such part");
  MPI_Finalize();
  free(sent), free(received);
  if (rank == 0) printf("kept\n");
  return 0;
}
