// Parts and tiles cover a group exactly, whatever its size.
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tutti {
namespace {

const std::vector<std::size_t> counts = {0,  1,  2,    3,    5,    7,     8,     15,     16,      17,     63,
                                         64, 65, 1000, 1024, 4095, 12289, 65536, 100003, 1 << 20, 3000001};
const std::vector<int> part_counts = {1, 2, 3, 4, 7, 8, 16, 33, 64};

template <class Use>
void for_every_split(Use use) {
  for (const std::size_t count : counts)
    for (const std::size_t bytes : {1, 2, 4, 8})
      for (const int parts : part_counts) use(Split(count, bytes, parts), parts);
}

TEST(Parts, CoverTheGroupInOrder) {
  for_every_split([](const Split& split, int parts) {
    std::size_t at = 0;
    for (int part = 0; part < parts; ++part) {
      ASSERT_EQ(split.part(part).begin, at);
      at += split.part(part).count;
    }
    ASSERT_EQ(at, split.count());
  });
}

TEST(Parts, AreEqualUpToOneUnit) {
  for_every_split([](const Split& split, int parts) {
    const bool large = split.count() / static_cast<std::size_t>(parts) * split.element_bytes() >= 4096;
    const std::size_t unit = large ? 64 / split.element_bytes() : 1;
    std::size_t least = split.count(), most = 0;
    for (int part = 0; part < parts; ++part) {
      const Range range = split.part(part);
      ASSERT_TRUE(range.count == 0 || range.begin % unit == 0);
      least = std::min(least, range.count);
      most = std::max(most, range.count);
    }
    // The last part may end within a unit.
    ASSERT_LT(most - least, 2 * unit);
  });
}

TEST(Tiles, CoverEveryPartInOrder) {
  for_every_split([](Split split, int parts) {
    for (const std::size_t slot_bytes : {1024, 5000, 65536, 1 << 20})
      for (const int items : {1, 2, 5, 32}) {
        Split tiled = split;
        tiled.tile(slot_bytes, items);
        ASSERT_GE(tiled.tiles(), 1u);
        for (int part = 0; part < parts; ++part) {
          std::size_t at = tiled.part(part).begin;
          for (std::size_t tile = 0; tile < tiled.tiles(); ++tile) {
            const Range range = tiled.tile_of(part, tile);
            ASSERT_TRUE(range.count == 0 || range.begin == at);
            ASSERT_LE(range.count * tiled.element_bytes(), tiled.stride());
            at += range.count;
          }
          ASSERT_EQ(at, tiled.part(part).begin + tiled.part(part).count);
        }
        ASSERT_LE(static_cast<std::size_t>(items) * tiled.stride(), slot_bytes);
        ASSERT_EQ(tiled.stride() % 16, 0u);
      }
  });
}

TEST(Tiles, AreOneWithoutSlots) {
  for_every_split([](const Split& split, int parts) {
    ASSERT_EQ(split.tiles(), 1u);
    for (int part = 0; part < parts; ++part) {
      ASSERT_EQ(split.tile_of(part, 0).begin, split.part(part).begin);
      ASSERT_EQ(split.tile_of(part, 0).count, split.part(part).count);
    }
  });
}

TEST(Tiles, BeginAtCacheLinesWherePartsDo) {
  Split split(1 << 20, 4, 3);
  split.tile(100'000, 3);
  for (std::size_t tile = 0; tile < split.tiles(); ++tile) EXPECT_EQ(split.tile_of(1, tile).begin * 4 % 64, 0u);
}

TEST(Tiles, AreAsFewAsFitAndEqual) {
  Split split(1 << 20, 4, 1);
  split.tile(64 * 1024, 1);
  EXPECT_EQ(split.tiles(), 64u);
  Split uneven(1'000'000, 4, 1);
  uneven.tile(64 * 1024, 1);
  EXPECT_EQ(uneven.tiles(), 62u);
  EXPECT_GT(uneven.tile_of(0, 61).count, uneven.tile_of(0, 0).count * 9 / 10);
}

TEST(Tiles, OfASmallerGroupAreThoseOfTheLargestCutShort) {
  Split split(10'000, 8, 1);
  split.tile(4096, 1);
  for (const std::size_t count : {0u, 1u, 511u, 512u, 513u, 9'999u, 10'000u}) {
    std::size_t at = 0;
    for (std::size_t tile = 0; tile < split.tiles(); ++tile) {
      const Range range = split.tile_of_group(count, tile);
      const Range whole = split.tile_of(0, tile);
      EXPECT_TRUE(range.count == 0 || range.begin == whole.begin);
      EXPECT_LE(range.count, whole.count);
      at += range.count;
    }
    EXPECT_EQ(at, count);
  }
}

TEST(Split, HoldsOneElementOfEachItemInTheSmallestSlot) {
  Split split(1000, 8, 4);
  split.tile(64, 4);
  EXPECT_EQ(split.stride(), 16u);
  EXPECT_EQ(split.tile_of(0, 0).count, 2u);
}

TEST(Access, HasAName) {
  EXPECT_EQ(name(Access::cma), "cma");
}

}  // namespace
}  // namespace tutti
