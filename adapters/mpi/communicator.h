// What stands behind an MPI communicator: whether tutti serves it, and tutti's communicator once a call needs it.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "adapters/mpi/mpi_header.h"
#include "adapters/mpi/prepare.h"
#include "adapters/mpi/statistics.h"
#include "base/log.h"
#include "tutti/tutti.h"

namespace tutti::mpi {

/// Runs in threads of the program that wait in tutti: lets MPI get on with its messages.
struct Progress {
  MPI_Comm own = MPI_COMM_NULL;  ///< of this process alone; no message comes there

  static void run(void* self);
};

/// What the communicators of a process have in common.
struct Common {
  MPI_Group world = MPI_GROUP_NULL;
  Progress progress;
  LineWriter lines;
  int error_class = MPI_ERR_OTHER;
};

/// Used by one thread at a time, as MPI wants it of collective calls.
class Communicator {
 public:
  /// Asks MPI about `comm`, without talking to other ranks.
  Communicator(MPI_Comm comm, Common& common);
  ~Communicator() { end(); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// MPI_COMM_NULL after retire() and end().
  MPI_Comm handle() const { return handle_.load(std::memory_order_relaxed); }
  const RankInfo& place() const { return place_; }
  /// tutti, one_rank, or why MPI serves all calls.
  Outcome outcome() const { return outcome_; }
  bool started() const { return started_; }

  /// Makes tutti's communicator; all ranks call it. If it cannot be made on some rank, MPI serves all calls from now
  /// on, on all ranks, and a line says why. Errors: MPI's, as a code.
  int start();
  tuttiComm_t comm() const { return comm_; }
  /// The queue of non-blocking calls, made when first asked for. Errors: system.
  tuttiResult_t queue(tuttiStream_t& stream);

  /// This rank cannot take part in a call that others make: those get an error, also in all later calls.
  void abandon(int code);
  /// Why all calls fail here; MPI_SUCCESS: they do not.
  int abandoned() const { return abandoned_; }

  /// An error code for `result`, with tutti's sentence. Any thread.
  int code_of(tuttiResult_t result);
  /// Has MPI's error handler called; MPI_COMM_WORLD's if the communicator has been freed. Returns `code`.
  int tell(int code) const;

  /// MPI's is being freed. Returns at once: tutti's has to be ended when over(), as other ranks may still make calls.
  /// MPI serves all calls from then on.
  void retire();
  /// After retire(): whether all ranks have come to it.
  bool over() const { return stream_ == nullptr || tuttiStreamQuery(stream_) != tuttiInProgress; }
  /// Ends tutti's communicator, once all that is queued has ended. MPI serves all calls from then on.
  void end();

 private:
  void join_groups(std::optional<int> local, std::optional<int> remote);
  std::string why(tuttiResult_t result) const;

  Common& common_;
  std::atomic<MPI_Comm> handle_;
  RankInfo place_;
  Outcome outcome_ = Outcome::tutti;
  bool started_ = false;
  int abandoned_ = MPI_SUCCESS;
  tuttiComm_t comm_ = nullptr;
  tuttiStream_t stream_ = nullptr;
  std::mutex telling_;      ///< held where the rest is used, and comm_ by other threads
  std::string last_words_;  ///< tutti's communicator's, once it has ended
  std::string told_;        ///< the last sentence, and the code made for it
  int told_code_ = MPI_SUCCESS;
};

}  // namespace tutti::mpi
