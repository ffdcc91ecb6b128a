// Processes that end after a call without leaving the communicator: what they had completed succeeds on all ranks.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "support/buffer.h"
#include "support/launch_ranks.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

enum class End { returns, exits, quick, becomes_another };

/// How a process ends whose body has nothing more to do. Failed expectations are not lost.
void end(End how) {
  const int code = ::testing::Test::HasFailure() ? 1 : 0;
  std::fflush(nullptr);
  switch (how) {
    case End::returns: return;
    case End::exits: ::_exit(code);
    case End::quick: std::quick_exit(code);
    case End::becomes_another: ::execl(code == 0 ? "/bin/true" : "/bin/false", "other", nullptr); ::_exit(127);
  }
}

std::uint64_t seed() {
  const char* const given = std::getenv("TUTTI_TEST_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

std::vector<float> numbers(std::size_t count, float first) {
  std::vector<float> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

/// Buffers of one rank for calls of any kind.
struct Buffers {
  static constexpr std::size_t count_max = 300'000;
  Buffers(Memory memory, int ranks)
      : in(memory, count_max * sizeof(float) * static_cast<std::size_t>(ranks)),
        out(memory, count_max * sizeof(float) * static_cast<std::size_t>(ranks)) {}
  float* input() const { return reinterpret_cast<float*>(in.data()); }
  float* output() const { return reinterpret_cast<float*>(out.data()); }
  Buffer in, out;
};

/// A call, by all ranks, of a kind; checks what came.
struct Call {
  const char* name;
  std::function<tuttiResult_t(const Buffers&, std::size_t, tuttiComm_t, int rank, int ranks)> make;
};

tuttiResult_t exchange(const Buffers& buffers, std::size_t count, tuttiComm_t comm, int rank, int ranks) {
  if (const auto begun = tuttiGroupStart(); begun != tuttiSuccess) return begun;
  (void)tuttiSend(buffers.input(), count, tuttiFloat32, (rank + 1) % ranks, comm, nullptr);
  (void)tuttiRecv(buffers.output(), count, tuttiFloat32, (rank + ranks - 1) % ranks, comm, nullptr);
  return tuttiGroupEnd();
}

tuttiResult_t exchange_tagged(const Buffers& buffers, std::size_t count, tuttiComm_t comm, int rank, int ranks) {
  tuttiRequest_t out = nullptr;
  tuttiRequest_t in = nullptr;
  auto result = tuttiIsend(buffers.input(), count, tuttiFloat32, (rank + 1) % ranks, 7, comm, &out);
  if (result == tuttiSuccess)
    result = tuttiIrecv(buffers.output(), count, tuttiFloat32, TUTTI_ANY_SOURCE, 7, comm, &in);
  for (auto* request : {&out, &in})
    if (const auto ended = tuttiWait(request, nullptr); result == tuttiSuccess) result = ended;
  return result;
}

const std::vector<Call>& calls() {
  static const std::vector<Call> all = {
      {"all-reduce",
       [](const Buffers& b, std::size_t count, tuttiComm_t comm, int, int) {
         return tuttiAllReduce(b.input(), b.output(), count, tuttiFloat32, tuttiSum, comm, nullptr);
       }},
      {"broadcast", [](const Buffers& b, std::size_t count, tuttiComm_t comm, int,
                       int) { return tuttiBroadcast(b.input(), b.output(), count, tuttiFloat32, 0, comm, nullptr); }},
      {"barrier", [](const Buffers&, std::size_t, tuttiComm_t comm, int, int) { return tuttiBarrier(comm, nullptr); }},
      {"all-to-all", [](const Buffers& b, std::size_t count, tuttiComm_t comm, int,
                        int) { return tuttiAllToAll(b.input(), b.output(), count, tuttiFloat32, comm, nullptr); }},
      {"sends and receives", exchange},
      {"messages", exchange_tagged},
      {"scan", [](const Buffers& b, std::size_t count, tuttiComm_t comm, int,
                  int) { return tuttiScan(b.input(), b.output(), count, tuttiFloat32, tuttiSum, comm, nullptr); }},
      {"gather", [](const Buffers& b, std::size_t count, tuttiComm_t comm, int,
                    int) { return tuttiGather(b.input(), b.output(), count, tuttiFloat32, 0, comm, nullptr); }},
  };
  return all;
}

/// What the call at which a job ends is, by the number of the trial.
struct Trial {
  explicit Trial(int number)
      : call(calls()[static_cast<std::size_t>(number) % calls().size()]),
        memory(number / 2 % 2 == 0 ? Memory::heap : Memory::mapped),
        count(std::vector<std::size_t>{1, 5'000, Buffers::count_max}[static_cast<std::size_t>(number) % 3]),
        how(static_cast<End>(number % 4)),
        ranks(2 + number % 3) {}
  const Call& call;
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

/// A zombie, or what is left of one.
bool has_ended(std::uint64_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(stat, line);
  const auto name_end = line.rfind(')');
  return name_end == std::string::npos || line[name_end + 2] == 'Z' || line[name_end + 2] == 'X';
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

/// What all ranks have completed of a row of calls in which one of them ends somewhere.
class RandomEnds : public LastCall {
 protected:
  static constexpr int ranks = 3;
  enum Word : std::size_t { completed = 0, of_victim = ranks };

  static tuttiResult_t nth_call(const Buffers& buffers, int nth, tuttiComm_t comm, int rank) {
    const std::size_t count = std::vector<std::size_t>{1, 3'000, 100'000}[static_cast<std::size_t>(nth / 3 % 3)];
    return calls()[static_cast<std::size_t>(nth * 5 % 8)].make(buffers, count, comm, rank, ranks);
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
    seat.board().raise(static_cast<std::size_t>(seat.rank()), 1);
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
  for (const std::size_t rank : {0, 2}) EXPECT_TRUE(workers.board().wait_for(rank, 1, std::chrono::seconds(60)));
  EXPECT_FALSE(has_ended(static_cast<std::uint64_t>(workers.pid_of(1))));
  workers.kill(1);
  EXPECT_TRUE(workers.finish());
}

class AnySource : public ::testing::TestWithParam<const char*> {
 protected:
  static Team team() {
    return {.ranks = 3, .environment = {std::string("TUTTI_TRANSPORT=") + GetParam(), "TUTTI_DEBUG=NONE"}};
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, AnySource, ::testing::Values("auto", "socket"),
                         [](const auto& param) { return std::string(param.param); });

/// One leaves, one ends; the receive is of no concern to either.
TEST_P(AnySource, WaitsAsLongAsSomebodyIsLeft) {
  for (const bool leaves : {true, false})
    launch_ranks(team(), [leaves](Seat& seat) {
      constexpr std::size_t pid = 0;
      constexpr std::size_t asked = 1;
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      int x = seat.rank();
      int last = 0;
      tuttiRequest_t request = nullptr;
      tuttiRequest_t keeps = nullptr;  // a communicator without anything under way would fail when rank 2 ends
      if (seat.rank() == 0) {
        ASSERT_TRUE(ok(tuttiIrecv(&x, 1, tuttiInt32, TUTTI_ANY_SOURCE, 0, comm, &request)));
      }
      if (seat.rank() == 1) {
        ASSERT_TRUE(ok(tuttiIrecv(&last, 1, tuttiInt32, 0, 1, comm, &keeps)));
      }
      ASSERT_TRUE(seat.meet());
      if (seat.rank() == 2) {
        if (leaves) {
          ASSERT_TRUE(ok(tuttiCommDestroy(comm)));
        }
        seat.board().raise(pid, static_cast<std::uint64_t>(::getpid()));
        return;
      }
      ASSERT_TRUE(seat.board().wait_for(pid, 1));
      while (!has_ended(seat.board().word(pid).load()) && !seat.board().over()) std::this_thread::yield();
      if (seat.rank() == 1) {
        ASSERT_TRUE(seat.board().wait_for(asked, 1));
        ASSERT_TRUE(ok(tuttiIsend(&x, 1, tuttiInt32, 0, 0, comm, &request)));
        EXPECT_TRUE(ok(tuttiWait(&request, nullptr)));
        EXPECT_TRUE(ok(tuttiWait(&keeps, nullptr)));
      } else {
        for (int times = 0; times < 5'000; ++times) {  // it finds rank 2 gone
          int done = 0;
          ASSERT_TRUE(ok(tuttiTest(&request, &done, nullptr)));
          ASSERT_EQ(done, 0);
          std::this_thread::yield();
        }
        seat.board().raise(asked, 1);
        EXPECT_TRUE(ok(tuttiWait(&request, nullptr)));
        EXPECT_EQ(x, 1);
        EXPECT_TRUE(ok(tuttiIsend(&x, 1, tuttiInt32, 1, 1, comm, &keeps)));
        EXPECT_TRUE(ok(tuttiWait(&keeps, nullptr)));
      }
      (void)tuttiCommDestroy(comm);
    });
}

TEST_P(AnySource, FailsWhenNobodyIsLeft) {
  for (const bool tests : {true, false})
    launch_ranks(team(), [tests](Seat& seat) {
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      int x = 0;
      tuttiRequest_t request = nullptr;
      if (seat.rank() == 0) {
        ASSERT_TRUE(ok(tuttiIrecv(&x, 1, tuttiInt32, TUTTI_ANY_SOURCE, 0, comm, &request)));
      }
      ASSERT_TRUE(seat.meet());
      if (seat.rank() != 0) {
        (void)tuttiCommDestroy(comm);
        return;
      }
      int done = 0;
      tuttiResult_t result = tuttiSuccess;
      while (tests && done == 0 && !seat.board().over()) result = tuttiTest(&request, &done, nullptr);
      if (!tests) result = tuttiWait(&request, nullptr);
      EXPECT_TRUE(fails(result, tuttiRemoteError, "left", comm));
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
}

}  // namespace
}  // namespace tutti::testing
