#include "adapters/mpi/pending.h"

#include <utility>

namespace tutti::mpi {

/// In the queue's thread.
void PendingCall::ended(void* self, tuttiResult_t result) {
  auto& pending = *static_cast<PendingCall*>(self);
  pending.result_ = result;
  pending.ended_.store(true, std::memory_order_release);
}

int PendingCall::query(void*, MPI_Status* status) {
  PMPI_Status_set_elements(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}

int PendingCall::free(void* self) {
  const std::unique_ptr<PendingCall> pending(static_cast<PendingCall*>(self));
  if (pending == nullptr) return MPI_SUCCESS;
  if (pending->code_ == MPI_SUCCESS) return MPI_SUCCESS;
  SeenFailures::failures_.push_back(
      {.request = pending->request_, .communicator = &pending->communicator_, .code = pending->code_});
  failed_.fetch_sub(1, std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int PendingCall::cancel(void*, int) {
  return MPI_SUCCESS;  // MPI forbids it for collective calls
}

tuttiResult_t PendingCalls::start(std::unique_ptr<PendingCall> pending, MPI_Request* request) {
  tuttiStream_t stream = nullptr;
  if (const tuttiResult_t made = pending->communicator_.queue(stream); made != tuttiSuccess) return made;
  if (const tuttiResult_t queued = pending->call.run(pending->communicator_.comm(), stream); queued != tuttiSuccess)
    return queued;
  PendingCall* const started = pending.release();
  PMPI_Grequest_start(&PendingCall::query, &PendingCall::free, &PendingCall::cancel, started, &started->request_);
  *request = started->request_;
  {
    const std::lock_guard lock(mutex_);
    under_way_.push_back(started);
    count_.fetch_add(1, std::memory_order_release);
  }
  return tuttiStreamAddCallback(stream, &PendingCall::ended, started);
}

/// Not a collective call of MPI on MPI_COMM_SELF: the program may be in another one there, in another thread.
int PendingCalls::give_ended(MPI_Request* request) {
  const int code = PMPI_Grequest_start(&PendingCall::query, &PendingCall::free, &PendingCall::cancel, nullptr, request);
  return code == MPI_SUCCESS ? PMPI_Grequest_complete(*request) : code;
}

void PendingCalls::poll() {
  if (empty()) return;
  std::vector<PendingCall*> ended;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(under_way_, [&ended](PendingCall* pending) {
      const bool over = pending->ended_.load(std::memory_order_acquire);
      if (over) ended.push_back(pending);
      return over;
    });
  }
  for (PendingCall* const pending : ended) complete(*pending);
}

void PendingCalls::complete(PendingCall& pending) {
  // The code is made now: the communicator may be freed before the program waits.
  pending.code_ =
      pending.result_ == tuttiSuccess ? pending.call.finish() : pending.communicator_.code_of(pending.result_);
  if (pending.code_ != MPI_SUCCESS) PendingCall::failed_.fetch_add(1, std::memory_order_relaxed);
  // Not when the request is freed: MPICH is inside a critical section then, and its functions must not be called.
  pending.call.send.release();
  pending.call.recv.release();
  // From here on the request may free the call.
  MPI_Request request = pending.request_;
  PMPI_Grequest_complete(request);
  count_.fetch_sub(1, std::memory_order_release);
}

int SeenFailures::instead_of(int code) {
  const std::vector<Failure> failures = std::exchange(failures_, {});
  for (const Failure& failure : failures) code = failure.communicator->tell(failure.code);
  return code;
}

int SeenFailures::instead_of(int code, const std::vector<MPI_Request>& before, const int* indices, int count,
                             MPI_Status* statuses) {
  if (failures_.empty()) return code;
  for (int i = 0; statuses != MPI_STATUSES_IGNORE && i < count; ++i) {
    if (code == MPI_SUCCESS) statuses[i].MPI_ERROR = MPI_SUCCESS;  // which MPI leaves undefined without errors
    for (const Failure& failure : failures_)
      if (before[static_cast<std::size_t>(indices == nullptr ? i : indices[i])] == failure.request)
        statuses[i].MPI_ERROR = failure.code;
  }
  instead_of(code);
  return MPI_ERR_IN_STATUS;
}

}  // namespace tutti::mpi
