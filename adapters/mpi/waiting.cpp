// Waiting and testing: requests of tutti's calls are completed here, whatever request the program waits for.
#include <sched.h>

#include <vector>

#include "adapters/mpi/interposer.h"
#include "adapters/mpi/mpi_header.h"
#include "adapters/mpi/pending.h"

using namespace tutti::mpi;  // NOLINT: the definitions below are functions of mpi.h

namespace {

/// What a function returns, as SeenFailures says for one request.
using OfOne = int (*)(int code);

/// The same for several requests, each with a status. Made before they are completed, which makes their handles null.
class OfSeveral {
 public:
  OfSeveral(int count, const MPI_Request* requests) {
    Interposer* const interposer = Interposer::get();
    if (count > 0 && interposer != nullptr && SeenFailures::possible(interposer->pending()))
      before_.assign(requests, requests + count);
  }
  /// `statuses`: of all requests.
  int all(int code, MPI_Status* statuses) const {
    return SeenFailures::instead_of(code, before_, nullptr, static_cast<int>(before_.size()), statuses);
  }
  /// Of those at `indices`.
  int some(int code, int count, const int* indices, MPI_Status* statuses) const {
    return SeenFailures::instead_of(code, before_, indices, count, statuses);
  }

 private:
  std::vector<MPI_Request> before_;
};

/// One look: completes what has ended, then asks MPI.
template <class Test, class Tell = OfOne>
int test(Test&& ask, Tell&& tell = &SeenFailures::instead_of) {
  const SeenFailures none_yet;
  if (Interposer* const interposer = Interposer::get(); interposer != nullptr) interposer->pending().poll();
  return tell(ask());
}

/// While calls of tutti are under way, waits by asking again and again, because MPI itself does not complete them.
/// `ask(int& done)` is MPI's test, `wait()` its waiting function.
template <class Ask, class Wait, class Tell = OfOne>
int wait_until(Ask&& ask, Wait&& wait, Tell&& tell = &SeenFailures::instead_of) {
  constexpr int patient_rounds = 100;
  const SeenFailures none_yet;
  Interposer* const interposer = Interposer::get();
  for (int round = 0; interposer != nullptr && !interposer->pending().empty(); ++round) {
    interposer->pending().poll();
    int done = 0;
    if (const int code = ask(done); done != 0 || code != MPI_SUCCESS) return tell(code);
    if (round > patient_rounds) sched_yield();  // the queue's thread may need this core
  }
  return tell(wait());
}

}  // namespace

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  return wait_until([&](int& done) { return PMPI_Test(request, &done, status); },
                    [&] { return PMPI_Wait(request, status); });
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  const OfSeveral several(count, requests);
  return wait_until([&](int& done) { return PMPI_Testall(count, requests, &done, statuses); },
                    [&] { return PMPI_Waitall(count, requests, statuses); },
                    [&](int code) { return several.all(code, statuses); });
}

int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  return wait_until([&](int& done) { return PMPI_Testany(count, requests, index, &done, status); },
                    [&] { return PMPI_Waitany(count, requests, index, status); });
}

int MPI_Waitsome(int count, MPI_Request requests[], int* completed, int indices[], MPI_Status statuses[]) {
  const OfSeveral several(count, requests);
  return wait_until(
      [&](int& done) {
        const int code = PMPI_Testsome(count, requests, completed, indices, statuses);
        done = *completed;  // also where there is nothing to wait for: MPI_UNDEFINED
        return code;
      },
      [&] { return PMPI_Waitsome(count, requests, completed, indices, statuses); },
      [&](int code) { return several.some(code, *completed, indices, statuses); });
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  return test([&] { return PMPI_Test(request, flag, status); });
}

int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  const OfSeveral several(count, requests);
  return test([&] { return PMPI_Testall(count, requests, flag, statuses); },
              [&](int code) { return several.all(code, statuses); });
}

int MPI_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  return test([&] { return PMPI_Testany(count, requests, index, flag, status); });
}

int MPI_Testsome(int count, MPI_Request requests[], int* completed, int indices[], MPI_Status statuses[]) {
  const OfSeveral several(count, requests);
  return test([&] { return PMPI_Testsome(count, requests, completed, indices, statuses); },
              [&](int code) { return several.some(code, *completed, indices, statuses); });
}

int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  return test([&] { return PMPI_Request_get_status(request, flag, status); });
}
