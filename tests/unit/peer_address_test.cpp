// Which address each connection goes to: NICs that are fit to share take turns.
#include "net/peer_address.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti {
namespace {

PeerAddress address(const std::string& host, int nic, bool wide) {
  return {.at = {.host = host, .port = 1}, .nic = nic, .wide = wide};
}

/// Their hosts, one behind the other.
std::string order(const std::vector<PeerAddress>& addresses, int nth) {
  std::string hosts;
  for (const SocketAddress& at : addresses_in_turn(addresses, nth)) hosts += at.host;
  return hosts;
}

TEST(PeerAddress, WideCardsTakeTurnsAndTheOthersAreInReserve) {
  const std::vector<PeerAddress> all = {address("a", 0, true), address("A", 0, true), address("b", 1, false),
                                        address("c", 2, true)};
  EXPECT_EQ(order(all, 0), "aAbc");
  EXPECT_EQ(order(all, 1), "caAb");
  EXPECT_EQ(order(all, 2), "aAbc") << "two addresses of one card are one way";
  EXPECT_EQ(order(all, 3), "caAb");
}

TEST(PeerAddress, WhatWasNotProvenIsTriedInItsOrder) {
  const std::vector<PeerAddress> all = {address("a", 0, false), address("b", 1, false)};
  EXPECT_EQ(order(all, 0), "ab");
  EXPECT_EQ(order(all, 1), "ab");
  EXPECT_EQ(order({}, 1), "");
}

TEST(PeerAddress, HalfTheRateIsEnough) {
  EXPECT_TRUE(comparable(10'000, 10'000));
  EXPECT_TRUE(comparable(5'000, 10'000));
  EXPECT_FALSE(comparable(4'999, 10'000));
  EXPECT_FALSE(comparable(0, 10'000)) << "not known";
  EXPECT_TRUE(comparable(0, 0));
}

}  // namespace
}  // namespace tutti
