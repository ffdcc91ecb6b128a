#include "perf/gpu/nccl.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "perf/launch.h"

namespace perf {
namespace {

constexpr int kVersionLeast = 23000;  // 2.30, as major · 10000 + minor · 100 + patch
constexpr int kFloat32 = 7;
constexpr int kSum = 0;

/// Passed by value.
struct UniqueId {
  char bytes[128];
};

std::string text_of(int version) {
  if (version < 10000) return fmt::format("{}.{}.{}", version / 1000, version / 100 % 10, version % 100);  // up to 2.8
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

/// NCCL's functions by its names, as declared by its releases of 2.x.
struct NcclTeam::Functions {
  int (*get_version)(int*) = nullptr;
  const char* (*get_error_string)(int) = nullptr;
  const char* (*get_last_error)(void*) = nullptr;
  int (*get_unique_id)(UniqueId*) = nullptr;
  int (*init_rank)(void**, int, UniqueId, int) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int, int, void*, void*) = nullptr;

  explicit Functions(const std::string& path) {
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) fail(-1, fmt::format("--nccl: {}", ::dlerror()));
    const auto find = [&]<class Function>(const char* name, Function& function) {
      function = reinterpret_cast<Function>(::dlsym(library, name));
      if (function == nullptr) fail(-1, fmt::format("--nccl: {} has no {}", path, name));
    };
    find("ncclGetVersion", get_version);
    find("ncclGetErrorString", get_error_string);
    find("ncclGetLastError", get_last_error);
    find("ncclGetUniqueId", get_unique_id);
    find("ncclCommInitRank", init_rank);
    find("ncclCommDestroy", destroy);
    find("ncclGroupStart", group_start);
    find("ncclGroupEnd", group_end);
    find("ncclAllReduce", all_reduce);
  }
};

NcclTeam::NcclTeam(const std::string& library, std::size_t ranks) : comms_(ranks) {
  constexpr int keep_what_is_set = 0;
  ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", keep_what_is_set);  // read when the first communicator is made
  nccl_ = std::make_unique<const Functions>(library);
  must(nccl_->get_version(&version_), "ncclGetVersion");
  if (version_ < kVersionLeast)
    fail(-1, fmt::format("--nccl: NCCL {} refuses several ranks on one GPU: 2.30 is needed", text_of(version_)));
  UniqueId id{};
  must(nccl_->get_unique_id(&id), "ncclGetUniqueId");
  must(nccl_->group_start(), "ncclGroupStart");
  for (std::size_t rank = 0; rank < ranks; ++rank)
    must(nccl_->init_rank(&comms_[rank], static_cast<int>(ranks), id, static_cast<int>(rank)), "ncclCommInitRank");
  must(nccl_->group_end(), "ncclGroupEnd");
}

NcclTeam::~NcclTeam() {
  for (void* const comm : comms_) (void)nccl_->destroy(comm);
}

void NcclTeam::must(int status, const char* function) const {
  if (status == 0) return;
  const char* const last = nccl_->get_last_error(nullptr);  // of any communicator
  const std::string why = last == nullptr ? "" : last;
  fail(-1, fmt::format("NCCL: {}: {}{}{}", function, nccl_->get_error_string(status), why.empty() ? "" : ": ", why));
}

void NcclTeam::call(const Sums& sums, const GpuQueue& queue) const {
  must(nccl_->group_start(), "ncclGroupStart");
  for (std::size_t i = 0; i < comms_.size(); ++i)
    must(nccl_->all_reduce(sums.input(i), sums.output(i), sums.count(), kFloat32, kSum, comms_[i], queue.stream(i)),
         "ncclAllReduce");
  must(nccl_->group_end(), "ncclGroupEnd");
}

std::string NcclTeam::algorithm() const {
  return fmt::format("nccl-{}", text_of(version_));
}

}  // namespace perf
