// Processes that end anywhere in a row of calls, by themselves or by another thread: what they had completed succeeds
// on all ranks, and the others name the rank that ended.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "support/ends.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

std::uint64_t seed() {
  const char* const given = std::getenv("TUTTI_TEST_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

/// What all ranks have completed of a row of calls in which one of them ends somewhere.
class RandomEnds : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr int ranks = 3;
  static std::vector<std::string> environment() {
    return {std::string("TUTTI_TRANSPORT=") + GetParam(), "TUTTI_DEBUG=NONE"};
  }
  enum Word : std::size_t { completed = 0, of_victim = ranks };

  static tuttiResult_t nth_call(const Buffers& buffers, int nth, tuttiComm_t comm, int rank) {
    const std::size_t count = std::vector<std::size_t>{1, 3'000, 100'000}[static_cast<std::size_t>(nth / 3 % 3)];
    return named_calls()[static_cast<std::size_t>(nth * 5 % 8)].make(buffers, count, comm, rank, ranks);
  }

  static void one_end(std::mt19937_64& random) {
    const int victim = static_cast<int>(random() % ranks);
    const int last = static_cast<int>(random() % 40);
    const auto way = random() % 8;  // from 4 on by another thread, whatever its rank does
    const auto late = std::chrono::microseconds(random() % 20'000);
    SCOPED_TRACE(fmt::format("rank {} ends after {} calls in way {}, or {} us", victim, last, way, late.count()));
    launch_ranks({.ranks = ranks, .environment = environment()}, [&](Seat& seat) {
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      const Buffers buffers(last % 2 == 0 ? Memory::heap : Memory::mapped, ranks);
      ASSERT_TRUE(seat.meet());
      const bool is_victim = seat.rank() == victim;
      std::thread other;
      if (is_victim && way >= 4)
        other = std::thread([late] {
          const auto end = std::chrono::steady_clock::now() + late;
          while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
          ::_exit(0);
        });
      for (int nth = 0; !seat.board().over(); ++nth) {
        if (is_victim && way < 4 && nth == last) return end(static_cast<End>(way));
        if (nth_call(buffers, nth, comm, seat.rank()) != tuttiSuccess) break;
        seat.board().word(completed + static_cast<std::size_t>(seat.rank())).store(static_cast<std::uint64_t>(nth) + 1);
      }
      if (is_victim) {  // it ends by itself
        if (other.joinable()) other.join();
        return;
      }
      const auto mine = seat.board().word(completed + static_cast<std::size_t>(seat.rank())).load();
      const auto theirs = seat.board().word(completed + static_cast<std::size_t>(victim)).load();
      EXPECT_GE(mine, theirs) << "a call that the ended rank had completed failed here: " << tuttiGetLastError(comm);
      const std::string words = tuttiGetLastError(comm);
      EXPECT_NE(words.find(fmt::format("rank {}/{}", victim, ranks)), std::string::npos) << words;
      (void)tuttiCommDestroy(comm);
    });
  }

  static void many_ends(int ends) {
    std::mt19937_64 random(seed());
    for (int one = 0; one < ends && !HasFailure(); ++one) one_end(random);
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, RandomEnds, ::testing::Values("auto", "mapped", "cma", "slots", "socket"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(RandomEnds, LeaveWhatWasCompletedCompletedOnAllRanks) {
  many_ends(share_of(6));
}

TEST_P(RandomEnds, NightlyLeaveWhatWasCompletedCompletedOnAllRanks) {
  many_ends(share_of(100));
}

}  // namespace
}  // namespace tutti::testing
