// MSCCL XML: what goes out comes back with the same meaning, and files of others mean what they say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analysis/formats/msccl_export.h"
#include "analysis/proof/check.h"
#include "formats/plan_file.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "support/results.h"
#include "support/shapes.h"

namespace tutti::formats {
namespace {

using tutti::testing::for_every_algorithm;
using tutti::testing::results;
using tutti::testing::text;

bool has_a_name(Collective collective) {
  return collective != Collective::gather && collective != Collective::scatter && collective != Collective::barrier &&
         !prefixes(collective);
}

std::size_t messages(const Schedule& schedule) {
  return static_cast<std::size_t>(
      std::ranges::count_if(schedule.transfers(), [](const Transfer& t) { return t.from != t.to; }));
}

class EveryAlgorithm : public ::testing::TestWithParam<int> {};

TEST_P(EveryAlgorithm, ComesBackAsItWasSent) {
  int done = 0;
  for_every_algorithm(GetParam(), [&](const Algorithm& algorithm, const Shape& shape) {
    SCOPED_TRACE(text(algorithm, shape));
    const Schedule schedule = algorithm.build(shape);
    const auto file = export_msccl(schedule, algorithm.name);
    if (!has_a_name(shape.collective)) {
      EXPECT_FALSE(file);
      return;
    }
    ASSERT_TRUE(file) << file.error().text();
    const auto back = import_msccl(*file);
    ASSERT_TRUE(back) << back.error().text() << "\n" << *file;
    const auto meaning = verify(*back);
    ASSERT_TRUE(meaning) << meaning.error().text();
    EXPECT_EQ(meaning->same_bits, tutti::verify(schedule)->same_bits);
    EXPECT_EQ(results(back->schedule), results(schedule));
    EXPECT_EQ(messages(back->schedule), messages(schedule));
    EXPECT_EQ(back->name, algorithm.name);
    EXPECT_EQ(back->schedule.parts(), schedule.parts());
    EXPECT_EQ(back->schedule.root(), rooted(shape.collective) ? shape.root : 0);
    ++done;
  });
  EXPECT_GE(done, 6);
}

INSTANTIATE_TEST_SUITE_P(Ranks, EveryAlgorithm, ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16));

TEST(MscclImport, RunsOnFifosToo) {
  int done = 0;
  for (const int ranks : {2, 4, 5})
    for_every_algorithm(ranks, [&](const Algorithm& algorithm, const Shape& shape) {
      if (!has_a_name(shape.collective)) return;
      SCOPED_TRACE(text(algorithm, shape));
      const auto back = import_msccl(*export_msccl(algorithm.build(shape), "x"));
      ASSERT_TRUE(back) << back.error().text();
      ASSERT_TRUE(lowers_to(back->schedule, Access::slots));
      std::vector<Plan> plans = lower_all(back->schedule, Access::slots);
      for (Plan& plan : plans) plan = fuse(std::move(plan));
      const auto proven = check(back->schedule, plans, {.slots = 1});
      EXPECT_TRUE(proven) << proven.error().text();
      ++done;
    });
  EXPECT_GE(done, 6);
}

/// TACCL's and TE-CCL's word for a chunk that a rank has and needs: it is copied before all steps.
TEST(Others, CopiesOfAGpuAreMade) {
  const auto file = [](std::string_view in_place, bool copies) {
    std::string text = fmt::format(
        "<algo name='taccl' nchannels='1' nchunksperloop='2' proto='Simple' maxBytes='9223372036854775807' "
        "minBytes='0' "
        "coll='allgather' inplace='{}' outofplace='{}' redop='nop' ngpus='2'>",
        in_place, in_place == "1" ? "0" : "1");
    for (const int gpu : {0, 1}) {
      text += fmt::format("<gpu id='{}' i_chunks='1' o_chunks='2' s_chunks='0'>", gpu);
      if (copies) text += fmt::format("<copy i_off='0' o_off='{}'/>", gpu);
      // The second reads what the copy wrote.
      text += fmt::format(
          "<tb id='0' send='{0}' recv='-1' chan='0'><step s='0' type='s' srcbuf='{2}' srcoff='{3}' dstbuf='o' "
          "dstoff='{1}' cnt='1' depid='-1' deps='-1' hasdep='0'/></tb><tb id='1' send='-1' recv='{0}' chan='0'><step "
          "s='0' type='r' srcbuf='i' srcoff='0' dstbuf='o' dstoff='{0}' cnt='1' depid='-1' deps='-1' hasdep='0'/>"
          "</tb></gpu>",
          1 - gpu, gpu, gpu == 0 || !copies ? "i" : "o", gpu == 0 || !copies ? 0 : gpu);
    }
    return text + "</algo>";
  };
  for (const char* const in_place : {"0", "1"}) {
    const auto read = import_msccl(file(in_place, true));
    ASSERT_TRUE(read) << read.error().text();
    const auto meaning = verify(*read);
    EXPECT_TRUE(meaning) << meaning.error().text();
    EXPECT_EQ(messages(read->schedule), 2u);
  }
  const auto without = import_msccl(file("0", false));
  ASSERT_TRUE(without) << without.error().text();
  const auto meaning = verify(*without);
  ASSERT_FALSE(meaning);
  EXPECT_NE(meaning.error().what.find("output block 0 ends wrong: it is never written, and input block 0 of rank 0 is "
                                      "missing: it came to output block 0 of rank 1 at line 1, gpu 1, tb 1, step 0"),
            std::string::npos)
      << meaning.error().what;
}

}  // namespace
}  // namespace tutti::formats
