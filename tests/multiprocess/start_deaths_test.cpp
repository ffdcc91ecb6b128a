// A rank is killed at any moment of a start: the others get one and the same error code, and the rank is named.
#include <signal.h>

#include <random>
#include <set>
#include <string>

#include "support/launch_ranks.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

constexpr int ranks = 4;
enum Word : std::size_t { begins, told, codes = told + ranks };

struct Start {
  const char* name;
  const char* transport;
  bool first;  ///< of its processes
};

class StartDeaths : public ::testing::TestWithParam<Start> {};
INSTANTIATE_TEST_SUITE_P(Of, StartDeaths,
                         ::testing::Values(Start{"the_first", "auto", true},
                                           Start{"the_first_by_sockets", "socket", true},
                                           Start{"a_later_one", "auto", false},
                                           Start{"a_later_one_by_sockets", "socket", false}),
                         [](const auto& start) { return std::string(start.param.name); });

TEST_P(StartDeaths, HaveOneCodeAndOneName) {
  const std::string limit = "TUTTI_INIT_TIMEOUT_MS=" + std::to_string(static_cast<int>(1'500 * patience()));
  std::mt19937 random(11);
  for (int round = 0; round < share_of(6); ++round) {
    const int victim = static_cast<int>(random() % ranks);
    SCOPED_TRACE(::testing::Message() << "round " << round << ", rank " << victim << " is killed");
    const Team team{.ranks = ranks,
                    .environment = {std::string("TUTTI_TRANSPORT=") + GetParam().transport, "TUTTI_DEBUG=NONE",
                                    "TUTTI_TUNE=off", limit}};
    Workers workers(team, [victim](Seat& seat) {
      const auto earlier = GetParam().first ? nullptr : seat.init_one();
      const tuttiUniqueId id = seat.next_id();
      ASSERT_TRUE(seat.meet());
      if (seat.rank() == victim) seat.board().raise(begins, 1);
      tuttiComm_t comm = nullptr;
      const auto result = tuttiCommInitRank(&comm, ranks, id, seat.rank());
      if (seat.rank() == victim) {
        seat.board().raise(told + static_cast<std::size_t>(victim), 1);  // too late to be killed in its start
        return;
      }
      const std::string words = tuttiGetLastError(nullptr);
      if (result != tuttiSuccess) {
        // One that died before it called is missing at the limit.
        EXPECT_TRUE(words.find("rank " + std::to_string(victim)) != std::string::npos ||
                    words.find("missing " + std::to_string(victim)) != std::string::npos)
            << words;
      }
      seat.board().raise(codes + static_cast<std::size_t>(seat.rank()), static_cast<std::uint64_t>(result) + 1);
      for (const auto made : {comm, earlier}) {
        if (made == nullptr) continue;
        EXPECT_TRUE(ok(tuttiCommAbort(made)));
      }
    });
    ASSERT_TRUE(workers.board().wait_for(begins, 1));
    for (unsigned spin = random() % 12'000'000; spin > 0; --spin) asm volatile("");
    workers.kill(victim);
    ASSERT_TRUE(workers.finish());
    std::set<std::uint64_t> different;
    for (int rank = 0; rank < ranks; ++rank)
      if (const auto code = workers.board().word(codes + static_cast<std::size_t>(rank)).load(); code > 1)
        different.insert(code - 1);
    EXPECT_LE(different.size(), 1u) << *different.begin() << " and " << *different.rbegin();
  }
}

}  // namespace
}  // namespace tutti::testing
