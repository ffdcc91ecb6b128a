// The memory by which kernels of several processes meet: created and mapped by a descriptor, or by CUDA IPC.
#include "support/gpu_meeting.h"

namespace tutti::testing {
namespace {

struct Way {
  const char* text;
  std::vector<std::string> settings;
  const char* function;  ///< of the driver, that fails on rank 1; null: none
  bool created;          ///< on rank 0
  bool meets;
};
const Way ways[] = {
    {"ByDescriptor", {}, nullptr, true, true},
    {"ByIpc", {"TUTTI_CUMEM_ENABLE=0"}, nullptr, false, true},
    {"OneRankCannotCreate", {}, "cuMemCreate", true, true},
    {"OneRankCannotExport", {}, "cuMemExportToShareableHandle", true, true},
};

using Where = std::tuple<Way, Seating>;
class GpuMemory : public ::testing::TestWithParam<Where> {};
INSTANTIATE_TEST_SUITE_P(Ways, GpuMemory,
                         ::testing::Combine(::testing::ValuesIn(ways),
                                            ::testing::Values(Seating::processes, Seating::pairs)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).text) + "_" + name(std::get<1>(test.param));
                         });

INSTANTIATE_TEST_SUITE_P(NoWay, GpuMemory,
                         ::testing::Values(Where{
                             {"OneRankCannotImport", {}, "cuMemImportFromShareableHandle", true, false},
                             Seating::processes}),
                         [](const auto& test) { return std::get<0>(test.param).text; });

/// Where memory can neither be created nor mapped, ranks do without kernels that meet; and all of it is given back.
TEST_P(GpuMemory, IsMadeAndGivenBack) {
  const Way& way = std::get<0>(GetParam());
  const Seating seating = std::get<1>(GetParam());
  launch_ranks(team_of(4, seating, way.settings), [&](Seat& seat) {
    auto& fake = fake_cuda(library);
    const int gpu = choose_gpu(seat, seating);
    if (seat.rank() == 1 && way.function != nullptr) fake.fail(way.function, cuda::status::not_supported, 0, true);
    if (!seat.meet()) return;
    CudaUser user(library, gpu);
    if (!seat.meet()) return;
    const auto before = fake.live();
    if (!seat.meet()) return;
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    // A process of two seats has one driver.
    const bool alone = seating == Seating::processes;
    if (seat.rank() == 0 && alone) {
      EXPECT_EQ(fake.calls("cuMemCreate") > 0, way.created);
      if (way.created && way.function == nullptr) {
        EXPECT_EQ(fake.calls("cuIpcOpenMemHandle"), 0);
      }
    }
    {
      const OneRank one(user, comm, seat.rank(), 1000);
      ASSERT_TRUE(ok(one.all_reduce()));
      expect_sum(one, 4);
      if (alone) {
        EXPECT_EQ(waits_for_host() == 0, way.meets);
      }
      for (std::int32_t* const at : {one.input, one.output}) user.free(at);
    }
    if (!seat.meet()) return;
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    if (!seat.meet()) return;
    EXPECT_EQ(fake.live().mapped, 0);
    EXPECT_EQ(fake.live().misuse, 0);
    EXPECT_EQ(fake.live().device_bytes, before.device_bytes);
    if (!seat.meet()) return;
  });
}

}  // namespace
}  // namespace tutti::testing
