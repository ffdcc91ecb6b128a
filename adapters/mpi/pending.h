// Non-blocking calls under way. A call runs in the thread of its communicator's queue; MPI knows it as a generalized
// request, which the program's own threads complete, when they wait for or test any request.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "adapters/mpi/call.h"
#include "adapters/mpi/communicator.h"
#include "adapters/mpi/mpi_header.h"

namespace tutti::mpi {

class PendingCalls;

class PendingCall {
 public:
  explicit PendingCall(Communicator& communicator) : communicator_(communicator) {}

  Call call;

 private:
  friend class PendingCalls;
  friend class SeenFailures;
  static void ended(void* self, tuttiResult_t result);
  static int query(void* self, MPI_Status* status);
  static int free(void* self);
  static int cancel(void* self, int complete);

  Communicator& communicator_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::atomic<bool> ended_ = false;
  tuttiResult_t result_ = tuttiSuccess;  ///< valid once it has ended
  int code_ = MPI_SUCCESS;               ///< for the program, once it is complete

  static inline std::atomic<int> failed_ = 0;  ///< complete, with an error, and not yet seen by the program
};

class PendingCalls {
 public:
  /// Queues the call. Errors: tutti's result; then there is no request.
  tuttiResult_t start(std::unique_ptr<PendingCall> pending, MPI_Request* request);

  /// A request of no call, complete already. Errors: MPI's, as a code.
  static int give_ended(MPI_Request* request);

  /// Finishes calls that have ended, and completes their requests. Any thread of the program.
  void poll();
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }

 private:
  void complete(PendingCall& pending);

  std::mutex mutex_;
  std::vector<PendingCall*> under_way_;  ///< each is its request's
  std::atomic<int> count_ = 0;
};

/// The errors of requests that the calling thread has just seen complete, of those that were failed calls of tutti: MPI
/// itself would report them to MPI_COMM_WORLD. Has the error handlers of their communicators called.
class SeenFailures {
 public:
  SeenFailures() { failures_.clear(); }

  /// For a function that completes one request: what it returns, MPI's code being `code`.
  static int instead_of(int code);
  /// For one that completes several, which `before` held; `statuses` are those of the requests at `indices`, or, if
  /// null, of all.
  static int instead_of(int code, const std::vector<MPI_Request>& before, const int* indices, int count,
                        MPI_Status* statuses);
  /// Whether there may be any: calls are under way, or have failed and not been waited for.
  static bool possible(const PendingCalls& calls) {
    return !calls.empty() || PendingCall::failed_.load(std::memory_order_relaxed) > 0;
  }

 private:
  friend class PendingCall;
  struct Failure {
    MPI_Request request;
    Communicator* communicator;
    int code;
  };
  static inline thread_local std::vector<Failure> failures_;
};

}  // namespace tutti::mpi
