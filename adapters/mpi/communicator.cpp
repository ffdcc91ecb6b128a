#include "adapters/mpi/communicator.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tutti::mpi {
namespace {

/// The first of the group's ranks in `world`; none where not all are there. Other worlds may run without tutti: spawned
/// programs, or those that were connected to.
std::optional<int> leader_within(MPI_Group world, MPI_Group group) {
  int ranks = 0;
  if (PMPI_Group_size(group, &ranks) != MPI_SUCCESS || ranks == 0) return std::nullopt;
  std::vector<int> here(static_cast<std::size_t>(ranks));
  std::vector<int> there(here.size());
  std::iota(here.begin(), here.end(), 0);
  const int code = PMPI_Group_translate_ranks(group, ranks, here.data(), world, there.data());
  if (code != MPI_SUCCESS || std::ranges::find(there, MPI_UNDEFINED) != there.end()) return std::nullopt;
  return there.front();
}

/// `get` is PMPI_Comm_group or PMPI_Comm_remote_group.
std::optional<int> leader(MPI_Comm comm, MPI_Group world, int (*get)(MPI_Comm, MPI_Group*)) {
  MPI_Group group = MPI_GROUP_NULL;
  if (get(comm, &group) != MPI_SUCCESS) return std::nullopt;
  const auto found = leader_within(world, group);
  PMPI_Group_free(&group);
  return found;
}

/// All ranks of a communicator in one group, in which they can start.
class OneGroup {
 public:
  OneGroup(MPI_Comm comm, const RankInfo& place) : comm_(comm) {
    if (!place.between()) return;
    const int comes_later = place.remote_first == 0 ? 1 : 0;
    code_ = PMPI_Intercomm_merge(comm, comes_later, &merged_);
    if (code_ == MPI_SUCCESS) comm_ = merged_;
  }
  ~OneGroup() {
    if (merged_ != MPI_COMM_NULL) PMPI_Comm_free(&merged_);
  }
  OneGroup(const OneGroup&) = delete;
  OneGroup& operator=(const OneGroup&) = delete;

  MPI_Comm comm() const { return comm_; }
  int code() const { return code_; }

 private:
  MPI_Comm comm_;
  MPI_Comm merged_ = MPI_COMM_NULL;
  int code_ = MPI_SUCCESS;
};

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

Communicator::Communicator(MPI_Comm comm, Common& common) : common_(common), handle_(comm) {
  int between = 0;
  PMPI_Comm_test_inter(comm, &between);
  PMPI_Comm_rank(comm, &place_.rank);
  PMPI_Comm_size(comm, &place_.ranks);
  const auto first = leader(comm, common.world, PMPI_Comm_group);
  if (between != 0) {
    join_groups(first, leader(comm, common.world, PMPI_Comm_remote_group));
  } else if (place_.ranks == 1) {
    outcome_ = Outcome::one_rank;
  } else if (!first) {
    outcome_ = Outcome::other_world;
  }
}

/// Of an intercommunicator: the group whose first rank is lower in MPI_COMM_WORLD comes first.
void Communicator::join_groups(std::optional<int> local, std::optional<int> remote) {
  if (!local || !remote) {
    outcome_ = Outcome::other_world;
    return;
  }
  const int locals = place_.ranks;
  PMPI_Comm_remote_size(handle(), &place_.remote);
  place_.ranks += place_.remote;
  place_.remote_first = *local < *remote ? locals : 0;
  place_.rank += *local < *remote ? 0 : place_.remote;
}

int Communicator::start() {
  const OneGroup all_ranks(handle(), place_);
  if (all_ranks.code() != MPI_SUCCESS) return all_ranks.code();
  // tutti's time limit is to begin when all are here, not when the first one is.
  if (const int code = PMPI_Barrier(all_ranks.comm()); code != MPI_SUCCESS) return code;
  Offer offer;
  if (place_.rank == 0) offer.made = tuttiGetUniqueId(&offer.id) == tuttiSuccess ? 1 : 0;
  if (const int code = PMPI_Bcast(&offer, sizeof offer, MPI_BYTE, 0, all_ranks.comm()); code != MPI_SUCCESS)
    return code;
  tuttiResult_t result = tuttiSystemError;
  if (offer.made != 0) {
    std::array<char, MPI_MAX_OBJECT_NAME> name{};
    int length = 0;
    PMPI_Comm_get_name(handle(), name.data(), &length);
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    config.device = -1;
    config.name = length > 0 ? name.data() : nullptr;
    config.progress = &Progress::run;
    config.progressContext = &common_.progress;
    result = tuttiCommInitRankConfig(&comm_, place_.ranks, offer.id, place_.rank, &config);
  }
  const int mine = result == tuttiSuccess ? 1 : 0;
  int all = 0;
  if (const int code = PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, all_ranks.comm()); code != MPI_SUCCESS)
    return code;
  started_ = all == 1;
  if (started_) return MPI_SUCCESS;
  if (mine == 0 && (offer.made != 0 || place_.rank == 0)) common_.lines.write(why(result));
  if (comm_ != nullptr) tuttiCommAbort(comm_);
  comm_ = nullptr;
  outcome_ = Outcome::no_start;
  return MPI_SUCCESS;
}

std::string Communicator::why(tuttiResult_t result) const {
  const char* const sentence = tuttiGetLastError(nullptr);
  return fmt::format("tutti: MPI serves a communicator of {} ranks: rank {}: {}\n", place_.ranks, place_.rank,
                     sentence[0] != '\0' ? sentence : tuttiGetErrorString(result));
}

tuttiResult_t Communicator::queue(tuttiStream_t& stream) {
  if (stream_ == nullptr)
    if (const tuttiResult_t made = tuttiStreamCreate(&stream_); made != tuttiSuccess) return made;
  stream = stream_;
  return tuttiSuccess;
}

int Communicator::code_of(tuttiResult_t result) {
  const std::lock_guard lock(telling_);
  std::string sentence = comm_ == nullptr ? last_words_ : tuttiGetLastError(comm_);
  if (sentence.empty()) sentence = tuttiGetLastError(nullptr);
  if (sentence.empty()) sentence = tuttiGetErrorString(result);
  sentence = "tutti: " + sentence;
  sentence.resize(std::min<std::size_t>(sentence.size(), MPI_MAX_ERROR_STRING - 1));
  if (told_code_ == MPI_SUCCESS || sentence != told_) {
    int code = MPI_ERR_OTHER;
    if (PMPI_Add_error_code(common_.error_class, &code) == MPI_SUCCESS) PMPI_Add_error_string(code, sentence.c_str());
    told_ = sentence;
    told_code_ = code;
  }
  return told_code_;
}

int Communicator::tell(int code) const {
  PMPI_Comm_call_errhandler(handle() != MPI_COMM_NULL ? handle() : MPI_COMM_WORLD, code);
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
