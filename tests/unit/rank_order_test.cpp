// What a deterministic communicator chooses from, for any number of ranks.
#include "choice/rank_order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "choice/select.h"
#include "plan/verify.h"

namespace tutti {
namespace {

constexpr Collective reductions[] = {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter};
constexpr Access accesses[] = {Access::in_line, Access::mapped, Access::cma, Access::slots};

bool has(std::span<const Algorithm* const> members, std::string_view name) {
  return std::ranges::any_of(members, [name](const Algorithm* member) { return member->name == name; });
}

std::uint64_t order_of(std::string_view algorithm, const Shape& shape, std::size_t block) {
  const auto meaning = verify(find_algorithm(algorithm, shape)->build(shape));
  EXPECT_TRUE(meaning);
  return meaning->order.at(block);
}

TEST(RankOrder, IsThatOfOneShotForEveryMemberAndNobodyElse) {
  for (const int ranks : {2, 3, 4, 5, 8, 17, 21, 33, 48, 64}) {
    RankOrder order(ranks);
    const Shape shape{.collective = Collective::all_reduce, .ranks = ranks};
    const std::uint64_t wanted = order_of("one_shot", shape, 0);
    const auto members = order.members(shape.collective);
    for (const Algorithm& algorithm : algorithms()) {
      if (!algorithm.supports(shape)) continue;
      const auto meaning = verify(algorithm.build(shape));
      ASSERT_TRUE(meaning);
      const bool same = std::ranges::all_of(meaning->order, [wanted](std::uint64_t hash) { return hash == wanted; });
      EXPECT_EQ(same, has(members, algorithm.name)) << algorithm.name << ", " << ranks << " ranks";
    }
    EXPECT_TRUE(has(members, "two_shot"));
    EXPECT_EQ(has(members, "ring"), ranks == 2);
  }
}

TEST(RankOrder, TakesManyRanksWithoutBuildingWhatCannotBelong) {
  RankOrder order(200);
  EXPECT_TRUE(has(order.members(Collective::all_reduce), "one_shot"));
  EXPECT_TRUE(has(order.members(Collective::all_reduce), "two_shot"));
  EXPECT_FALSE(has(order.members(Collective::all_reduce), "ring"));
  EXPECT_TRUE(has(order.members(Collective::reduce), "two_shot"));
  EXPECT_TRUE(has(RankOrder(24576).members(Collective::reduce_scatter), "one_shot"));
}

TEST(RankOrder, IsAllThatIsSelected) {
  for (const int ranks : {1, 2, 3, 5, 8, 17, 33}) {
    RankOrder order(ranks);
    for (const Collective collective : reductions)
      for (const Access access : accesses)
        for (const std::string_view forced : {"", "one_shot", "two_shot", "^two_shot", "^one_shot,two_shot,local"}) {
          const std::string filter = order.filter(collective, access, forced);
          ASSERT_NE(filter, "") << name(collective) << " by " << name(access) << ", " << ranks << " ranks";
          for (const Algorithm* one : candidates({.collective = collective, .ranks = ranks}, access, filter))
            EXPECT_TRUE(has(order.members(collective), one->name))
                << one->name << " for " << name(collective) << " by " << name(access) << ", " << ranks << " ranks";
        }
  }
}

TEST(RankOrder, OfPrefixesIsThatOfOneShot) {
  for (const int ranks : {2, 3, 5, 17}) {
    RankOrder order(ranks);
    for (const Collective collective : {Collective::scan, Collective::ex_scan}) {
      EXPECT_TRUE(has(order.members(collective), "one_shot")) << ranks;
      EXPECT_EQ(has(order.members(collective), "chain/4"),
                ranks == 2 || (collective == Collective::ex_scan && ranks == 3))
          << name(collective) << " of " << ranks;
      for (const Access access : accesses)
        for (const Algorithm* one :
             candidates({.collective = collective, .ranks = ranks}, access, order.filter(collective, access, "")))
          EXPECT_TRUE(has(order.members(collective), one->name) || order.filter(collective, access, "").empty());
      EXPECT_FALSE(order.filter(collective, Access::in_line, "").empty());
      EXPECT_FALSE(order.filter(collective, Access::slots, "").empty());
    }
    EXPECT_EQ(order.filter(Collective::scan, Access::mapped, "").empty(), ranks > 2) << "then slots serve";
  }
}

TEST(RankOrder, FollowsTheFilterWhereItCan) {
  RankOrder order(5);
  EXPECT_EQ(order.filter(Collective::all_reduce, Access::slots, "two_shot"), "two_shot");
  EXPECT_EQ(order.filter(Collective::all_reduce, Access::in_line, "two_shot"),
            order.filter(Collective::all_reduce, Access::in_line, ""));
  EXPECT_EQ(order.filter(Collective::all_reduce, Access::slots, "^one_shot").find("one_shot"), std::string::npos);
}

TEST(RankOrder, RefusesWhatHasAnotherOrder) {
  const auto refusal = [](int ranks, std::string_view forced) {
    const auto checked = RankOrder(ranks).check(forced);
    if (checked) return std::string();
    EXPECT_EQ(checked.error().code, Code::invalid_usage);
    return checked.error().what;
  };
  const std::string sentence = refusal(4, "allreduce:ring");
  EXPECT_TRUE(
      sentence.starts_with("TUTTI_ALGO asks for ring, which does not sum up in the order of ranks in all_reduce "
                           "of 4 ranks, as a deterministic communicator does; those that do: one_shot, two_shot"))
      << sentence;
  EXPECT_NE(refusal(4, "one_shot,circulant").find("asks for circulant"), std::string::npos);
  EXPECT_NE(refusal(4, "reduce:tree").find("in reduce of 4 ranks"), std::string::npos);
  for (const std::string_view good :
       {"", "one_shot", "^ring", "allgather:ring", "broadcast:tree", "allreduce:two_shot"})
    EXPECT_EQ(refusal(4, good), "") << good;
  EXPECT_EQ(refusal(2, "allreduce:ring"), "") << "two operands in one order";
  EXPECT_NE(refusal(2, "reduce_scatter:ring"), "") << "and here in the other";
  EXPECT_EQ(refusal(1, "ring"), "") << "serves nobody alone";
}

}  // namespace
}  // namespace tutti
