// Processes that end after a call without leaving the communicator: what they had completed succeeds on all ranks.
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "support/ends.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

std::vector<float> numbers(std::size_t count, float first) {
  std::vector<float> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

/// What the call at which a job ends is, by the number of the trial.
struct Trial {
  explicit Trial(int number)
      : call(named_calls()[static_cast<std::size_t>(number) % named_calls().size()]),
        memory(number / 2 % 2 == 0 ? Memory::heap : Memory::mapped),
        count(std::vector<std::size_t>{1, 5'000, Buffers::count_max}[static_cast<std::size_t>(number) % 3]),
        how(static_cast<End>(number % 4)),
        ranks(2 + number % 3) {}
  const NamedCall& call;
  Memory memory;
  std::size_t count;
  End how;
  int ranks;
};

class LastCall : public ::testing::TestWithParam<const char*> {
 protected:
  static std::vector<std::string> environment() {
    return {std::string("TUTTI_TRANSPORT=") + GetParam(), "TUTTI_DEBUG=NONE"};
  }
  static bool by_wire() { return std::string(GetParam()) == "socket" || std::string(GetParam()) == "rdma"; }

  static void end_after_it(int trials) {
    for (int number = 0; number < trials; ++number) {
      const Trial trial(number);
      SCOPED_TRACE(fmt::format("trial {}: {}, {} elements", number, trial.call.name, trial.count));
      const bool went = launch_ranks({.ranks = trial.ranks, .environment = environment()}, [&](Seat& seat) {
        const auto comm = seat.init_one();
        ASSERT_NE(comm, nullptr);
        const Buffers buffers(trial.memory, seat.ranks());
        std::fill_n(buffers.input(), trial.count * static_cast<std::size_t>(seat.ranks()), 1.0F);
        for (int before = 0; before < 3; ++before)
          ASSERT_TRUE(ok(tuttiAllReduce(buffers.input(), buffers.output(), 1, tuttiFloat32, tuttiSum, comm, nullptr)));
        EXPECT_TRUE(ok(trial.call.make(buffers, trial.count, comm, seat.rank(), seat.ranks())));
        end(trial.how);
      });
      if (!went) return;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, LastCall, ::testing::Values("auto", "mapped", "cma", "slots", "socket", "rdma"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(LastCall, SucceedsOnAllRanksAlthoughEachEndsAtOnce) {
  end_after_it(share_of(12));
}

TEST_P(LastCall, NightlySucceedsOnAllRanksAlthoughEachEndsAtOnce) {
  end_after_it(share_of(240));
}

/// What a rank can give before any other comes. `early` is the rank that gives it.
struct OneWay {
  const char* name;
  int early;
  std::function<tuttiResult_t(const Buffers&, std::size_t, tuttiComm_t, int rank)> make;
};

const std::vector<OneWay>& one_way_calls() {
  static const std::vector<OneWay> all = {
      {"broadcast", 0,
       [](const Buffers& b, std::size_t count, tuttiComm_t comm, int) {
         return tuttiBroadcast(b.input(), b.output(), count, tuttiFloat32, 0, comm, nullptr);
       }},
      {"scatter", 0,
       [](const Buffers& b, std::size_t count, tuttiComm_t comm, int) {
         return tuttiScatter(b.input(), b.output(), count, tuttiFloat32, 0, comm, nullptr);
       }},
      {"reduce", 1,
       [](const Buffers& b, std::size_t count, tuttiComm_t comm, int) {
         return tuttiReduce(b.input(), b.output(), count, tuttiFloat32, tuttiSum, 0, comm, nullptr);
       }},
      {"gather", 1,
       [](const Buffers& b, std::size_t count, tuttiComm_t comm, int) {
         return tuttiGather(b.input(), b.output(), count, tuttiFloat32, 0, comm, nullptr);
       }},
      {"scan", 0,
       [](const Buffers& b, std::size_t count, tuttiComm_t comm, int) {
         return tuttiScan(b.input(), b.output(), count, tuttiFloat32, tuttiSum, comm, nullptr);
       }},
      {"a message in order", 0,
       [](const Buffers& b, std::size_t count, tuttiComm_t comm, int rank) {
         if (rank == 2) return tuttiSuccess;
         return rank == 0 ? tuttiSend(b.input(), count, tuttiFloat32, 1, comm, nullptr)
                          : tuttiRecv(b.output(), count, tuttiFloat32, 0, comm, nullptr);
       }},
      {"a message with a tag", 0,
       [](const Buffers& b, std::size_t count, tuttiComm_t comm, int rank) {
         if (rank == 2) return tuttiSuccess;
         tuttiRequest_t request = nullptr;
         const auto begun = rank == 0 ? tuttiIsend(b.input(), count, tuttiFloat32, 1, 3, comm, &request)
                                      : tuttiIrecv(b.output(), count, tuttiFloat32, 0, 3, comm, &request);
         return begun == tuttiSuccess ? tuttiWait(&request, nullptr) : begun;
       }},
  };
  return all;
}

/// The others come when it has ended and they have heard of it.
TEST_P(LastCall, OfARankThatGivesWithoutWaitingReachesThoseWhoComeWhenItHasEnded) {
  int nth = 0;
  for (const OneWay& call : one_way_calls()) {
    SCOPED_TRACE(call.name);
    // With a forced access, ranks of one host wait for each other's call descriptors in collectives.
    const bool in_order = std::string(GetParam()) == "auto" || by_wire();
    if (!in_order && !std::string(call.name).starts_with("a message")) continue;
    const End how = static_cast<End>(nth++ % 4);
    const bool went = launch_ranks({.ranks = 3, .environment = environment()}, [&](Seat& seat) {
      constexpr std::size_t count = 16;
      constexpr std::size_t pid = 0;
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      const Buffers buffers(Memory::heap, seat.ranks());
      const auto expected = numbers(count * 3, 5);
      std::copy(expected.begin(), expected.end(), buffers.input());
      ASSERT_TRUE(ok(tuttiBarrier(comm, nullptr)));
      if (by_wire()) {  // connections are open before
        ASSERT_TRUE(ok(call.make(buffers, count, comm, seat.rank())));
      }
      ASSERT_TRUE(ok(tuttiBarrier(comm, nullptr)));
      if (seat.rank() == call.early) {
        EXPECT_TRUE(ok(call.make(buffers, count, comm, seat.rank())));
        seat.board().raise(pid, static_cast<std::uint64_t>(::getpid()));
        return end(how);
      }
      ASSERT_TRUE(seat.board().wait_for(pid, 1));
      while (!has_ended(seat.board().word(pid).load()) && !seat.board().over()) std::this_thread::yield();
      // Rank 2 of a message's three has nothing to do with it.
      const bool takes_part = call.make(buffers, 0, nullptr, seat.rank()) != tuttiSuccess;
      tuttiResult_t heard = tuttiSuccess;
      while (heard == tuttiSuccess && !seat.board().over()) ASSERT_TRUE(ok(tuttiCommGetAsyncError(comm, &heard)));
      std::fill_n(buffers.output(), count, -1.0F);
      EXPECT_TRUE(ok(call.make(buffers, count, comm, seat.rank())));
      if (takes_part && call.early == 0 && std::string(call.name).find("scan") == std::string::npos) {
        const std::size_t skipped =
            std::string(call.name) == "scatter" ? count * static_cast<std::size_t>(seat.rank()) : 0;
        EXPECT_TRUE(std::equal(buffers.output(), buffers.output() + count,
                               expected.begin() + static_cast<std::ptrdiff_t>(skipped)));
      }
      EXPECT_TRUE(fails(tuttiBarrier(comm, nullptr), tuttiRemoteError, fmt::format("rank {}/3", call.early), comm));
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
    if (!went) return;
  }
}

/// The process in which the ranks met ends while others have yet to hear that all are there.
TEST_P(LastCall, IsTheStartOfSome) {
  for (int number = 0; number < share_of(12); ++number) {
    SCOPED_TRACE(fmt::format("trial {}", number));
    const bool went = launch_ranks({.ranks = 5, .environment = environment()}, [&](Seat& seat) {
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      if (number % 2 == 0) {
        EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      }
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    });
    ASSERT_TRUE(went);
  }
}

/// Its process goes on for long, but is no rank any more.
TEST_P(LastCall, IsThatOfARankThatBecomesAnotherProgram) {
  Workers workers({.ranks = 3, .environment = environment()}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    ASSERT_TRUE(ok(tuttiBarrier(comm, nullptr)));
    if (seat.rank() == 1) {
      ::execl("/bin/sleep", "sleep", "1000", nullptr);
      ::_exit(127);
    }
    EXPECT_TRUE(fails(tuttiBarrier(comm, nullptr), tuttiRemoteError, "rank 1/3", comm));
    // It lives, and nobody may be told that it was killed for certain.
    const std::string words = tuttiGetLastError(comm);
    EXPECT_TRUE(words.find("has become another program") != std::string::npos ||
                words.find("without leaving the communicator, or ") != std::string::npos)
        << words;
    seat.board().raise(static_cast<std::size_t>(seat.rank()), 1);
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
  for (const std::size_t rank : {0, 2}) EXPECT_TRUE(workers.board().wait_for(rank, 1, std::chrono::seconds(60)));
  EXPECT_FALSE(has_ended(static_cast<std::uint64_t>(workers.pid_of(1))));
  workers.kill(1);
  EXPECT_TRUE(workers.finish());
}

}  // namespace
}  // namespace tutti::testing
