// How a long map gets to all ranks in parts.
#include "init/phases/map_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace tutti {
namespace {

constexpr int ranks = 500;

JobMap some_map() {
  JobMap map;
  map.order.resize(ranks);
  std::iota(map.order.begin(), map.order.end(), 0);
  std::ranges::shuffle(map.order, std::mt19937(3));
  return map;
}

TEST(MapExchange, TakesAsManyPartsAsItNeeds) {
  for (const std::size_t part_bytes : {std::size_t{1}, std::size_t{7}, std::size_t{400}, std::size_t{64} << 10}) {
    MapExchange told(some_map());
    auto heard = MapExchange::announced(told.bytes(), ranks);
    ASSERT_TRUE(heard);
    std::size_t parts = 0;
    for (; heard->more(); ++parts) ASSERT_TRUE(heard->take(told.part(part_bytes)));
    EXPECT_EQ(parts, (told.bytes() + part_bytes - 1) / part_bytes);
    EXPECT_TRUE(told.part(part_bytes).empty());
    const auto map = heard->map(ranks);
    ASSERT_TRUE(map) << map.error().text();
    EXPECT_EQ(*map, some_map());
  }
}

TEST(MapExchange, RefusesWhatWasNotAnnounced) {
  MapExchange told(some_map());
  const auto all = told.part(told.bytes());
  auto heard = MapExchange::announced(all.size() - 1, ranks);
  ASSERT_TRUE(heard);
  EXPECT_FALSE(heard->take(all)) << "too long";
  EXPECT_FALSE(heard->take({})) << "no end in sight";
  ASSERT_TRUE(heard->take(all.first(all.size() - 1)));
  EXPECT_FALSE(heard->more());
  EXPECT_FALSE(heard->take(all.first(1))) << "after the end";
  EXPECT_FALSE(heard->map(ranks)) << "cut off";
  EXPECT_FALSE(MapExchange::announced(map_bytes_max(ranks) + 1, ranks));
  EXPECT_FALSE(MapExchange::announced(0xffff'ffff, 65'535));
}

}  // namespace
}  // namespace tutti
