// Are messages invited into the buffers of a call once each, in order, and only when no sender still reads there?
#include "exec/invite.h"

#include <gtest/gtest.h>

#include <vector>

#include "plan/inviting.h"
#include "support/plan_writer.h"
#include "support/scripted_fifo.h"

namespace tutti {
namespace {

using namespace testing;

TEST(Invite, EachTileOnceAndInOrder) {
  const Schedule schedule({.collective = Collective::broadcast, .ranks = 2, .root = 1}, 1);
  Plan plan = PlanWriter(schedule, 0, Access::slots, 1).peek(1, 1).copy(slot(1, 0), {output(0)}).release(1).plan();
  plan.invitations = invitations(plan);
  ASSERT_EQ(plan.invitations.all.size(), 1u);
  std::vector<std::byte> out(1024);
  Binding binding{.output = out.data(), .split = Split(out.size(), 1, 1)};
  binding.split.tile(256, 1);
  ASSERT_EQ(binding.split.tiles(), 4u);

  const BoundPlan bound(plan, binding);
  Channel channel;
  channel.reserve(2);
  auto* const sender = new ScriptedSender;
  auto* const receiver = new ScriptedReceiver;
  channel.senders[1] = std::unique_ptr<Sender>(sender);
  channel.receivers[1] = std::unique_ptr<Receiver>(receiver);
  channel.begin_to_invite(1);  // the second of two channels
  const Cursor cursor{.tile = 1};

  channel.unsent = {1};
  channel.open[1].filling = sender->slot;
  invite(bound, channel, cursor, 2);
  EXPECT_TRUE(receiver->asked.empty()) << "a message is being filled";
  channel.open[1].filling = {};
  sender->keeps = false;
  invite(bound, channel, cursor, 2);
  EXPECT_TRUE(receiver->asked.empty()) << "a message is still to be read from there";
  sender->keeps = true;
  receiver->answer = Invited::later;
  invite(bound, channel, cursor, 2);
  EXPECT_EQ(receiver->asked.size(), 1u);
  EXPECT_TRUE(channel.inviting.peers.empty());

  receiver->answer = Invited::yes;
  receiver->asked.clear();
  for (int turn = 0; turn < 2; ++turn) invite(bound, channel, cursor, 2);
  ASSERT_EQ(receiver->asked.size(), 2u);
  EXPECT_EQ(receiver->asked[0].data(), out.data() + 256);
  EXPECT_EQ(receiver->asked[1].data(), out.data() + 768);
  EXPECT_EQ(receiver->asked[1].size(), 256u);
  EXPECT_EQ(channel.inviting.peers, std::vector<std::uint16_t>{1});
}

}  // namespace
}  // namespace tutti
