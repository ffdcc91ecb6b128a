// Does a channel forget peers when, and only when, nothing is left to be sent to them or read from them?
#include "exec/channel.h"

#include <gtest/gtest.h>

#include "support/scripted_fifo.h"

namespace tutti {
namespace {

using namespace testing;
using Peers = std::vector<std::uint16_t>;

struct Ends {
  Channel channel;
  ScriptedSender* senders[3];
  ScriptedReceiver* receivers[3];

  Ends() {
    channel.reserve(3);
    for (std::size_t peer = 0; peer < 3; ++peer) {
      channel.senders[peer] = std::unique_ptr<Sender>(senders[peer] = new ScriptedSender);
      channel.receivers[peer] = std::unique_ptr<Receiver>(receivers[peer] = new ScriptedReceiver);
    }
  }
};

TEST(Channel, FlushKeepsPeersWithMessagesThatWaitOrAreBeingFilled) {
  Ends ends;
  Channel& channel = ends.channel;
  for (const std::uint16_t peer : {0, 1, 2, 1}) add_once(channel.unsent, peer);
  EXPECT_EQ(channel.unsent, (Peers{0, 1, 2}));
  ends.senders[1]->flushed = false;
  channel.open[2].filling = ends.senders[2]->slot;
  auto moved = channel.flush();
  EXPECT_TRUE(moved && *moved);
  std::ranges::sort(channel.unsent);
  EXPECT_EQ(channel.unsent, (Peers{1, 2}));
  moved = channel.flush();
  EXPECT_TRUE(moved && !*moved);
}

TEST(Channel, ReadsToTheEndAndClosesInvitations) {
  Ends ends;
  Channel& channel = ends.channel;
  channel.undrained = channel.inviting.peers = {1, 2};
  ends.receivers[2]->ends = true;
  const auto drained = channel.drain();
  EXPECT_TRUE(drained && *drained);
  EXPECT_TRUE(channel.close_invitations());
  EXPECT_EQ(channel.undrained, Peers{1});
  EXPECT_EQ(channel.inviting.peers, Peers{1});
  EXPECT_FALSE(channel.close_invitations());
}

TEST(Channel, NotesTheBlocksThatLieElsewhere) {
  Ends ends;
  const std::byte block{};
  ends.receivers[1]->blocks[64] = {.at = {&block, 1}};
  ASSERT_TRUE(ends.channel.find_offered(1, 3, 64));
  const auto& offered = ends.channel.open[1].offered;
  ASSERT_EQ(offered.size(), 3u);
  EXPECT_EQ(offered[0].at.data(), nullptr);
  EXPECT_EQ(offered[1].at.data(), &block);
  ASSERT_TRUE(ends.channel.find_offered(2, 3, 64));
  EXPECT_TRUE(ends.channel.open[2].offered.empty());
}

TEST(Channel, BeginsToInviteWithItsFirstTile) {
  Ends ends;
  ends.channel.inviting = {.tile = 9, .turn = 3, .next = 2};
  ends.channel.open[1].taken = 5;
  ends.channel.begin_to_invite(1);
  EXPECT_EQ(ends.channel.inviting.tile, 1u);
  EXPECT_EQ(ends.channel.inviting.turn, 0u);
  EXPECT_EQ(ends.channel.inviting.next, 0u);
  EXPECT_EQ(ends.channel.open[1].taken, 0u);
}

}  // namespace
}  // namespace tutti
