// Nothing in a rank's area overlaps, all of it is inside, and damaged or absurd areas are noticed.
#include "transport/rank_area.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/shared_areas.h"

namespace tutti {
namespace {

struct Region {
  std::uintptr_t begin;
  std::size_t bytes;
  std::string what;
};

std::vector<Region> regions(const RankArea& area) {
  const AreaShape& shape = area.shape();
  std::vector<Region> all;
  const auto add = [&all](const void* at, std::size_t bytes, std::string what) {
    all.push_back({reinterpret_cast<std::uintptr_t>(at), bytes, std::move(what)});
  };
  add(&area.header(), sizeof(AreaHeader), "header");
  add(area.call_descriptors(), DescriptorRings::ring_bytes(shape.payload_bytes), "call descriptors");
  for (int channel = 0; channel < shape.channels; ++channel)
    for (int peer = 0; peer < shape.ranks; ++peer) {
      const std::string where = " of channel " + std::to_string(channel) + " peer " + std::to_string(peer);
      add(&area.flags(channel, peer).signal, sizeof(Flag), "signal" + where);
      add(&area.flags(channel, peer).filled, sizeof(Flag), "filled" + where);
      add(&area.flags(channel, peer).freed, sizeof(Flag), "freed" + where);
      for (int slot = 0; slot < shape.slots; ++slot) {
        add(&area.slot_head(channel, peer, slot), sizeof(SlotHead), "head" + where);
        add(area.slot(channel, peer, slot), shape.slot_bytes, "slot" + where);
      }
    }
  for (int call = 0; call < limits::call_payloads; ++call)
    add(area.shares(call), static_cast<std::size_t>(shape.ranks) * RankArea::share_bytes, "shares");
  add(area.device_board(), RankArea::device_board_bytes, "device board");
  return all;
}

class AnyShape : public ::testing::TestWithParam<AreaShape> {};

TEST_P(AnyShape, NothingOverlapsAndAllIsInside) {
  testing::SharedAreas areas(GetParam());
  const RankArea& area = areas.area(0);
  auto all = regions(area);
  std::ranges::sort(all, {}, &Region::begin);
  const auto base = reinterpret_cast<std::uintptr_t>(&area.header());
  EXPECT_EQ(all.front().begin, base);
  for (std::size_t i = 0; i + 1 < all.size(); ++i)
    ASSERT_LE(all[i].begin + all[i].bytes, all[i + 1].begin) << all[i].what << " runs into " << all[i + 1].what;
  EXPECT_LE(all.back().begin + all.back().bytes, base + RankArea::bytes(GetParam()));
}

TEST_P(AnyShape, FlagsHaveLinesAndSlotsPagesOfTheirOwn) {
  testing::SharedAreas areas(GetParam());
  for (const Region& region : regions(areas.area(0))) {
    const std::size_t alignment = region.what.starts_with("slot") ? 4096
                                  : region.bytes == sizeof(Flag)  ? limits::line_bytes
                                                                  : 1;
    EXPECT_EQ(region.begin % alignment, 0u) << region.what;
  }
}

TEST_P(AnyShape, MessagesGoRoundTheSlots) {
  testing::SharedAreas areas(GetParam());
  const RankArea& area = areas.area(0);
  const auto slots = static_cast<std::uint64_t>(GetParam().slots);
  for (const std::uint64_t message : {std::uint64_t{0}, std::uint64_t{7}, (std::uint64_t{1} << 32) * slots + 1,
                                      (std::uint64_t{1} << 60) * slots + slots - 1}) {
    EXPECT_EQ(area.slot(0, 0, message), area.slot(0, 0, message % slots));
    EXPECT_EQ(&area.slot_head(0, 0, message), &area.slot_head(0, 0, message % slots));
  }
}

INSTANTIATE_TEST_SUITE_P(RankArea, AnyShape,
                         ::testing::Values(AreaShape{},
                                           AreaShape{.ranks = 2, .channels = 1, .slots = 1, .slot_bytes = 1},
                                           AreaShape{.ranks = 3, .channels = 2, .slots = 2, .slot_bytes = 4097},
                                           AreaShape{.ranks = 5, .channels = 3, .slots = 33, .slot_bytes = 100},
                                           AreaShape{.ranks = 64, .channels = 9, .slots = 4},
                                           AreaShape{.ranks = 2, .payload_bytes = 0},
                                           AreaShape{.ranks = 2, .payload_bytes = 8064}));

TEST(RankArea, OnlyWhatWasFormattedForThisShapeIsValid) {
  const AreaShape shape{.ranks = 2, .channels = 2};
  testing::SharedAreas areas(shape);
  const RankArea& area = areas.area(0);
  EXPECT_TRUE(area.valid());
  EXPECT_EQ(area.header().state.load(), RankState::starting);
  EXPECT_EQ(area.header().culprit.load(), -1);

  AreaShape other = shape;
  other.slots = 3;
  EXPECT_FALSE(RankArea(reinterpret_cast<std::byte*>(&area.header()), other).valid());
  area.header().magic ^= 1;
  EXPECT_FALSE(area.valid());
}

TEST(RankArea, AbsurdShapesDoNotWrapAround) {
  constexpr int many = std::numeric_limits<int>::max();
  EXPECT_EQ(RankArea::bytes({.ranks = many, .channels = many, .slots = many, .slot_bytes = 0xffff'ffff}),
            std::numeric_limits<std::size_t>::max());
  const std::size_t one = RankArea::bytes({.ranks = 256, .channels = 9});
  const std::size_t two = RankArea::bytes({.ranks = 512, .channels = 9});
  EXPECT_GT(two, one + 256ul * 9 * 4 * 65536 - 1);
}

}  // namespace
}  // namespace tutti
