#include "gpu/host_staged_call.h"

#include <gtest/gtest.h>

#include "call/layout.h"
#include "gpu/stream_order.h"

namespace tutti {
namespace {

Request request(Collective collective) {
  return {.collective = collective, .count = 10, .type = DataType::int32, .root = 1};
}

TEST(HostStagedBuffers, WholeBuffersOfWhatThisRankHas) {
  const std::vector<Extent> one{{0, 40}}, all{{0, 120}}, none;
  const auto input = [](Collective kind, Rank rank) {
    return host_staged_buffers(request(kind), rank, 3).input.extents;
  };
  const auto output = [](Collective kind, Rank rank) {
    return host_staged_buffers(request(kind), rank, 3).output.extents;
  };
  EXPECT_EQ(input(Collective::all_reduce, 0), one);
  EXPECT_EQ(output(Collective::all_reduce, 0), one);
  EXPECT_EQ(output(Collective::reduce, 0), none);
  EXPECT_EQ(output(Collective::reduce, 1), one);
  EXPECT_EQ(input(Collective::broadcast, 0), none);
  EXPECT_EQ(output(Collective::all_gather, 2), all);
  EXPECT_EQ(input(Collective::scatter, 1), all);
}

/// Nothing between blocks is touched; blocks next to each other are one copy, in whatever order they are listed.
TEST(HostStagedBuffers, BlocksOfCountsPerRank) {
  Request counts = request(Collective::all_to_all);
  auto layout = std::make_shared<Layout>();
  layout->input = {
      {.begin = 20, .count = 5}, {.begin = 0, .count = 3}, {.begin = 3, .count = 2}, {.begin = 9, .count = 0}};
  layout->output = {{.begin = 1, .count = 4}, {.begin = 2, .count = 2}};
  counts.layout = layout;
  const HostStagedBuffers buffers = host_staged_buffers(counts, 0, 4);
  EXPECT_EQ(buffers.input.extents, (std::vector<Extent>{{0, 20}, {80, 20}}));
  EXPECT_EQ(buffers.input.bytes(), 100u);
  EXPECT_EQ(buffers.output.extents, (std::vector<Extent>{{4, 16}}));
}

TEST(HostStagedBuffers, SendsAndReceives) {
  std::byte data[8];
  const HostStagedBuffers send = host_staged_buffers(PeerRequest{.send = true, .data = data, .bytes = 8});
  EXPECT_EQ(send.input.extents, (std::vector<Extent>{{0, 8}}));
  EXPECT_EQ(send.input.at, data);
  EXPECT_TRUE(send.output.extents.empty());
  EXPECT_EQ(host_staged_buffers(PeerRequest{.send = false, .data = data, .bytes = 8}).output.bytes(), 8u);
  EXPECT_EQ(host_staged_buffers(PeerRequest{.send = false, .data = data, .bytes = 0}).output.bytes(), 0u);
}

/// A rank that made a call on host memory holds nobody up; one whose call is still to be queued does.
TEST(StreamOrder, CallsAreCountedOnWhateverMemory) {
  StreamOrder meeting(2);
  EXPECT_EQ(meeting.collective(0, true), 1u);
  EXPECT_FALSE(meeting.has_queued(0, 1));
  EXPECT_FALSE(meeting.has_queued(1, 1));
  EXPECT_EQ(meeting.collective(1, false), 1u);
  EXPECT_TRUE(meeting.has_queued(1, 1));
  EXPECT_EQ(meeting.collective(0, false), 2u);
  EXPECT_FALSE(meeting.has_queued(0, 2)) << "the first one comes before it";
  meeting.queued(0);
  EXPECT_TRUE(meeting.has_queued(0, 1));
  EXPECT_TRUE(meeting.has_queued(0, 2));
  EXPECT_FALSE(meeting.has_queued(0, 3));
}

TEST(StreamOrder, SendsAreCountedByPair) {
  StreamOrder meeting(3);
  meeting.sent(0, 2);
  meeting.sent(0, 2);
  EXPECT_TRUE(meeting.has_sent(0, 2, 2));
  EXPECT_FALSE(meeting.has_sent(0, 2, 3));
  EXPECT_FALSE(meeting.has_sent(2, 0, 1));
  EXPECT_FALSE(meeting.has_sent(0, 1, 1));
}

}  // namespace
}  // namespace tutti
