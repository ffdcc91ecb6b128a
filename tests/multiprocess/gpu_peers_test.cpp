// Kernels that access the memory of other ranks' GPUs: which memory they may access, and what is copied instead.
#include <functional>

#include "support/gpu_ranks.h"

namespace tutti::testing {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t count = 32 * page / sizeof(std::int32_t);  // above what goes through the host

/// What a buffer is allocated by, and whether all GPUs of the process may access it.
struct Kind {
  const char* name;
  bool open;
  std::function<std::byte*(CudaUser&, int rank)> allocate;
};

/// A pool of the driver's, which is closed to other GPUs.
std::byte* pooled(CudaUser& user) {
  user.allocate_pooled(true);
  std::byte* const at = user.allocate(count * sizeof(std::int32_t));
  user.allocate_pooled(false);
  return at;
}

/// Two ranges, each half of the buffer, and who may access them.
std::byte* mapped(CudaUser& user, unsigned first, unsigned second) {
  return user.allocate_mapped(count * sizeof(std::int32_t) / 2, {first, second});
}

std::vector<Kind> kinds() {
  return {{"plain", true, [](CudaUser& user, int) { return user.allocate(count * sizeof(std::int32_t)); }},
          {"managed", true, [](CudaUser& user, int) { return user.allocate_managed(count * sizeof(std::int32_t)); }},
          {"mapped for all", true, [](CudaUser& user, int) { return mapped(user, 7, 7); }},
          {"mapped for itself", false, [](CudaUser& user, int rank) { return mapped(user, 1u << rank, 1u << rank); }},
          {"half mapped for all", false, [](CudaUser& user, int rank) { return mapped(user, 7, 1u << rank); }},
          {"a closed pool", false, [](CudaUser& user, int) { return pooled(user); }}};
}

/// CUmemAccessDesc
struct PoolAccess {
  cuda::Location where;
  unsigned flags = cuda::access_read_write;
};

void open_pool(CudaUser& user, int device, int ranks) {
  CUctx_st* pool = nullptr;
  user.call<int(CUctx_st**, int)>("cuDeviceGetDefaultMemPool", &pool, device);
  for (int other = 0; other < ranks; ++other) {
    const PoolAccess access{.where = {.type = cuda::location_device, .id = other}};
    user.call<int(CUctx_st*, const PoolAccess*, std::size_t)>("cuMemPoolSetAccess", pool, &access, std::size_t{1});
  }
}

void reduce_between(CudaUser& user, Seat& seat, tuttiComm_t comm, std::byte* input_at, std::byte* output_at) {
  auto* const input = reinterpret_cast<std::int32_t*>(input_at);
  auto* const output = reinterpret_cast<std::int32_t*>(output_at);
  auto* const stream = user.stream();
  user.write(input, numbers(count, seat.rank()));
  user.write(output, std::vector<std::int32_t>(count, -1));
  ASSERT_TRUE(ok(tuttiAllReduce(input, output, count, tuttiInt32, tuttiSum, comm, tuttiCudaStream(stream))));
  user.synchronize(stream);
  EXPECT_EQ(user.get(output, count), sums(count, seat.ranks()));
}

/// Threads with a GPU each. What another GPU may not access is copied to what it may access; all else is not.
TEST(GpuPeers, MemoryThatOtherGpusMayNotAccess) {
  constexpr int ranks = 3;
  launch_ranks(launch_group(ranks, Layout::threads, {"TUTTI_DEBUG=NONE", "TUTTI_GPU_P2P=host"}), [](Seat& seat) {
    auto& fake = fake_cuda(library);
    if (seat.rank() == 0) fake.set_devices(ranks);
    if (!seat.meet()) return;
    CudaUser user(library, seat.rank());
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    auto all = kinds();
    all.push_back({"an open pool", true, [](CudaUser& of, int rank) {
                     open_pool(of, rank, ranks);
                     return pooled(of);
                   }});
    for (const Kind& kind : all) {
      seat.doing(kind.name);
      if (!seat.meet()) return;
      std::byte* const input = kind.allocate(user, seat.rank());
      std::byte* const output = kind.allocate(user, seat.rank());
      reduce_between(user, seat, comm, input, output);  // uploads the plan, and allocates what is copied to
      if (!seat.meet()) return;
      const int before = fake.calls("cuMemcpyAsync");
      if (!seat.meet()) return;
      reduce_between(user, seat, comm, input, output);
      if (!seat.meet()) return;
      EXPECT_EQ(fake.calls("cuMemcpyAsync") - before, kind.open ? 0 : 2 * ranks) << kind.name;
    }
    EXPECT_GT(launches(), 0);
    if (!seat.meet()) return;
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
