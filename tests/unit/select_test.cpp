// Which algorithm a call uses, whatever its shape and whatever the user wishes.
#include "algorithms/select.h"

#include <gtest/gtest.h>

#include "plan/counts.h"
#include "plan/lower.h"
#include "support/shapes.h"

namespace tutti {
namespace {

using testing::shapes;
using testing::text;

constexpr Access accesses[] = {Access::in_line, Access::mapped, Access::cma, Access::slots};
constexpr std::size_t sizes[] = {0, 8, 4096, 1 << 14, 1 << 16, 1 << 20, std::size_t{1} << 30};

std::string_view chosen(Collective collective, int ranks, Access access, std::size_t bytes, std::string_view forced) {
  return select({.collective = collective, .ranks = ranks}, access, bytes, forced)->name;
}

TEST(Select, AlwaysGivesWhatLowers) {
  for (const int ranks : {1, 2, 3, 4, 7, 16, 17, 40})
    for (const Shape& shape : shapes(ranks))
      for (const Access access : accesses)
        for (const std::string_view forced :
             {"", "ring", "one_shot", "two_shot", "circulant", "binomial", "^one_shot", "^one_shot,two_shot"}) {
          const Algorithm* before = nullptr;
          for (const std::size_t bytes : sizes) {
            const Algorithm* algorithm = select(shape, access, bytes, forced);
            ASSERT_NE(algorithm, nullptr);
            ASSERT_TRUE(algorithm->supports(shape)) << text(*algorithm, shape);
            ASSERT_TRUE(algorithm == before || lowers_to(algorithm->build(shape), access))
                << text(*algorithm, shape) << " by " << name(access) << ", forced " << forced;
            before = algorithm;
          }
        }
}

TEST(Select, KeepsLargeCallsInsideHosts) {
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
    Shape shape{.collective = collective, .ranks = 40, .levels = {Level(40)}};
    for (std::size_t rank = 0; rank < 40; ++rank) shape.levels[0][rank] = static_cast<int>(rank / 8);
    EXPECT_EQ(select(shape, Access::slots, 1 << 20, "")->name, "hierarchical/0") << name(collective);
    EXPECT_NE(select(shape, Access::slots, 64, "")->name, "hierarchical/0") << name(collective);
    shape.levels[0][8] = 0;  // groups of 9 and of 7
    const std::string_view uneven = select(shape, Access::slots, 1 << 20, "")->name;
    EXPECT_EQ(uneven == "hierarchical/0", collective == Collective::all_reduce) << uneven;
  }
}

TEST(Select, GivesCountsWhatServesThem) {
  constexpr Collective with_counts[] = {Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all,
                                        Collective::gather, Collective::scatter};
  for (const int ranks : {1, 2, 7, 40})
    for (const Collective collective : with_counts)
      for (const Access access : {Access::mapped, Access::cma, Access::slots})
        for (const std::string_view forced : {"", "ring", "circulant", "binomial", "pairwise", "^one_shot"})
          for (const std::size_t bytes : {0u, 1u << 20}) {
            const Shape shape{.collective = collective, .ranks = ranks};
            const Algorithm* algorithm = select_for_counts(shape, access, bytes, forced);
            ASSERT_NE(algorithm, nullptr);
            ASSERT_TRUE(serves(*algorithm, shape, access));
            const Schedule schedule = algorithm->build(shape);
            EXPECT_TRUE(direct(schedule) || (access == Access::slots && keeps_groups(schedule)))
                << text(*algorithm, shape) << " by " << name(access) << ", forced " << forced;
          }
  const Shape gather{.collective = Collective::all_gather, .ranks = 6};
  EXPECT_EQ(select_for_counts(gather, Access::slots, 8, "circulant")->name, "circulant");
}

TEST(Select, FollowsTheFilter) {
  constexpr auto all_reduce = Collective::all_reduce;
  const std::string_view free = chosen(all_reduce, 6, Access::slots, 8, "");
  EXPECT_NE(free, "ring");
  EXPECT_EQ(chosen(all_reduce, 6, Access::slots, 8, "ring"), "ring");
  EXPECT_EQ(chosen(all_reduce, 6, Access::slots, 8, "Ring"), "ring");
  EXPECT_EQ(chosen(all_reduce, 6, Access::slots, 8, "allreduce:ring"), "ring");
  EXPECT_EQ(chosen(all_reduce, 6, Access::slots, 8, "all_reduce:ring"), "ring");
  EXPECT_EQ(chosen(all_reduce, 6, Access::slots, 8, "AllReduce: ring ; broadcast:^tree"), "ring");
  EXPECT_EQ(chosen(all_reduce, 6, Access::slots, 8, "allgather:ring"), free);
  EXPECT_EQ(chosen(all_reduce, 6, Access::slots, 8, "allreduce:circulant;ring"), "circulant") << "the special one wins";
  EXPECT_EQ(chosen(all_reduce, 6, Access::slots, 8, "ring;allreduce:circulant"), "circulant");
  EXPECT_EQ(chosen(Collective::all_gather, 6, Access::slots, 8, "allreduce:circulant;ring"), "ring");
}

TEST(Select, LeavesOutWhatIsUnwanted) {
  const std::string_view tree = chosen(Collective::broadcast, 6, Access::slots, 8, "");
  EXPECT_EQ(tree, "binomial");
  EXPECT_NE(chosen(Collective::broadcast, 6, Access::slots, 8, "^binomial"), tree);
  EXPECT_NE(chosen(Collective::broadcast, 6, Access::slots, 8, "broadcast:^tree"), tree);
  EXPECT_EQ(chosen(Collective::broadcast, 6, Access::slots, 8, "^one_shot,binomial"), "two_shot");
}

TEST(Select, PassesOverWhatCannotServe) {
  for (const std::string_view forced :
       {"ring", "barrier:ring", "^dissemination,k_dissemination,one_shot", "no such thing"})
    EXPECT_EQ(chosen(Collective::barrier, 6, Access::slots, 0, forced), "dissemination") << forced;
  EXPECT_EQ(chosen(Collective::all_reduce, 6, Access::in_line, 8, "ring"), "one_shot");
  EXPECT_EQ(chosen(Collective::all_reduce, 1, Access::mapped, 8, "ring"), "local");
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
