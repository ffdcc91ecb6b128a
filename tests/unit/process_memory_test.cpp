// Areas of a process's ranks are found while they live, and peers get what was allocated from its server.
#include "process/process_memory.h"

#include <gtest/gtest.h>

#include "process/process.h"
#include "support/sim_system.h"

namespace tutti {
namespace {

class OwnMemory : public ::testing::Test {
 protected:
  Log log_{LogLevel::none, 0, {}};
  CpuMap map_;
  Places places_{map_, log_, /*on=*/false};
  ProcessMemory memory_{places_};
};

TEST_F(OwnMemory, AnAreaIsFoundWhileItLives) {
  auto area = memory_.make_area({.ranks = 2});
  ASSERT_TRUE(area);
  const std::uint32_t id = (*area)->name.id;
  EXPECT_EQ(memory_.find_area(id), *area);
  EXPECT_TRUE(memory_.segments.alive((*area)->name));
  const SegmentName name = (*area)->name;
  area->reset();
  EXPECT_EQ(memory_.find_area(id), nullptr);
  EXPECT_FALSE(memory_.segments.alive(name));
}

TEST_F(OwnMemory, WhatIsAllocatedIsASegment) {
  const auto at = memory_.allocate(1'000, /*touch=*/true);
  ASSERT_TRUE(at);
  EXPECT_TRUE(memory_.segments.find(*at, 1'000));
  EXPECT_TRUE(memory_.segments.free(*at));
}

TEST_F(OwnMemory, OneServerServesIt) {
  SimSystem system({});
  Service service(system, Service::Mode::manual, places_);
  ProcessIdentity identity;
  ASSERT_TRUE(identity.make());
  ASSERT_TRUE(memory_.serve(identity.key, service));
  const std::string name = memory_.fd_server_name();
  EXPECT_TRUE(is_served(name));
  ASSERT_TRUE(memory_.serve(identity.key, service));
  EXPECT_EQ(memory_.fd_server_name(), name);
}

TEST(ProcessIdentity, IsMadeOnce) {
  ProcessIdentity identity, other;
  EXPECT_EQ(identity.token, 0u);
  for (ProcessIdentity* const one : {&identity, &other}) ASSERT_TRUE(one->make());
  EXPECT_NE(identity.token, 0u);
  EXPECT_NE(identity.token, other.token);
  EXPECT_NE(identity.key, other.key);
  const std::uint64_t token = identity.token;
  const ProcessKey key = identity.key;
  ASSERT_TRUE(identity.make());
  EXPECT_EQ(identity.token, token);
  EXPECT_EQ(identity.key, key);
  EXPECT_EQ(identity.boot_id, other.boot_id) << "they run on one kernel";
}

}  // namespace
}  // namespace tutti
