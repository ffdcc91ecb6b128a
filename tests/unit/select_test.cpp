// Which algorithms a call may use, whatever its shape and whatever the user wishes.
#include "choice/select.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/counts.h"
#include "plan/lower.h"
#include "support/shapes.h"

namespace tutti {
namespace {

using testing::shapes;
using testing::text;

constexpr Access accesses[] = {Access::in_line, Access::mapped, Access::cma, Access::slots};
/// The names of the candidates.
std::vector<std::string> names(Collective collective, int ranks, Access access, std::string_view forced) {
  std::vector<std::string> all;
  for (const Algorithm* algorithm : candidates({.collective = collective, .ranks = ranks}, access, forced))
    all.push_back(algorithm->name);
  return all;
}

TEST(Candidates, AreNeverNoneAndAllLower) {
  for (const int ranks : {1, 2, 3, 4, 7, 16, 17, 40})
    for (const Shape& shape : shapes(ranks))
      for (const Access access : accesses)
        for (const std::string_view forced :
             {"", "ring", "one_shot", "two_shot", "circulant", "binomial", "^one_shot", "^one_shot,two_shot"}) {
          const auto all = candidates(shape, access, forced);
          ASSERT_FALSE(all.empty());
          for (const Algorithm* algorithm : all) {
            ASSERT_TRUE(algorithm->supports(shape)) << text(*algorithm, shape);
            if (forced.empty() || all.size() > 1) continue;
            ASSERT_TRUE(lowers_to(algorithm->build(shape), access))
                << text(*algorithm, shape) << " by " << name(access) << ", forced " << forced;
          }
        }
}

TEST(Candidates, OfManyRanksCostOneRankUnlessTheyAreForced) {
  for (const Algorithm* algorithm : candidates({.collective = Collective::broadcast, .ranks = 100}, Access::slots, ""))
    EXPECT_NE(algorithm->family->items, nullptr) << algorithm->name;
  EXPECT_EQ(names(Collective::broadcast, 100, Access::slots, "scatter_all_gather"),
            (std::vector<std::string>{"scatter_all_gather"}));
  for (const Algorithm* algorithm : candidates({.ranks = 5000}, Access::slots, ""))
    EXPECT_EQ(algorithm, &member(*algorithm->family)) << algorithm->name;
  EXPECT_EQ(names(Collective::all_reduce, 5000, Access::slots, "multi_ring/4"),
            (std::vector<std::string>{"multi_ring/4"}));
}

TEST(Candidates, ForCountsServeThem) {
  constexpr Collective with_counts[] = {Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all,
                                        Collective::gather, Collective::scatter};
  for (const int ranks : {1, 2, 7, 40, 100})
    for (const Collective collective : with_counts)
      for (const Access access : {Access::mapped, Access::cma, Access::slots})
        for (const std::string_view forced : {"", "ring", "circulant", "binomial", "pairwise", "^one_shot"}) {
          const Shape shape{.collective = collective, .ranks = ranks};
          for (const Algorithm* algorithm : candidates(shape, access, forced, true)) {
            ASSERT_TRUE(serves(*algorithm, shape, access));
            const Schedule schedule = algorithm->build(shape);
            EXPECT_TRUE(direct(schedule) || (access == Access::slots && keeps_groups(schedule)))
                << text(*algorithm, shape) << " by " << name(access) << ", forced " << forced;
          }
        }
  const Shape gather{.collective = Collective::all_gather, .ranks = 6};
  EXPECT_EQ(candidates(gather, Access::slots, "circulant", true)[0]->name, "circulant");
}

TEST(Candidates, FollowTheFilter) {
  using Names = std::vector<std::string>;
  constexpr auto all_reduce = Collective::all_reduce;
  const Names free = names(all_reduce, 6, Access::slots, ""), ring{"ring"};
  EXPECT_GT(free.size(), 20u);
  for (const std::string_view only_ring : {"ring", "Ring", "allreduce:ring", "all_reduce:ring",
                                           "AllReduce: ring ; broadcast:^tree", "ring;allgather:circulant"})
    EXPECT_EQ(names(all_reduce, 6, Access::slots, only_ring), ring) << only_ring;
  EXPECT_EQ(names(all_reduce, 6, Access::slots, "allgather:ring"), free);
  const Names circulant{"circulant"};
  EXPECT_EQ(names(all_reduce, 6, Access::slots, "allreduce:circulant;ring"), circulant) << "the special one wins";
  EXPECT_EQ(names(all_reduce, 6, Access::slots, "ring;allreduce:circulant"), circulant);
  EXPECT_EQ(names(Collective::all_gather, 6, Access::slots, "allreduce:circulant;ring"), ring);
  for (const std::string_view without : {"^binomial", "broadcast:^tree"})
    EXPECT_EQ(std::ranges::count(names(Collective::broadcast, 6, Access::slots, without), "binomial"), 0) << without;
}

TEST(Candidates, PassOverWhatCannotServe) {
  using Names = std::vector<std::string>;
  for (const std::string_view forced : {"ring", "barrier:ring", "^dissemination,k_dissemination,one_shot"})
    EXPECT_EQ(names(Collective::barrier, 6, Access::slots, forced), Names{"dissemination"}) << forced;
  EXPECT_EQ(names(Collective::all_reduce, 6, Access::in_line, "ring"), Names{"one_shot"});
  EXPECT_EQ(names(Collective::all_reduce, 1, Access::mapped, "ring"), Names{"local"});
  EXPECT_EQ(names(Collective::scan, 6, Access::mapped, "one_shot"), Names{"chain/4"});
  EXPECT_EQ(names(Collective::ex_scan, 6, Access::mapped, "recursive_doubling"), Names{"one_shot"});
}

TEST(AlgoSetting, AcceptsWhatItDocuments) {
  for (const std::string_view good :
       {"", "ring", "Ring,tree", "allreduce:ring;broadcast:^tree", "all_reduce : two_shot", "^one_shot", "ring;",
        "reduce_scatter:circulant;ReduceScatter:ring", "OneShot"})
    EXPECT_TRUE(check_algo_setting(good)) << good << ": " << check_algo_setting(good).error().text();
}

TEST(AlgoSetting, NamesTheWordItDoesNotKnowAndTheNearest) {
  const auto error_of = [](std::string_view bad) {
    const auto checked = check_algo_setting(bad);
    EXPECT_FALSE(checked) << bad;
    if (checked) return Error{.what = ""};
    EXPECT_EQ(checked.error().code, Code::invalid_argument);
    return checked.error();
  };
  EXPECT_EQ(error_of("rnig").what, "TUTTI_ALGO: unknown algorithm \"rnig\", did you mean \"ring\"?");
  EXPECT_EQ(error_of("ring;alreduce:ring").what,
            "TUTTI_ALGO: unknown collective \"alreduce\", did you mean \"all_reduce\"?");
  EXPECT_EQ(error_of("broadcast:^binominal").what,
            "TUTTI_ALGO: unknown algorithm \"binominal\", did you mean \"binomial\"?");
  EXPECT_EQ(error_of("broadcast:").what, "TUTTI_ALGO: \"broadcast:\" names no algorithm");
  EXPECT_EQ(error_of("broadcast:^").what, "TUTTI_ALGO: \"broadcast:^\" names no algorithm");
  error_of(",");
  error_of("a:b:c");
}

}  // namespace
}  // namespace tutti
