// What the interposer has once in a process: between MPI_Init and MPI_Finalize.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "adapters/mpi/communicator.h"
#include "adapters/mpi/mpi_header.h"
#include "adapters/mpi/pending.h"
#include "adapters/mpi/statistics.h"

namespace tutti::mpi {

class Interposer {
 public:
  /// The process's; null before MPI_Init and after MPI_Finalize, or where TUTTI_MPI is off.
  static Interposer* get() { return current_.load(std::memory_order_acquire); }
  /// To be called after PMPI_Init, by all ranks.
  static void begin();
  /// To be called before PMPI_Finalize, by all ranks: ends all communicators and prints the statistics.
  static void finish();

  /// Null for what is no communicator; MPI says so then. Any thread.
  Communicator* communicator(MPI_Comm comm) {
    Communicator* const known = recent_[slot_of(comm)].load(std::memory_order_acquire);
    return known != nullptr && known->handle() == comm ? known : look_up(comm);
  }
  /// A communicator that was just made; all its ranks call it. Errors: MPI's, as a code.
  int made(MPI_Comm comm);
  /// Before a communicator is freed. Until freed(), MPI serves what the program's delete
  /// callbacks do with it.
  void about_to_free(MPI_Comm comm);
  static void freed() { leaving_ = MPI_COMM_NULL; }

  Statistics& statistics() { return statistics_; }
  PendingCalls& pending() { return pending_; }

 private:
  Interposer() = default;
  Communicator* look_up(MPI_Comm comm);
  void print_statistics();
  void end_retired();
  static int forget(MPI_Comm comm, int key, void* attribute, void* extra);
  static std::size_t slot_of(MPI_Comm comm);

  static constexpr std::size_t recent_max = 64;
  static inline std::atomic<Interposer*> current_ = nullptr;
  static inline thread_local MPI_Comm leaving_ = MPI_COMM_NULL;  ///< that this thread is freeing

  bool starts_early_ = false;
  bool prints_ = false;
  int key_ = MPI_KEYVAL_INVALID;  ///< of the attribute that leads from an MPI communicator to ours
  Common common_;
  Statistics statistics_;
  PendingCalls pending_;
  std::array<std::atomic<Communicator*>, recent_max> recent_{};
  std::mutex mutex_;
  std::vector<Communicator*> retired_;
  std::vector<std::unique_ptr<Communicator>> communicators_;  ///< also ended ones: other threads may just look at them
};

}  // namespace tutti::mpi
