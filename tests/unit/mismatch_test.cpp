#include "call/mismatch.h"

#include <gtest/gtest.h>

#include "plan/types.h"

namespace tutti {
namespace {

Signature call(Collective collective, std::uint64_t count, DataType type = DataType::float32) {
  return {.collective = static_cast<std::uint8_t>(collective), .type = static_cast<std::uint8_t>(type), .count = count};
}

TEST(Mismatch, ListsEachCallWithItsRanks) {
  const auto same = call(Collective::all_reduce, 8);
  const auto other = call(Collective::all_reduce, 7);
  const auto error = mismatch_report({same, other, same, std::nullopt}, 412, {.rank = 2, .in_call = 412},
                                     {.code = Code::invalid_usage, .what = "x"});
  EXPECT_EQ(error.code, Code::invalid_usage);
  for (const char* part : {"#412", "ranks 0,2: AllReduce count=8 float32 sum", "ranks 1: AllReduce count=7 float32 sum",
                           "ranks 3: no call yet", "Nothing was written on rank 2."})
    EXPECT_NE(error.what.find(part), std::string::npos) << part << " in\n" << error.what;
}

TEST(Mismatch, DoesNotSayOfACallThatHasEndedThatNothingWasWritten) {
  const auto error = mismatch_report({call(Collective::all_reduce, 8), call(Collective::all_reduce, 7)}, 412,
                                     {.rank = 1, .in_call = 419}, {.code = Code::invalid_usage, .what = "x"});
  EXPECT_EQ(error.what.find("Nothing was written"), std::string::npos) << error.what;
  EXPECT_NE(error.what.find("had ended on rank 1"), std::string::npos) << error.what;
}

TEST(Mismatch, LeavesOtherErrorsAsTheyAre) {
  const auto same = call(Collective::barrier, 0);
  EXPECT_EQ(mismatch_report({same, same}, 1, {}, {.code = Code::invalid_usage, .what = "as it was"}).what, "as it was");
}

TEST(Mismatch, PrintsWhatAPeerMadeUpAsNumbers) {
  Signature odd = call(Collective::all_reduce, 1);
  odd.collective = 200;
  EXPECT_NE(call_text(odd).find("200"), std::string::npos);
}

}  // namespace
}  // namespace tutti
