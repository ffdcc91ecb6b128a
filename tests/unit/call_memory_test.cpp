// Memory of calls grows and is kept; what peers read lies in segments.
#include "comm/call_memory.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(CallMemory, LiesInSegmentsWherePeersReadIt) {
  SegmentTable segments;
  for (const bool offers : {false, true}) {
    CallMemory memory(segments, /*node=*/-1, offers, /*ranks=*/3);
    EXPECT_EQ(memory.notes().descriptors.size(), 3u);
    EXPECT_EQ(memory.notes().memory.size(), 3u);
    EXPECT_EQ(memory.notes().scalars.size(), 3u);
    EXPECT_FALSE(memory.notes().all_mapped);
    auto scratch = memory.scratch(1'000), staging = memory.staging(1'000);
    ASSERT_TRUE(scratch);
    ASSERT_TRUE(staging);
    EXPECT_EQ(segments.find(*scratch, 1'000).has_value(), offers);
    EXPECT_TRUE(segments.find(*staging, 1'000));
    EXPECT_EQ(*memory.scratch(10), *scratch);
    EXPECT_EQ(*memory.staging(10), *staging);
    staging = memory.staging(1 << 20);
    ASSERT_TRUE(staging);
    EXPECT_TRUE(segments.find(*staging, 1 << 20));
  }
}

}  // namespace
}  // namespace tutti
