// As much of NCCL as perf/gpu/nccl.cpp uses, on the fake driver: a library of its own. As NCCL it lets the ranks' parts
// of a call wait for each other on the GPU, and allows several ranks on one only where it is told to. FAKE_NCCL says
// what goes wrong: old (its version), late (a call never ends), wrong (one sum), refused (a call).
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/entries.h"
#include "support/fake_cuda.h"

namespace tutti::testing {
namespace {

constexpr int success = 0;
constexpr int unhandled_cuda_error = 1;
constexpr int invalid_usage = 5;
constexpr int float32 = 7;
constexpr int sum = 0;

struct UniqueId {
  std::array<char, 128> bytes;
};

struct Comm {
  int rank = 0;
  int ranks = 0;
  CUevent_st* event = nullptr;
};

/// A rank's part of a call.
struct Part {
  Comm* comm = nullptr;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;
  CUstream_st* stream = nullptr;
};

/// What the kernel of a call is given.
struct Sums {
  static constexpr int ranks_max = 16;
  std::size_t count = 0;
  int ranks = 0;
  std::array<const float*, ranks_max> from{};
  std::array<float*, ranks_max> to{};
};
static_assert(sizeof(Sums) <= sizeof(device::Call), "which is what the fake driver keeps of an argument");

/// Of the group that a thread has open.
struct Group {
  std::vector<Part> parts;
  std::string error;
};

Group& group() {
  thread_local Group mine;
  return mine;
}

bool told(std::string_view what) {
  const char* const given = std::getenv("FAKE_NCCL");
  return given != nullptr && given == what;
}

const char* driver() {
  return std::getenv("TUTTI_CUDA_LIBRARY");
}

/// By CUDA's name.
template <class... Arguments>
bool cuda_call(const char* name, Arguments... arguments) {
  const bool done = cuda_function<int(Arguments...)>(driver(), name)(arguments...) == 0;
  if (!done) group().error = std::string(name) + " failed";
  return done;
}

int refuse(std::string why) {
  group().error = std::move(why);
  return invalid_usage;
}

cuda::Status add_up(const std::byte* argument) {
  Sums sums;
  std::memcpy(&sums, argument, sizeof sums);
  for (std::size_t i = 0; i < sums.count; ++i) {
    float total = i == 0 && told("wrong") ? 1.0F : 0.0F;
    for (int rank = 0; rank < sums.ranks; ++rank) total += sums.from[static_cast<std::size_t>(rank)][i];
    for (int rank = 0; rank < sums.ranks; ++rank) sums.to[static_cast<std::size_t>(rank)][i] = total;
  }
  return 0;
}

bool launch(const Sums& sums, CUstream_st* stream) {
  fake_cuda(driver()).set_kernel(
      [](const std::string&, const std::byte* argument, unsigned, unsigned) { return add_up(argument); });
  std::array<std::byte, sizeof(device::Call)> argument{};
  std::memcpy(argument.data(), &sums, sizeof sums);
  std::array<void*, 1> parameters{argument.data()};
  static CUlib_st* library = nullptr;
  CUkern_st* kernel = nullptr;
  CUfunc_st* function = nullptr;
  if (library == nullptr && !cuda_call<CUlib_st**, const void*, int*, void**, unsigned, int*, void**, unsigned>(
                                "cuLibraryLoadData", &library, "an image", nullptr, nullptr, 0, nullptr, nullptr, 0))
    return false;
  return cuda_call<CUkern_st**, CUlib_st*, const char*>("cuLibraryGetKernel", &kernel, library, "sum") &&
         cuda_call<CUfunc_st**, CUkern_st*>("cuKernelGetFunction", &function, kernel) &&
         cuda_call<CUfunc_st*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream_st*,
                   void**>("cuLaunchCooperativeKernel", function, 1, 1, 1, 1, 1, 1, 0, stream, parameters.data());
}

/// All parts of one call: the first rank's stream adds up when all have got there, and the others go on behind it.
int carry_out(const std::vector<Part>& parts) {
  Sums sums{.count = parts[0].count, .ranks = parts[0].comm->ranks};
  if (parts.size() != static_cast<std::size_t>(sums.ranks)) return refuse("a group must hold the calls of all ranks");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      if (parts[i].stream == parts[j].stream)
        return refuse("two ranks on one stream would wait for each other for ever");
    sums.from[i] = static_cast<const float*>(parts[i].from);
    sums.to[i] = static_cast<float*>(parts[i].to);
  }
  if (told("late")) fake_cuda(driver()).hold();
  CUstream_st* const first = parts[0].stream;
  bool done = true;
  for (const Part& part : parts)
    done = done && cuda_call<CUevent_st*, CUstream_st*>("cuEventRecord", part.comm->event, part.stream) &&
           cuda_call<CUstream_st*, CUevent_st*, unsigned>("cuStreamWaitEvent", first, part.comm->event, 0);
  done =
      done && launch(sums, first) && cuda_call<CUevent_st*, CUstream_st*>("cuEventRecord", parts[0].comm->event, first);
  for (const Part& part : parts)
    done = done &&
           cuda_call<CUstream_st*, CUevent_st*, unsigned>("cuStreamWaitEvent", part.stream, parts[0].comm->event, 0);
  return done ? success : unhandled_cuda_error;
}

}  // namespace
}  // namespace tutti::testing

using namespace tutti::testing;  // NOLINT: the functions below are not of a namespace

#define FAKE_NCCL __attribute__((visibility("default")))

extern "C" {

FAKE_NCCL int ncclGetVersion(int* version) {
  *version = told("old") ? 22907 : 23203;
  return success;
}

FAKE_NCCL const char* ncclGetErrorString(int status) {
  return status == invalid_usage ? "invalid usage" : "unhandled cuda error";
}

FAKE_NCCL const char* ncclGetLastError(void*) {
  return group().error.c_str();
}

FAKE_NCCL int ncclGetUniqueId(UniqueId* id) {
  id->bytes.fill('7');
  return success;
}

FAKE_NCCL int ncclCommInitRank(Comm** comm, int ranks, UniqueId id, int rank) {
  const char* const allowed = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  if (allowed == nullptr || std::strcmp(allowed, "1") != 0) return refuse("several ranks on one GPU");
  if (id.bytes.back() != '7' || rank < 0 || rank >= ranks || ranks > Sums::ranks_max) return refuse("bad arguments");
  *comm = new Comm{.rank = rank, .ranks = ranks};
  return cuda_call<CUevent_st**, unsigned>("cuEventCreate", &(*comm)->event, 0) ? success : unhandled_cuda_error;
}

FAKE_NCCL int ncclCommDestroy(Comm* comm) {
  const bool done = cuda_call<CUevent_st*>("cuEventDestroy", comm->event);
  delete comm;
  return done ? success : unhandled_cuda_error;
}

FAKE_NCCL int ncclGroupStart() {
  group().parts.clear();
  return success;
}

FAKE_NCCL int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int op, Comm* comm,
                            CUstream_st* stream) {
  if (told("refused") || type != float32 || op != sum) return refuse("told to");
  group().parts.push_back({.comm = comm, .from = from, .to = to, .count = count, .stream = stream});
  return success;
}

FAKE_NCCL int ncclGroupEnd() {
  const auto parts = std::move(group().parts);
  group().parts.clear();
  return parts.empty() ? success : carry_out(parts);
}
}
