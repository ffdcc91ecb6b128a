// TUTTI_PLAN_FILE: whose calls a plan from a file serves, and what is refused.
#include <filesystem>
#include <string_view>

#include "algorithms/algorithm.h"
#include "analysis/formats/msccl_export.h"
#include "base/file.h"
#include "formats/plan_file.h"
#include "support/call.h"
#include "support/folder.h"
#include "support/launch_ranks.h"
#include "support/sample_plans.h"

namespace tutti::testing {
namespace {

/// A folder of files, gone when the test ends.
class PlanFile : public ::testing::Test {
 protected:
  std::string written(const std::string& name, std::string_view text) {
    const std::string path = folder_ / name;
    EXPECT_TRUE(write_file(path, text));
    return path;
  }
  std::string exported(std::string_view algorithm, const Shape& shape) {
    const auto text = formats::export_msccl(find_algorithm(algorithm, shape)->build(shape), algorithm);
    EXPECT_TRUE(text) << text.error().text();
    return written(std::string(algorithm) + ".xml", *text);
  }

  Folder folder_;
};

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// One call, checked; which algorithm it says it used.
std::string used_by(const Call& call, tuttiComm_t comm, int rank, int ranks) {
  CallOnRank mine(call, rank, ranks);
  for (const std::uint64_t seed : {1, 2}) {
    mine.fill(seed);
    EXPECT_TRUE(ok(mine.submit(comm)));
    EXPECT_EQ(mine.check(), "") << call.text();
  }
  const char *algorithm = nullptr, *transport = nullptr;
  EXPECT_TRUE(ok(tuttiCommLastAlgorithm(comm, &algorithm, &transport)));
  return algorithm;
}

/// Calls of `kind` use the plan at every size, wherever their buffers lie.
void expect_used(const std::string& path, const std::string& name, Kind kind, int ranks) {
  for (const Layout layout : {Layout::processes, Layout::threads})
    EXPECT_TRUE(launch_ranks({.ranks = ranks, .layout = layout, .environment = {"TUTTI_PLAN_FILE=" + path}},
                             [&](Seat& seat) {
                               tuttiComm_t comm = seat.init_one();
                               ASSERT_NE(comm, nullptr);
                               const int rank = seat.here().front();
                               for (const std::size_t count : {1, 97, 30'011})
                                 for (const InPlace in_place : {InPlace::none, InPlace::some})
                                   for (const Mix memory : {Mix::heap, Mix::mapped, Mix::by_rank}) {
                                     const Call call{.kind = kind,
                                                     .values = Values::random,
                                                     .count = count,
                                                     .in_place = in_place,
                                                     .memory = memory,
                                                     .seed = 3};
                                     EXPECT_EQ(used_by(call, comm, rank, ranks), name) << call.text();
                                   }
                               EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
                             }))
        << name;
}

TEST_F(PlanFile, ExportedPlansServeTheirCalls) {
  const Shape all_reduce{.collective = Collective::all_reduce, .ranks = 4};
  expect_used(exported("ring", all_reduce), "plan file ring", Kind::all_reduce, 4);
  expect_used(exported("two_shot", all_reduce), "plan file two_shot", Kind::all_reduce, 4);
  expect_used(exported("circulant", {.collective = Collective::all_gather, .ranks = 3}), "plan file circulant",
              Kind::all_gather, 3);
}

TEST_F(PlanFile, PlansOfMscclppServeTheirCalls) {
  expect_used(written("halves.json", mscclpp_sample), "plan file halves", Kind::all_reduce, 2);
}

TEST_F(PlanFile, OtherCallsAreServedAsEver) {
  const std::string small =
      written("small.json",
              replaced(mscclpp_sample, R"("max_message_size": 18446744073709551615)", R"("max_message_size": 4096)"));
  for (const int ranks : {2, 3})
    EXPECT_TRUE(launch_ranks({.ranks = ranks, .environment = {"TUTTI_PLAN_FILE=" + small}}, [](Seat& seat) {
      tuttiComm_t comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      const auto serves = [&](Kind kind, std::size_t count) {
        const Call call{.kind = kind, .count = count, .memory = Mix::heap};
        return used_by(call, comm, seat.here().front(), seat.ranks()) == "plan file halves";
      };
      EXPECT_EQ(serves(Kind::all_reduce, 1024), seat.ranks() == 2);
      EXPECT_FALSE(serves(Kind::all_reduce, 1025)) << "4100 bytes";
      EXPECT_FALSE(serves(Kind::all_gather, 1024));
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    }));
}

/// The words with which every rank is refused when its file is what `path_of` says.
void expect_refused(int ranks, const std::function<std::string(int)>& path_of, tuttiResult_t code,
                    const std::vector<std::string>& words, int deterministic = 0) {
  EXPECT_TRUE(launch_ranks({.ranks = ranks}, [&](Seat& seat) {
    const int rank = seat.here().front();
    ::setenv("TUTTI_PLAN_FILE", path_of(rank).c_str(), 1);
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    config.deterministic = deterministic;
    for (const std::string& part : words) {
      tuttiUniqueId id{};
      if (code != tuttiInvalidUsage) {  // the first call of all
        EXPECT_TRUE(fails(tuttiGetUniqueId(&id), code, part));
        continue;
      }
      tuttiComm_t comm = nullptr;
      id = seat.next_id();
      EXPECT_TRUE(fails(tuttiCommInitRankConfig(&comm, ranks, id, rank, &config), code, part));
    }
  }));
}

TEST_F(PlanFile, WrongPlansAreRefusedWithTheirPlace) {
  const std::string gap = written("gap.xml", replaced(msccl_sample, R"(type="rrcs")", R"(type="rcs")"));
  expect_refused(2, [&](int) -> const std::string& { return gap; }, tuttiInvalidArgument,
                 {gap, "output block 0", "peer 0"});
  const std::string number = written("number.xml", replaced(msccl_sample, R"(srcoff="1")", R"(srcoff="9")"));
  expect_refused(2, [&](int) -> const std::string& { return number; }, tuttiInvalidArgument,
                 {number, "line 4, gpu 0, tb 0, step 0", "srcoff 9"});
  expect_refused(2, [](int) { return "/nowhere/plan.xml"; }, tuttiSystemError,
                 {"TUTTI_PLAN_FILE", "/nowhere/plan.xml"});
}

TEST_F(PlanFile, RanksMustHaveTheSame) {
  const std::string one = written("one.xml", msccl_sample),
                    two = written("two.xml", replaced(msccl_sample, "exchange", "another"));
  expect_refused(2, [&](int rank) { return rank == 0 ? one : two; }, tuttiInvalidUsage,
                 {"rank 1 has TUTTI_PLAN_FILE=digest:", "rank 0 has TUTTI_PLAN_FILE=digest:"});
}

TEST_F(PlanFile, DeterministicTakesOnlyTheOrderOfRanks) {
  const Shape shape{.collective = Collective::all_reduce, .ranks = 3};
  const std::string ring = exported("ring", shape);
  expect_refused(
      3, [&](int) -> const std::string& { return ring; }, tuttiInvalidUsage, {"does not sum up in the order of ranks"},
      1);
}

}  // namespace
}  // namespace tutti::testing
