#include "adapters/mpi/interposer.h"

#include <functional>

#include "adapters/mpi/datatype.h"
#include "base/config.h"

namespace tutti::mpi {
namespace {

/// What all ranks must do alike; agreed at the start, whatever each one's environment says.
struct Wishes {
  int off = 0;
  int early = 0;
  int prints = 0;
};

Wishes own_wishes() {
  const auto config = Config::from_process();
  if (!config) return {};  // tutti says what is wrong when it starts
  return {.off = config->text("TUTTI_MPI") == "off" ? 1 : 0,
          .early = config->text("TUTTI_MPI_START") == "early" ? 1 : 0,
          .prints = static_cast<int>(config->integer("TUTTI_MPI_STATS"))};
}

}  // namespace

void Interposer::begin() {
  const Wishes mine = own_wishes();
  Wishes all;
  if (PMPI_Allreduce(&mine, &all, sizeof all / sizeof(int), MPI_INT, MPI_MAX, MPI_COMM_WORLD) != MPI_SUCCESS) return;
  if (all.off != 0) return;
  std::unique_ptr<Interposer> made(new Interposer);
  made->starts_early_ = all.early != 0;
  made->prints_ = all.prints != 0;
  PMPI_Comm_dup(MPI_COMM_SELF, &made->common_.progress.own);
  PMPI_Comm_set_errhandler(made->common_.progress.own, MPI_ERRORS_RETURN);
  quiet_comm() = made->common_.progress.own;
  PMPI_Comm_group(MPI_COMM_WORLD, &made->common_.world);
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &Interposer::forget, &made->key_, nullptr);
  PMPI_Add_error_class(&made->common_.error_class);
  PMPI_Add_error_string(made->common_.error_class, "tutti: a collective call failed");
  Interposer* const ready = made.release();
  current_.store(ready, std::memory_order_release);
  ready->made(MPI_COMM_WORLD);
}

void Interposer::finish() {
  std::unique_ptr<Interposer> self(current_.load(std::memory_order_acquire));
  if (self == nullptr) return;
  self->pending_.poll();
  // Nobody leaves before all have made their last call: whoever waits for that does not find peers gone.
  PMPI_Barrier(MPI_COMM_WORLD);
  if (self->prints_) self->print_statistics();
  for (const auto& communicator : self->communicators_) communicator->end();
  current_.store(nullptr, std::memory_order_release);
  // Communicators that MPI still has name the attribute; they must find nothing when MPI_Finalize frees them.
  PMPI_Group_free(&self->common_.world);
  PMPI_Comm_free(&self->common_.progress.own);
  PMPI_Comm_free_keyval(&self->key_);
}

std::size_t Interposer::slot_of(MPI_Comm comm) {
  const auto bits = std::hash<MPI_Comm>()(comm);
  return (bits ^ bits >> 6 ^ bits >> 12) % recent_max;
}

Communicator* Interposer::look_up(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL || comm == leaving_) return nullptr;
  void* attribute = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(comm, key_, &attribute, &found) != MPI_SUCCESS) return nullptr;
  if (found == 0) {
    end_retired();
    auto made = std::make_unique<Communicator>(comm, common_);
    if (PMPI_Comm_set_attr(comm, key_, made.get()) != MPI_SUCCESS) return nullptr;
    attribute = made.get();
    const std::lock_guard lock(mutex_);
    communicators_.push_back(std::move(made));
  }
  auto* const communicator = static_cast<Communicator*>(attribute);
  recent_[slot_of(comm)].store(communicator, std::memory_order_release);
  return communicator;
}

int Interposer::made(MPI_Comm comm) {
  if (!starts_early_ || comm == MPI_COMM_NULL) return MPI_SUCCESS;
  Communicator* const communicator = look_up(comm);
  if (communicator == nullptr || communicator->outcome() != Outcome::tutti || communicator->started())
    return MPI_SUCCESS;
  return communicator->start();
}

void Interposer::about_to_free(MPI_Comm comm) {
  Communicator* const known = comm == MPI_COMM_NULL ? nullptr : communicator(comm);
  if (known == nullptr) return;
  known->retire();
  leaving_ = comm;
  {
    const std::lock_guard lock(mutex_);
    retired_.push_back(known);
  }
  end_retired();
}

/// Ends those that all ranks have freed. None waits for that: ranks may free communicators in different orders.
void Interposer::end_retired() {
  std::vector<Communicator*> over;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(retired_, [&over](Communicator* communicator) {
      const bool done = communicator->over();
      if (done) over.push_back(communicator);
      return done;
    });
  }
  for (Communicator* const communicator : over) communicator->end();
}

/// MPI calls it when a communicator is freed, whoever frees it.
int Interposer::forget(MPI_Comm, int, void* attribute, void*) {
  auto* const communicator = static_cast<Communicator*>(attribute);
  if (get() != nullptr && communicator->handle() != MPI_COMM_NULL) communicator->end();
  return MPI_SUCCESS;
}

void Interposer::print_statistics() {
  const Statistics::Numbers mine = statistics_.numbers();
  Statistics::Numbers all{};
  PMPI_Reduce(mine.data(), all.data(), static_cast<int>(all.size()), MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  int rank = 0, ranks = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rank == 0) common_.lines.write(Statistics::text(all, ranks));
}

}  // namespace tutti::mpi
