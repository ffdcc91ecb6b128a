#include "adapters/mpi/serve.h"

namespace tutti::mpi {

int give_up(Communicator& communicator, int code) {
  if (communicator.outcome() == Outcome::tutti) {
    // The others' first call: they wait for this rank to start.
    if (!communicator.started())
      if (const int failed = communicator.start(); failed != MPI_SUCCESS) return failed;
    communicator.abandon(code);
  }
  return communicator.tell(code);
}

int settle(Communicator& communicator, const Prepared& prepared, Outcome& outcome) {
  if (prepared.alone) return give_up(communicator, prepared.code);
  if (prepared.code != MPI_SUCCESS) return communicator.tell(prepared.code);
  if (prepared.outcome != Outcome::tutti) outcome = prepared.outcome;
  if ((outcome == Outcome::tutti || prepared.agrees) && !communicator.started()) {
    if (const int code = communicator.start(); code != MPI_SUCCESS) return code;
    if (!communicator.started()) outcome = communicator.outcome();
  }
  if (!prepared.agrees || !communicator.started()) return MPI_SUCCESS;
  // All ranks do what this rank can, unless another one cannot.
  const int mine = served(outcome) ? 0 : static_cast<int>(outcome);
  int most = 0;
  const tuttiResult_t result = tuttiAllReduce(&mine, &most, 1, tuttiInt32, tuttiMax, communicator.comm(), nullptr);
  if (result != tuttiSuccess) return communicator.tell(communicator.code_of(result));
  if (most != 0) outcome = static_cast<Outcome>(most);
  return MPI_SUCCESS;
}

int run_blocking(Communicator& communicator, Call& call) {
  if (communicator.outcome() == Outcome::one_rank) {
    call.run_alone();
  } else if (const tuttiResult_t result = call.run(communicator.comm(), nullptr); result != tuttiSuccess) {
    return communicator.tell(communicator.code_of(result));
  }
  const int code = call.finish();
  return code == MPI_SUCCESS ? code : communicator.tell(code);
}

int start_call(Interposer& interposer, Communicator& communicator, std::unique_ptr<PendingCall> pending,
               MPI_Request* request) {
  if (communicator.outcome() == Outcome::one_rank) {
    pending->call.run_alone();
    if (const int code = pending->call.finish(); code != MPI_SUCCESS) return communicator.tell(code);
    return PendingCalls::give_ended(request);
  }
  const tuttiResult_t result = interposer.pending().start(std::move(pending), request);
  if (result == tuttiSuccess) return MPI_SUCCESS;
  return communicator.tell(communicator.code_of(result));
}

}  // namespace tutti::mpi
