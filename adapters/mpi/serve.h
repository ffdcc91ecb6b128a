// Carries a call out: by tutti, here alone, or by the MPI underneath.
#pragma once

#include <memory>
#include <new>
#include <utility>

#include "adapters/mpi/call.h"
#include "adapters/mpi/interposer.h"
#include "adapters/mpi/reduction.h"

namespace tutti::mpi {

/// What became of a call that was prepared; starts tutti where that is still to be done. Errors: MPI's, as a code.
int settle(Communicator& communicator, const Prepared& prepared, Outcome& outcome);
/// The rest of a blocking call that tutti serves. Errors: MPI's, as a code.
int run_blocking(Communicator& communicator, Call& call);
/// The rest of a non-blocking call. Errors: MPI's, as a code.
int start_call(Interposer& interposer, Communicator& communicator, std::unique_ptr<PendingCall> pending,
               MPI_Request* request);
/// This rank cannot make the call that the others make, and they shall not wait for it. Returns `code`.
int give_up(Communicator& communicator, int code);

/// `prepare(Call&, const RankInfo&)` gives Prepared; `by_mpi()` makes the same call of PMPI.
template <class Prepare, class ByMpi>
int serve(Function function, MPI_Comm comm, Prepare&& prepare, ByMpi&& by_mpi) {
  Interposer* const interposer = Interposer::get();
  Communicator* const communicator = interposer == nullptr ? nullptr : interposer->communicator(comm);
  if (communicator == nullptr) return by_mpi();
  if (const int code = communicator->abandoned(); code != MPI_SUCCESS) return communicator->tell(code);
  Outcome outcome = communicator->outcome();
  try {
    Call call;
    if (served(outcome))
      if (const int code = settle(*communicator, prepare(call, communicator->place()), outcome); code != MPI_SUCCESS)
        return code;
    interposer->statistics().count(function, true, outcome);
    if (outcome == Outcome::nothing) return MPI_SUCCESS;
    if (served(outcome)) return run_blocking(*communicator, call);
  } catch (const std::bad_alloc&) {
    return give_up(*communicator, MPI_ERR_NO_MEM);
  }
  return by_mpi();
}

/// The same for a non-blocking call. Making tutti's communicator blocks, so that is left to blocking calls.
template <class Prepare, class ByMpi>
int serve_later(Function function, MPI_Comm comm, MPI_Request* request, Prepare&& prepare, ByMpi&& by_mpi) {
  Interposer* const interposer = Interposer::get();
  Communicator* const communicator = interposer == nullptr ? nullptr : interposer->communicator(comm);
  if (communicator == nullptr || request == nullptr) return by_mpi();
  if (const int code = communicator->abandoned(); code != MPI_SUCCESS) return communicator->tell(code);
  Outcome outcome = communicator->outcome();
  if (outcome == Outcome::tutti && communicator->place().between()) outcome = Outcome::intercommunicator;
  if (outcome == Outcome::tutti && !communicator->started()) outcome = Outcome::not_started;
  try {
    std::unique_ptr<PendingCall> pending;
    if (served(outcome)) {
      pending = std::make_unique<PendingCall>(*communicator);
      const Prepared prepared = prepare(pending->call, communicator->place());
      if (const int code = settle(*communicator, prepared, outcome); code != MPI_SUCCESS) return code;
      // The program may free its operator before the call has ended.
      const Combination& left = pending->call.combination;
      if (left.op != MPI_OP_NULL && !is_predefined(left.op)) outcome = Outcome::operation;
    }
    interposer->statistics().count(function, false, outcome);
    if (outcome == Outcome::nothing) return PendingCalls::give_ended(request);
    if (served(outcome)) return start_call(*interposer, *communicator, std::move(pending), request);
  } catch (const std::bad_alloc&) {
    return give_up(*communicator, MPI_ERR_NO_MEM);
  }
  return by_mpi();
}

}  // namespace tutti::mpi
