// Ranks with GPUs of a live machine: do levels and order follow the links that NVIDIA's driver reports?
#include <dlfcn.h>

#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "support/fake_nvml.h"
#include "support/folder.h"
#include "support/gpu_ranks.h"

namespace tutti::testing {
namespace {

using Links = std::vector<std::pair<int, int>>;

/// For as long as the process lives: the library finds it under the system's name.
void answer_as_nvml(const Links& links) {
  void* const library = ::dlopen(TUTTI_FAKE_NVML_SYSTEM, RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  FakeNvml& nvml = *reinterpret_cast<FakeNvml* (*)()>(::dlsym(library, "fake_nvml"))();
  const auto bus = [](int gpu) { return fmt::format("0000:{:02x}:00.0", 0x10 + gpu); };  // as the fake driver's
  for (int gpu = 0; gpu < 4; ++gpu) nvml.gpus.push_back({.bus_id = bus(gpu), .p2p = {0, 0, 0, 0}});
  for (const auto& [one, other] : links) {
    nvml.gpus[static_cast<std::size_t>(one)].links.push_back({.remote = bus(other)});
    nvml.gpus[static_cast<std::size_t>(other)].links.push_back({.remote = bus(one)});
  }
}

/// What rank 0 of four ranks writes, each with its own GPU, of which these are linked.
std::string job_of_linked(const Links& links) {
  const Folder folder;
  const std::string written = folder.path() + "/job.json";
  EXPECT_TRUE(launch_ranks(launch_group(4, Layout::threads, {"TUTTI_JOB_DUMP_FILE=" + written}), [&](Seat& seat) {
    if (seat.rank() == 0) {
      fake_cuda(library).set_devices(4);
      answer_as_nvml(links);
    }
    if (!seat.meet()) return;
    CudaUser user(library, seat.rank());
    tuttiComm_t comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    int device = -1;
    EXPECT_TRUE(ok(tuttiCommDevice(comm, &device)));
    EXPECT_EQ(device, seat.rank());
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  }));
  std::ifstream file(written);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(GpuPlace, RingsFollowNvlinks) {
  const std::string job = job_of_linked({{0, 2}, {2, 1}, {1, 3}, {3, 0}});
  EXPECT_TRUE(has(job, R"("order": [0, 2, 1, 3])") || has(job, R"("order": [0, 3, 1, 2])")) << job;
  EXPECT_TRUE(has(job, R"("device": "GPU3")")) << job;
}

TEST(GpuPlace, PairsWithABridgeAreALevel) {
  const std::string job = job_of_linked({{0, 2}, {1, 3}});
  EXPECT_TRUE(has(job, "[0, 1, 0, 1]")) << job;
}

}  // namespace
}  // namespace tutti::testing
