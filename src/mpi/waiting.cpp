// Waiting and testing: requests of tutti's calls are completed here, whatever request the program waits for.
#include <sched.h>

#include "mpi/interposer.h"
#include "mpi/mpi_header.h"
#include "mpi/pending.h"

using namespace tutti::mpi;  // NOLINT: the definitions below are functions of mpi.h

namespace {

/// One look: completes what has ended, then asks MPI.
template <class Test>
int test(Test&& ask) {
  SeenFailure seen;
  if (Interposer* const interposer = Interposer::get(); interposer != nullptr) interposer->pending().poll();
  return seen.instead_of(ask());
}

/// While calls of tutti are under way, waits by asking again and again, because MPI itself does not complete them.
/// `ask(bool& done)` is MPI's test, `wait()` its waiting function.
template <class Ask, class Wait>
int wait_until(Ask&& ask, Wait&& wait) {
  constexpr int patient_rounds = 100;
  SeenFailure seen;
  Interposer* const interposer = Interposer::get();
  for (int round = 0; interposer != nullptr && !interposer->pending().empty(); ++round) {
    interposer->pending().poll();
    bool done = false;
    if (const int code = ask(done); done || code != MPI_SUCCESS) return seen.instead_of(code);
    if (round > patient_rounds) sched_yield();  // the queue's thread may need this core
  }
  return seen.instead_of(wait());
}

}  // namespace

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  return wait_until(
      [&](bool& done) {
        int flag = 0;
        const int code = PMPI_Test(request, &flag, status);
        done = flag != 0;
        return code;
      },
      [&] { return PMPI_Wait(request, status); });
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  return wait_until(
      [&](bool& done) {
        int flag = 0;
        const int code = PMPI_Testall(count, requests, &flag, statuses);
        done = flag != 0;
        return code;
      },
      [&] { return PMPI_Waitall(count, requests, statuses); });
}

int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  return wait_until(
      [&](bool& done) {
        int flag = 0;
        const int code = PMPI_Testany(count, requests, index, &flag, status);
        done = flag != 0;
        return code;
      },
      [&] { return PMPI_Waitany(count, requests, index, status); });
}

int MPI_Waitsome(int count, MPI_Request requests[], int* completed, int indices[], MPI_Status statuses[]) {
  return wait_until(
      [&](bool& done) {
        const int code = PMPI_Testsome(count, requests, completed, indices, statuses);
        done = *completed != 0;  // also where there is nothing to wait for: MPI_UNDEFINED
        return code;
      },
      [&] { return PMPI_Waitsome(count, requests, completed, indices, statuses); });
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  return test([&] { return PMPI_Test(request, flag, status); });
}

int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  return test([&] { return PMPI_Testall(count, requests, flag, statuses); });
}

int MPI_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  return test([&] { return PMPI_Testany(count, requests, index, flag, status); });
}

int MPI_Testsome(int count, MPI_Request requests[], int* completed, int indices[], MPI_Status statuses[]) {
  return test([&] { return PMPI_Testsome(count, requests, completed, indices, statuses); });
}

int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  return test([&] { return PMPI_Request_get_status(request, flag, status); });
}
