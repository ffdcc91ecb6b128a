// A process listens once for other hosts, and once at each address for starts.
#include "process/process_network.h"

#include <gtest/gtest.h>

#include "support/sim_system.h"

namespace tutti {
namespace {

class Network : public ::testing::Test {
 protected:
  SimSystem system_{{}};
  Config config_ = *Config::load({}, [](const std::string&) { return Error{.code = Code::system}; });
  Log log_{LogLevel::none, 0, {}};
  CpuMap map_;
  Places places_{map_, log_, /*on=*/false};
  Service service_{system_, Service::Mode::manual, places_};
  ProcessNetwork network_{system_, config_, log_, service_};
};

TEST_F(Network, ConnectionsOfAllCommunicatorsArriveAtOneServer) {
  const auto first = network_.connections(), second = network_.connections();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  EXPECT_FALSE((*first)->addresses().empty());
}

TEST_F(Network, StartsShareTheListenerOfAnAddress) {
  const SocketAddress here{.host = "10.0.0.1", .port = 4711};
  auto first = network_.shared_listener(here), second = network_.shared_listener(here);
  const auto elsewhere = network_.shared_listener({.host = "10.0.0.1", .port = 4712});
  ASSERT_TRUE(first && second && elsewhere);
  EXPECT_EQ(*first, *second);
  EXPECT_NE(*first, *elsewhere);
  const std::size_t open = system_.open_sockets();
  first->reset();
  second->reset();
  EXPECT_LT(system_.open_sockets(), open) << "nobody listens there any more";
  EXPECT_TRUE(network_.shared_listener(here)) << "but may again";
}

}  // namespace
}  // namespace tutti
