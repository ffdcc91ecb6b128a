#include "call/arguments.h"

#include <climits>

#include <gtest/gtest.h>

#include <vector>

namespace tutti {
namespace {

constexpr int ranks = 4;
constexpr Rank rank = 2;
constexpr std::size_t count = 8;

class Arguments : public testing::Test {
 protected:
  Request call(Collective collective, std::ptrdiff_t in, std::ptrdiff_t out) {
    return {.collective = collective,
            .input = memory_.data() + 256 + in,
            .output = memory_.data() + 256 + out,
            .count = count,
            .type = DataType::int8,
            .root = rank};
  }
  static Code check(const Request& request) {
    const auto checked = check_arguments(request, rank, ranks);
    return checked ? Code::success : checked.error().code;
  }
  std::vector<std::byte> memory_ = std::vector<std::byte>(1024);
};

TEST_F(Arguments, InPlaceIsWhereNcclHasIt) {
  const std::ptrdiff_t block = rank * count;
  EXPECT_EQ(check(call(Collective::all_reduce, 0, 0)), Code::success);
  EXPECT_EQ(check(call(Collective::broadcast, 0, 0)), Code::success);
  EXPECT_EQ(check(call(Collective::reduce, 0, 0)), Code::success);
  EXPECT_EQ(check(call(Collective::all_to_all, 0, 0)), Code::success);
  EXPECT_EQ(check(call(Collective::scan, 0, 0)), Code::success);
  EXPECT_EQ(check(call(Collective::ex_scan, 0, 0)), Code::success);
  EXPECT_EQ(check(call(Collective::all_gather, block, 0)), Code::success);
  EXPECT_EQ(check(call(Collective::gather, block, 0)), Code::success);
  EXPECT_EQ(check(call(Collective::reduce_scatter, 0, block)), Code::success);
  EXPECT_EQ(check(call(Collective::scatter, 0, block)), Code::success);
}

TEST_F(Arguments, AnyOtherOverlapIsRefused) {
  for (const auto collective : {Collective::all_reduce, Collective::reduce, Collective::broadcast,
                                Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all,
                                Collective::gather, Collective::scatter, Collective::scan, Collective::ex_scan}) {
    for (const std::ptrdiff_t shift : {-1, 1, 3}) {
      auto request = call(collective, 0, shift);
      EXPECT_EQ(check(request), Code::invalid_argument) << name(collective) << " " << shift;
    }
    const std::ptrdiff_t far = ranks * count;
    EXPECT_EQ(check(call(collective, 0, far)), Code::success) << name(collective);
    EXPECT_EQ(check(call(collective, far, 0)), Code::success) << name(collective);
  }
}

TEST_F(Arguments, NullIsRefusedOnlyWhereBytesAreNeeded) {
  auto request = call(Collective::all_reduce, 0, 0);
  request.input = nullptr;
  EXPECT_EQ(check(request), Code::invalid_argument);
  request.count = 0;
  EXPECT_EQ(check(request), Code::success);
  auto broadcast = call(Collective::broadcast, 0, 0);
  broadcast.root = 0;
  broadcast.input = nullptr;
  EXPECT_EQ(check(broadcast), Code::success) << "only the root sends";
  auto reduce = call(Collective::reduce, 0, 0);
  reduce.root = 0;
  reduce.output = nullptr;
  EXPECT_EQ(check(reduce), Code::success) << "only the root receives";
}

TEST_F(Arguments, OfAnExclusiveScanHaveNoResultOnRank0) {
  auto request = call(Collective::ex_scan, 0, 1);
  EXPECT_TRUE(check_arguments(request, 0, ranks)) << "what is ignored overlaps nothing";
  request.output = nullptr;
  EXPECT_TRUE(check_arguments(request, 0, ranks));
  EXPECT_FALSE(check_arguments(request, 1, ranks));
}

TEST_F(Arguments, RootsTypesAndCountsAreInRange) {
  for (const int root : {-1, ranks, 1 << 30}) {
    auto request = call(Collective::broadcast, 0, 0);
    request.root = root;
    EXPECT_EQ(check(request), Code::invalid_argument);
  }
  auto huge = call(Collective::all_gather, rank * count, 0);
  huge.count = ~std::size_t{0} / 2;
  EXPECT_EQ(check(huge), Code::invalid_argument);
  for (const int number : {-1, 12, 63, 68, INT_MAX, INT_MIN}) EXPECT_FALSE(data_type(number)) << number;
  for (int place = 0; place < data_type_count; ++place)
    EXPECT_EQ(*data_type(type_facts[place].number), static_cast<DataType>(place));
}

}  // namespace
}  // namespace tutti
