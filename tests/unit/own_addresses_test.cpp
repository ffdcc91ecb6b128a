// Which addresses a process has: asked once, and in a container that was just started once they can be used.
#include "net/own_addresses.h"

#include <gtest/gtest.h>

#include "support/sim_system.h"

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;

/// An interface that has its carrier from some look on.
struct Container {
  int looks = 0;
  int carrier_at = 3;
  bool other_nic = false;

  Result<std::vector<InterfaceAddress>> list() {
    ++looks;
    std::vector<InterfaceAddress> all = {
        {.interface = "lo", .address = "127.0.0.1", .kind = InterfaceKind::loopback},
        {.interface = "eth0", .address = "10.0.0.5", .kind = InterfaceKind::pair, .up = looks >= carrier_at}};
    if (other_nic) all.push_back({.interface = "eth1", .address = "10.1.0.5"});
    return all;
  }
};

class AwaitedAddresses : public ::testing::Test {
 protected:
  Result<std::vector<std::string>> get(const std::string& names = "") {
    const std::vector<std::string> environment = {"TUTTI_SOCKET_IFNAME=" + names};
    auto config = Config::load(environment, [](const std::string&) { return Error{.code = Code::system}; });
    if (!config) return std::move(config).error();
    auto addresses = addresses_.get(system_, *config, log_);
    if (!addresses) return std::move(addresses).error();
    return hosts_of(*addresses);
  }

  Container container_;
  SimSystem system_{SimOptions{}};
  const std::int64_t began_ = system_.now_ns();
  Log log_ = Log(LogLevel::none, 0, "");
  OwnAddresses addresses_{[this] { return container_.list(); }};
};

using Hosts = std::vector<std::string>;

TEST_F(AwaitedAddresses, ACarrierIsAwaited) {
  auto hosts = get();
  ASSERT_TRUE(hosts) << hosts.error().text();
  EXPECT_EQ(*hosts, Hosts{"10.0.0.5"});
  EXPECT_EQ(container_.looks, 3);
  EXPECT_GE(system_.now_ns() - began_, 40 * ms);
  ASSERT_TRUE(get());
  EXPECT_EQ(container_.looks, 3) << "what is known is not asked again";
}

TEST_F(AwaitedAddresses, AHostWithAnotherInterfaceDoesNotWait) {
  container_.other_nic = true;
  auto hosts = get();
  ASSERT_TRUE(hosts) << hosts.error().text();
  EXPECT_EQ(*hosts, Hosts{"10.1.0.5"});
  EXPECT_EQ(container_.looks, 1);
}

TEST_F(AwaitedAddresses, TheOneThatIsNamedIsAwaited) {
  container_.other_nic = true;
  auto hosts = get("=eth0");
  ASSERT_TRUE(hosts) << hosts.error().text();
  EXPECT_EQ(*hosts, Hosts{"10.0.0.5"});
}

TEST_F(AwaitedAddresses, WhatNeverComesIsGivenUp) {
  container_.carrier_at = 1'000'000;
  auto hosts = get("=eth0");
  ASSERT_FALSE(hosts);
  EXPECT_EQ(hosts.error().code, Code::invalid_usage);
  EXPECT_NE(hosts.error().text().find("eth0 10.0.0.5: down or without a carrier"), std::string::npos);
  EXPECT_GE(system_.now_ns() - began_, 2'000 * ms);
  EXPECT_LE(system_.now_ns() - began_, 2'100 * ms);
  EXPECT_LE(container_.looks, 101);
}

TEST_F(AwaitedAddresses, ThisHostAloneIsWhatIsLeftInTheEnd) {
  container_.carrier_at = 1'000'000;
  auto hosts = get();
  ASSERT_TRUE(hosts) << hosts.error().text();
  EXPECT_EQ(*hosts, Hosts{"127.0.0.1"});
  EXPECT_GE(system_.now_ns() - began_, 2'000 * ms);
}

TEST_F(AwaitedAddresses, WhoDoesNotWaitIsToldWhenToAskAgain) {
  auto config = Config::load({}, [](const std::string&) { return Error{.code = Code::system}; });
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_FALSE(addresses_.settled(system_, *config, log_));
  EXPECT_FALSE(addresses_.settled(system_, *config, log_));
  EXPECT_EQ(container_.looks, 1) << "not before its time";
  EXPECT_GT(addresses_.next_look_ns(), system_.now_ns());
  EXPECT_LE(addresses_.next_look_ns(), system_.now_ns() + 20 * ms);
}

TEST(ListeningAddress, IsTheOnlyOneThatMayBeUsedOrAny) {
  EXPECT_EQ(listening_address({"10.0.0.9"}), "10.0.0.9");
  EXPECT_EQ(listening_address({"fd00::9"}), "fd00::9");
  EXPECT_EQ(listening_address({"10.0.0.9", "10.1.0.9"}), "0.0.0.0");
  EXPECT_EQ(listening_address({"10.0.0.9", "fd00::9"}), "::");
}

}  // namespace
}  // namespace tutti
