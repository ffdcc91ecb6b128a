// A channel is open over its connections or over a wire, and leaves what its peer may still need.
#include "net/open_channel.h"

#include <gtest/gtest.h>

#include "support/sim_system.h"

namespace tutti {
namespace {

const SocketAddress here{.host = "10.0.0.1", .port = 4711};
const SocketLink::Ends ranks{.rank = 1, .peer = 0, .channel = 0, .peer_name = "rank 0/2"};

std::vector<Socket> two_sockets(SimSystem& system) {
  std::vector<Socket> sockets;
  for (int i = 0; i < 2; ++i) sockets.push_back(*system.connect(here));
  return sockets;
}

TEST(OpenChannel, OverSocketsTheyRemain) {
  SimSystem system({});
  const auto listener = system.listen(here);
  const auto watch = std::make_shared<Unacknowledged>();
  OpenChannel channel;
  EXPECT_FALSE(channel);
  channel.use(system, two_sockets(system), ranks, 2, 1'024, watch);
  EXPECT_TRUE(channel);
  EXPECT_TRUE(channel.over_sockets());
  EXPECT_EQ(channel.sender().slot_bytes(), 1'024u);
  channel.stop();  // nothing to stop
  channel.unwatch();
  const ChannelRemains remains = channel.take_remains();
  EXPECT_EQ(remains.sockets.size(), 2u);
  EXPECT_TRUE(remains.kept.empty());
}

TEST(OpenChannel, OverAWireWhatThePeerMayWriteToRemains) {
  SimSystem system({});
  const auto listener = system.listen(here);
  const auto link = std::make_shared<SocketLink>(system, two_sockets(system), ranks);
  int stopped = 0;
  ChannelUpgrade::Outcome wire;
  wire.sender = std::make_unique<SocketSender>(link, 2, 1'024);
  wire.receiver = std::make_unique<SocketReceiver>(link, 1'024);
  wire.kept = std::make_shared<int>(7);
  wire.stop = [&stopped] { ++stopped; };
  OpenChannel channel;
  channel.use(wire);
  EXPECT_TRUE(channel);
  EXPECT_FALSE(channel.over_sockets());
  channel.stop();
  EXPECT_EQ(stopped, 1);
  const ChannelRemains remains = channel.take_remains();
  EXPECT_TRUE(remains.sockets.empty()) << "its connection is the channel's";
  EXPECT_EQ(remains.kept.size(), 1u);
}

TEST(OpenChannel, WithoutAWireItIsNotOpen) {
  ChannelUpgrade::Outcome none;
  none.why = "no device";
  OpenChannel channel;
  channel.use(none);
  EXPECT_FALSE(channel);
  channel.stop();
  EXPECT_TRUE(channel.take_remains().kept.empty());
}

}  // namespace
}  // namespace tutti
