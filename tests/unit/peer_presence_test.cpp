// A peer that takes its time is present as long as somebody answers for it, and gone when calls are turned away.
#include "net/life_probe.h"

#include <gtest/gtest.h>

#include "support/sim_system.h"

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;
const SocketAddress there{.host = "10.0.0.1", .port = 4711};

/// For how long it was present, of so long at most.
std::int64_t present_ns(SimSystem& system, PeerPresence presence, std::int64_t longest_ns) {
  const std::int64_t begin_ns = system.now_ns();
  while (system.now_ns() - begin_ns < longest_ns && !presence.gone(system)) {
    std::vector<PollItem> items;
    presence.poll_set(items);
    system.poll({}, 10 * ms);
  }
  return system.now_ns() - begin_ns;
}

TEST(PeerPresence, EndsWhenNobodyListens) {
  SimSystem system({});
  const std::int64_t took_ns =
      present_ns(system, PeerPresence({.from = 0, .to = 1, .addresses = {there}}), 60'000 * ms);
  EXPECT_GE(took_ns, 4'000 * ms) << "it may be starting";
  EXPECT_LT(took_ns, 8'000 * ms);
}

TEST(PeerPresence, WhoIsSlowIsPresent) {
  SimSystem system({});
  const auto listener = system.listen(there);
  EXPECT_GE(present_ns(system, PeerPresence({.from = 0, .to = 1, .addresses = {there}}), 30'000 * ms), 30'000 * ms);
}

TEST(PeerPresence, WhoCannotBeCalledIsNotAskedFor) {
  SimSystem system({});
  EXPECT_GE(present_ns(system, PeerPresence(ProbeTarget{}), 30'000 * ms), 30'000 * ms);
}

}  // namespace
}  // namespace tutti
