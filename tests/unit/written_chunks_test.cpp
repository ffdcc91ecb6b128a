// A chunk's first write in a step, and what later steps know of it.
#include "plan/written_chunks.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(WrittenChunks, AreWrittenBeforeOnlyFromTheNextStepOn) {
  WrittenChunks chunks(3, 2, false);
  EXPECT_TRUE(chunks.write(2, 1));
  EXPECT_FALSE(chunks.write(2, 1)) << "again in this step";
  EXPECT_FALSE(chunks.before(2, 1));
  chunks.next_step();
  EXPECT_TRUE(chunks.before(2, 1));
  EXPECT_FALSE(chunks.before(2, 0));
  EXPECT_FALSE(chunks.before(1, 1));
  EXPECT_TRUE(chunks.write(2, 1)) << "the first time in this step";
  EXPECT_TRUE(chunks.before(2, 1));
  chunks.next_step();
  EXPECT_TRUE(chunks.before(2, 1));
}

TEST(WrittenChunks, OfOneRankHaveRoomForItAlone) {
  WrittenChunks chunks(1000, 2, true);
  EXPECT_TRUE(chunks.write(999, 1));
  chunks.next_step();
  EXPECT_TRUE(chunks.before(999, 1));
  EXPECT_FALSE(chunks.before(999, 0));
}

}  // namespace
}  // namespace tutti
