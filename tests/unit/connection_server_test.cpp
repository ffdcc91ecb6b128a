// Where ranks of other hosts connect: what a process without descriptors says of it.
#include "net/connection_server.h"

#include <gtest/gtest.h>

#include "support/sim_system.h"

namespace tutti {
namespace {

constexpr std::int64_t s = 1'000'000'000;

class CalledAt : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Addresses, CalledAt, ::testing::Values(0, 1));

TEST_P(CalledAt, SaysWhyItLetsNobodyIn) {
  SimSystem network{SimOptions{.accepted_max = 0}};
  const auto server = *ConnectionServer::open(network, {"10.0.0.1", "10.0.1.1"});
  const Socket caller = *network.connect(server->addresses().at(GetParam()));
  const std::int64_t begin_ns = network.now_ns();
  while (!server->stuck() && network.now_ns() < begin_ns + 10 * s) {
    ASSERT_TRUE(server->advance());
    network.poll({}, s / 100);
  }
  ASSERT_TRUE(server->stuck());
  EXPECT_EQ(server->stuck()->sys_errno, EMFILE);
  EXPECT_GE(network.now_ns() - begin_ns, 1 * s) << "descriptors may come back";
  EXPECT_LE(network.now_ns() - begin_ns, 2 * s);
  network.options().accepted_max = 10;
  network.poll({}, s);
  ASSERT_TRUE(server->advance());
  EXPECT_FALSE(server->stuck());
}

TEST(ConnectionServer, IsNotStuckWhereNobodyCalls) {
  SimSystem network{SimOptions{.accepted_max = 0}};
  const auto server = *ConnectionServer::open(network, {"10.0.0.1"});
  const std::int64_t begin_ns = network.now_ns();
  while (network.now_ns() < begin_ns + 3 * s) {
    ASSERT_TRUE(server->advance());
    network.poll({}, s / 100);
  }
  EXPECT_FALSE(server->stuck());
}

}  // namespace
}  // namespace tutti
