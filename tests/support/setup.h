// A setup of ranks as a parameter of a suite: how many, where they sit, by which transport and algorithm their calls
// go.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/launch_ranks.h"

namespace tutti::testing {

struct Setup {
  int ranks;
  Layout layout;
  const char* transport;
  const char* algorithm = "";  ///< TUTTI_ALGO; none: the library chooses
};

/// "processes_4_mapped_chain": names a test, so that filters find a layout or a transport.
inline std::string name_of_setup(const ::testing::TestParamInfo<Setup>& test) {
  const Setup& s = test.param;
  std::string text = fmt::format("{}_{}_{}", name(s.layout), s.ranks, s.transport);
  if (*s.algorithm != 0) text += fmt::format("_{}", s.algorithm);
  std::ranges::replace(text, ',', '_');
  return text;
}

inline Team team_of(const Setup& s) {
  Team team{.ranks = s.ranks,
            .layout = s.layout,
            .environment = {std::string("TUTTI_TRANSPORT=") + s.transport},
            .limit = std::chrono::seconds(120)};
  if (*s.algorithm != 0) team.environment.push_back(std::string("TUTTI_ALGO=") + s.algorithm);
  return team;
}

/// Runs `body` once per seat of the team, with a communicator for each rank that sits there.
inline void with_communicators(const Setup& setup,
                               const std::function<void(Seat&, const std::vector<tuttiComm_t>&)>& body) {
  launch_ranks(team_of(setup), [&](Seat& seat) {
    const auto comms = seat.init();
    ASSERT_FALSE(comms.empty());
    body(seat, comms);
    for (const auto comm : comms) EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace tutti::testing
