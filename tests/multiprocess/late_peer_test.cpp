// A rank comes later than another one's limit. No call waits longer for it than the limit says, however loaded the
// machine is, and all ranks get the same error.
#include <sched.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "support/call.h"
#include "support/hogs.h"
#include "support/launch_ranks.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int ranks = 3;
constexpr int limit_ms = 200;          // of rank 0
constexpr int late_ms = 450;           // the last rank, after all others have begun
constexpr std::size_t never = 1;       // a word of the board that nobody raises
constexpr std::size_t begun_word = 2;  // and the words behind it, one for each rank: the turn that it has begun
constexpr int send = kind_count, all_calls = kind_count + 2;  // the last one: isend

struct Load {
  const char* name;
  const char* transport;
  int hogs;  ///< for each core
};

class LatePeer : public ::testing::TestWithParam<Load> {};
INSTANTIATE_TEST_SUITE_P(Quiet, LatePeer, ::testing::Values(Load{"auto", "auto", 0}, Load{"socket", "socket", 0}),
                         [](const auto& load) { return std::string(load.param.name); });
INSTANTIATE_TEST_SUITE_P(Nightly, LatePeer, ::testing::Values(Load{"auto", "auto", 20}, Load{"socket", "socket", 20}),
                         [](const auto& load) { return std::string(load.param.name); });

struct Turn {
  int call = 0;
  std::size_t bytes = 0;
  std::uint64_t number = 0;
};

Clock::time_point begin(Seat& seat, const Turn& turn) {
  seat.board().raise(begun_word + static_cast<std::size_t>(seat.rank()), turn.number);
  return Clock::now();
}

/// Nothing where this rank has no part in it.
std::optional<tuttiResult_t> make(const Turn& turn, Seat& seat, tuttiComm_t comm, Clock::time_point& begun_at) {
  const int nth = turn.call;
  const std::size_t bytes = turn.bytes;
  std::vector<std::byte> memory(bytes);
  const int last = ranks - 1;
  if (nth < kind_count) {
    const Kind kind = static_cast<Kind>(nth);
    const bool to_last = kind == Kind::reduce || kind == Kind::gather;
    CallOnRank call({.kind = kind, .type = tuttiInt32, .count = bytes / 4, .root = to_last ? last : 0}, seat.rank(),
                    ranks);
    call.fill(3);
    begun_at = begin(seat, turn);
    return call.submit(comm);
  }
  tuttiRequest_t request = nullptr;
  begun_at = begin(seat, turn);
  if (seat.rank() == 0) {
    if (nth == send) return tuttiSend(memory.data(), bytes, tuttiUint8, last, comm, nullptr);
    const auto begun = tuttiIsend(memory.data(), bytes, tuttiUint8, last, 3, comm, &request);
    return begun == tuttiSuccess ? tuttiWait(&request, nullptr) : begun;
  }
  if (seat.rank() != last) return std::nullopt;
  if (nth == send) return tuttiRecv(memory.data(), bytes, tuttiUint8, 0, comm, nullptr);
  const auto begun = tuttiIrecv(memory.data(), bytes, tuttiUint8, 0, 3, comm, &request);
  return begun == tuttiSuccess ? tuttiWait(&request, nullptr) : begun;
}

/// How long this thread has been ready to run without a core, in milliseconds; 0 where the kernel does not count it.
double starved_ms() {
  double ran_ns = 0, waited_ns = 0;
  std::ifstream("/proc/thread-self/schedstat") >> ran_ns >> waited_ns;
  return waited_ns * 1e-6;
}

struct Took {
  double ms = 0;
  double starved_ms = 0;  ///< of it
};

/// `came`: the rank that is late had begun when this one returned.
void expect_in_time(tuttiResult_t result, Took took, bool came, bool quiet, const std::string& words) {
  const double ms = took.ms;
  if (result == tuttiSuccess) {
    EXPECT_TRUE(!came || ms <= 1.5 * limit_ms) << "after " << ms << " ms: it has waited for the rank that came later";
    return;
  }
  EXPECT_EQ(result, tuttiTimeout) << words;
  if (quiet) {
    // The load of the last minute, as patience() knows it, does not tell what other programs do at this moment.
    EXPECT_LE(ms, limit_ms + 50 * patience() + took.starved_ms) << words;
  }
}

TEST_P(LatePeer, IsWaitedForAsLongAsTheLimitSays) {
  cpu_set_t cpus;
  ASSERT_EQ(::sched_getaffinity(0, sizeof cpus, &cpus), 0);
  const Hogs hogs(GetParam().hogs * CPU_COUNT(&cpus));
  const Team team{
      .ranks = ranks,
      .environment = {std::string("TUTTI_TRANSPORT=") + GetParam().transport, "TUTTI_DEBUG=NONE", "TUTTI_TUNE=off"},
      .limit = std::chrono::seconds(GetParam().hogs > 0 ? 1'000 : 180)};
  launch_ranks(team, [](Seat& seat) {
    constexpr int last = ranks - 1;
    std::uint64_t number = 0;
    for (int nth = 0; nth < all_calls; ++nth)
      for (const std::size_t bytes : {std::size_t{400}, std::size_t{4'000'000}}) {
        SCOPED_TRACE(::testing::Message() << "call " << nth << " of " << bytes << " bytes, rank " << seat.rank());
        const auto comm = seat.init_one();
        ASSERT_NE(comm, nullptr);
        EXPECT_TRUE(ok(tuttiBarrier(comm, nullptr)));
        if (seat.rank() == 0) {
          EXPECT_TRUE(ok(tuttiCommSetTimeout(comm, limit_ms)));
        }
        ASSERT_TRUE(seat.meet());
        ++number;
        if (seat.rank() == last) {
          for (std::size_t other = 0; other < last; ++other)
            ASSERT_TRUE(seat.board().wait_for(begun_word + other, number));
          EXPECT_FALSE(seat.board().wait_for(never, 1, std::chrono::milliseconds(late_ms)));
        }
        Clock::time_point begun_at;
        const double starved_before_ms = starved_ms();
        const auto result = make({.call = nth, .bytes = bytes, .number = number}, seat, comm, begun_at);
        const bool came = seat.board().word(begun_word + last).load() >= number;
        const Took took{.ms = std::chrono::duration<double, std::milli>(Clock::now() - begun_at).count(),
                        .starved_ms = starved_ms() - starved_before_ms};
        const std::string words = tuttiGetLastError(comm);
        if (seat.rank() == 0) {
          expect_in_time(*result, took, came, GetParam().hogs == 0, words);
        } else if (result && *result != tuttiSuccess) {
          EXPECT_EQ(*result, tuttiTimeout) << "one event, one code: " << words;
        }
        ASSERT_TRUE(seat.meet());
        (void)tuttiCommAbort(comm);
      }
  });
}

}  // namespace
}  // namespace tutti::testing
