// Which RDMA port carries a channel: the proven one, else a fast one near the rank, in turn.
#include "transport/verbs/port.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "support/verbs_links.h"

namespace tutti::verbs {
namespace {

class PortChoice : public ::testing::Test {
 protected:
  /// fake0 to fake3, at 10.0.0.1 to 10.0.0.4.
  static std::vector<Port> ports() {
    ::setenv("FAKE_VERBS_DEVICES", "4", 1);
    ::setenv("FAKE_VERBS_ADDRESS", "10.0.0.1", 1);
    auto list = list_ports(testing::fake_verbs(), {.verbs_library = TUTTI_FAKE_VERBS});
    EXPECT_TRUE(list);
    EXPECT_EQ(list->ports.size(), 4u);
    return list->ports;
  }
  static std::vector<std::size_t> chosen(const std::vector<Port>& ports, const std::string& address,
                                         std::string_view nearest) {
    std::vector<std::size_t> all;
    for (int channel = 0; channel < 5; ++channel) all.push_back(choose_port(ports, address, nearest, channel));
    return all;
  }
  using Indices = std::vector<std::size_t>;
};

TEST_F(PortChoice, IsTheOneWithTheProvenAddress) {
  const auto all = ports();
  EXPECT_EQ(chosen(all, "10.0.0.3", "fake0"), (Indices{2, 2, 2, 2, 2}));
  EXPECT_EQ(chosen(all, "::ffff:10.0.0.2", ""), (Indices{1, 1, 1, 1, 1}));
}

TEST_F(PortChoice, IsElseAFastOneInTurn) {
  auto all = ports();
  for (const char* const address : {"10.0.0.9", "fe80::1", "", "nonsense"})
    EXPECT_EQ(chosen(all, address, ""), (Indices{0, 1, 2, 3, 0})) << address;
  all[3].mbps /= 2;
  EXPECT_EQ(chosen(all, "10.0.0.9", "eth0"), (Indices{0, 1, 2, 0, 1}));
  all[2].iwarp = true;
  EXPECT_EQ(chosen(all, "10.0.0.9", ""), (Indices{0, 1, 0, 1, 0}));
}

TEST_F(PortChoice, IsNearTheRankIfThatIsNotSlower) {
  auto all = ports();
  EXPECT_EQ(chosen(all, "10.0.0.9", "fake2"), (Indices{2, 2, 2, 2, 2}));
  all[0].numa = all[2].numa = 1;
  EXPECT_EQ(chosen(all, "10.0.0.9", "fake2"), (Indices{0, 2, 0, 2, 0})) << "as near";
  all[0].numa = 0;
  all[1].device = all[2].device;  // its second port
  EXPECT_EQ(chosen(all, "10.0.0.9", "fake2"), (Indices{1, 2, 1, 2, 1}));
  all[3].mbps /= 2;
  EXPECT_EQ(chosen(all, "10.0.0.9", "fake3"), (Indices{0, 1, 2, 0, 1}));
}

}  // namespace
}  // namespace tutti::verbs
