#include "mpi/communicator.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

namespace tutti::mpi {
namespace {

/// Other worlds may run without tutti: spawned programs, or those that were connected to.
bool within(MPI_Group world, MPI_Comm comm, int ranks) {
  MPI_Group group = MPI_GROUP_NULL;
  if (PMPI_Comm_group(comm, &group) != MPI_SUCCESS) return false;
  std::vector<int> here(static_cast<std::size_t>(ranks));
  std::vector<int> there(here.size());
  std::iota(here.begin(), here.end(), 0);
  const int code = PMPI_Group_translate_ranks(group, ranks, here.data(), world, there.data());
  PMPI_Group_free(&group);
  return code == MPI_SUCCESS && std::ranges::find(there, MPI_UNDEFINED) == there.end();
}

/// From rank 0 to all.
struct Offer {
  int made = 0;
  tuttiUniqueId id{};
};

}  // namespace

void Progress::run(void* self) {
  int found = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, static_cast<const Progress*>(self)->own, &found, MPI_STATUS_IGNORE);
}

Communicator::Communicator(MPI_Comm comm, MPI_Group world) : handle_(comm) {
  int between = 0;
  PMPI_Comm_test_inter(comm, &between);
  PMPI_Comm_rank(comm, &place_.rank);
  PMPI_Comm_size(comm, &place_.ranks);
  if (between != 0) {
    outcome_ = Outcome::intercommunicator;
  } else if (place_.ranks == 1) {
    outcome_ = Outcome::one_rank;
  } else if (!within(world, comm, place_.ranks)) {
    outcome_ = Outcome::other_world;
  }
}

int Communicator::start(Progress& progress) {
  // tutti's time limit is to begin when all are here, not when the first one is.
  if (const int code = PMPI_Barrier(handle()); code != MPI_SUCCESS) return code;
  Offer offer;
  if (place_.rank == 0) offer.made = tuttiGetUniqueId(&offer.id) == tuttiSuccess ? 1 : 0;
  if (const int code = PMPI_Bcast(&offer, sizeof offer, MPI_BYTE, 0, handle()); code != MPI_SUCCESS) return code;
  tuttiResult_t result = tuttiSystemError;
  if (offer.made != 0) {
    std::array<char, MPI_MAX_OBJECT_NAME> name{};
    int length = 0;
    PMPI_Comm_get_name(handle(), name.data(), &length);
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    config.device = -1;
    config.name = length > 0 ? name.data() : nullptr;
    config.progress = &Progress::run;
    config.progressContext = &progress;
    result = tuttiCommInitRankConfig(&comm_, place_.ranks, offer.id, place_.rank, &config);
  }
  const int mine = result == tuttiSuccess ? 1 : 0;
  int all = 0;
  if (const int code = PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, handle()); code != MPI_SUCCESS) return code;
  started_ = all == 1;
  if (started_) return MPI_SUCCESS;
  if (mine == 0 && (offer.made != 0 || place_.rank == 0)) say_why(result);
  if (comm_ != nullptr) tuttiCommAbort(comm_);
  comm_ = nullptr;
  outcome_ = Outcome::no_start;
  return MPI_SUCCESS;
}

void Communicator::say_why(tuttiResult_t result) const {
  const char* const sentence = tuttiGetLastError(nullptr);
  std::fprintf(stderr, "tutti: MPI serves a communicator of %d ranks: rank %d: %s\n", place_.ranks, place_.rank,
               sentence[0] != '\0' ? sentence : tuttiGetErrorString(result));
}

tuttiResult_t Communicator::queue(tuttiStream_t& stream) {
  if (stream_ == nullptr)
    if (const tuttiResult_t made = tuttiStreamCreate(&stream_); made != tuttiSuccess) return made;
  stream = stream_;
  return tuttiSuccess;
}

int Communicator::code_of(tuttiResult_t result, int error_class) {
  const std::lock_guard lock(telling_);
  std::string sentence = comm_ == nullptr ? last_words_ : tuttiGetLastError(comm_);
  if (sentence.empty()) sentence = tuttiGetLastError(nullptr);
  if (sentence.empty()) sentence = tuttiGetErrorString(result);
  sentence = "tutti: " + sentence;
  sentence.resize(std::min<std::size_t>(sentence.size(), MPI_MAX_ERROR_STRING - 1));
  if (told_code_ == MPI_SUCCESS || sentence != told_) {
    int code = MPI_ERR_OTHER;
    if (PMPI_Add_error_code(error_class, &code) == MPI_SUCCESS) PMPI_Add_error_string(code, sentence.c_str());
    told_ = sentence;
    told_code_ = code;
  }
  return told_code_;
}

int Communicator::tell(int code) const {
  const MPI_Comm comm = handle();
  PMPI_Comm_call_errhandler(comm != MPI_COMM_NULL ? comm : MPI_COMM_WORLD, code);
  return code;
}

void Communicator::abandon(int code) {
  if (!started_ || abandoned_ != MPI_SUCCESS) return;
  abandoned_ = code;
  const std::lock_guard lock(telling_);
  last_words_ = "this rank could not take part in a call and has left its communicator";
  tuttiCommAbort(std::exchange(comm_, nullptr));
}

void Communicator::retire() {
  if (handle() == MPI_COMM_NULL) return;
  tuttiStream_t stream = nullptr;
  if (comm_ == nullptr || queue(stream) != tuttiSuccess || tuttiBarrier(comm_, stream) != tuttiSuccess) return end();
  outcome_ = Outcome::no_start;  // also for the program's delete callbacks, which MPI is about to run
  handle_.store(MPI_COMM_NULL, std::memory_order_relaxed);
}

void Communicator::end() {
  tuttiComm_t ending = nullptr;
  if (stream_ != nullptr) tuttiStreamSynchronize(stream_);
  {
    // A failed call may be waited for later on.
    const std::lock_guard lock(telling_);
    if (comm_ != nullptr) last_words_ = tuttiGetLastError(comm_);
    ending = std::exchange(comm_, nullptr);
  }
  if (ending != nullptr) tuttiCommDestroy(ending);
  if (stream_ != nullptr) tuttiStreamDestroy(stream_);
  stream_ = nullptr;
  started_ = false;
  abandoned_ = MPI_SUCCESS;
  outcome_ = Outcome::no_start;
  handle_.store(MPI_COMM_NULL, std::memory_order_relaxed);
}

}  // namespace tutti::mpi
