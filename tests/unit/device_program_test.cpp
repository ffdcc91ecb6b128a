// Are kernels told the same cut as the CPU executor, and only such actions parallel as have different peers?
#include "exec/device_program.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/image.h"
#include "kernels/run_plan.h"
#include "support/plan_writer.h"

namespace tutti {
namespace {

using namespace testing;

TEST(DeviceProgram, ExtentsAreThoseOfTheSplit) {
  for (const std::size_t count : {0, 1, 5, 1000, 4096, 100001})
    for (const std::size_t element_bytes : {1, 2, 8})
      for (const int parts : {1, 3, 8})
        for (const std::size_t tiled : {0, 64, 4096}) {
          Split split(count, element_bytes, parts);
          if (tiled != 0) split.tile(tiled, 1);
          const device::Cut cut = cut_of(split);
          ASSERT_EQ(cut.tiles, split.tiles());
          for (int part = 0; part < parts; ++part)
            for (std::size_t tile = 0; tile < split.tiles(); ++tile) {
              const Range wanted = split.tile_of(part, tile);
              const device::Extent got = device::extent_of(cut, static_cast<std::uint32_t>(part), tile);
              ASSERT_EQ(got.count, wanted.count);
              if (wanted.count > 0) {
                ASSERT_EQ(got.begin, wanted.begin);
              }
            }
        }
}

TEST(DeviceProgram, ChannelsShareAWindowCall) {
  Split split(1 << 20, 4, 4);
  share(split, 16, 1024);
  EXPECT_GE(split.tiles(), 15u);
  EXPECT_LE(split.tiles(), 16u);
  Split small(256, 4, 4);
  share(small, 16, 1024);
  EXPECT_EQ(small.tiles(), 1u);
}

TEST(DeviceProgram, TogetherGoWhatHasDifferentPeers) {
  const Schedule schedule({.collective = Collective::all_reduce, .ranks = 4}, 1);
  PlanWriter writer(schedule, 0, Access::mapped);
  writer.signal(1).signal(2).signal(1).wait(1).wait(2).copy(input(0), {output(0)}).copy(input(0), {output(0)});
  std::vector<std::uint32_t> parallel;
  for (const Action& action : device_actions(writer.plan())) parallel.push_back(action.parallel);
  EXPECT_EQ(parallel, (std::vector<std::uint32_t>{2, 1, 1, 2, 1, 1, 1}));
}

TEST(DeviceProgram, EntriesHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const device::Body body : device::bodies)
    for (int type = 0; type < device_type_count; ++type)
      EXPECT_TRUE(names.insert(device::entry_name(body, static_cast<DataType>(type))).second);
  EXPECT_EQ(names.count(""), 0u);
}

}  // namespace
}  // namespace tutti
