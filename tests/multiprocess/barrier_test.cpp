// Barriers: nobody is let through before all have come, whoever of them is late.
#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <tuple>

#include "support/launch_ranks.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

/// What one rank does around its barriers. The word of the board with the number of a rank says how often it has come.
class Visitor {
 public:
  explicit Visitor(Seat& seat) : seat_(seat), random_(static_cast<unsigned>(seat.rank())) {}

  /// Late by chance, sometimes by so much that all others are there.
  void come() {
    const unsigned turns = random_() % 8 == 0 ? 200'000 : random_() % 3'000;
    for (std::atomic<unsigned> turn = 0; turn < turns; ++turn) {
    }
    seat_.board().word(static_cast<std::size_t>(seat_.rank())).store(++round_);
  }
  /// It is through.
  void look_round() {
    ++times_through_;
    for (int rank = 0; rank < seat_.ranks(); ++rank) {
      const std::uint64_t come = seat_.board().word(static_cast<std::size_t>(rank)).load();
      if (come < round_ && too_early_.empty())
        too_early_ = "at barrier " + std::to_string(round_) + ", when rank " + std::to_string(rank) + " had come to " +
                     std::to_string(come);
    }
  }
  std::uint64_t times_through() const { return times_through_; }
  /// "" or when it was let through too early.
  const std::string& too_early() const { return too_early_; }

 private:
  Seat& seat_;
  std::mt19937 random_;
  std::uint64_t round_ = 0;
  std::uint64_t times_through_ = 0;
  std::string too_early_;
};

class Barrier : public ::testing::TestWithParam<std::tuple<const char*, bool>> {};
INSTANTIATE_TEST_SUITE_P(Ways, Barrier,
                         ::testing::Combine(::testing::Values("auto", "slots", "cma", "socket"), ::testing::Bool()),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) +
                                  (std::get<1>(test.param) ? "_stream" : "_blocking");
                         });

/// Sometimes in a group, where it has a plan, while others make it by themselves.
tuttiResult_t make_barrier(int round, const Seat& seat, tuttiComm_t comm, tuttiStream_t stream) {
  if ((round + seat.rank()) % 3 > 0) return tuttiBarrier(comm, stream);
  EXPECT_TRUE(ok(tuttiGroupStart()));
  EXPECT_TRUE(ok(tuttiBarrier(comm, stream)));
  return tuttiGroupEnd();
}

/// All at once: on a stream, a rank comes when what was queued before has ended.
void queue_all(int rounds, Visitor& visitor, const Seat& seat, tuttiComm_t comm, tuttiStream_t stream) {
  const auto come = [](void* who, tuttiResult_t) { static_cast<Visitor*>(who)->come(); };
  const auto look_round = [](void* who, tuttiResult_t) { static_cast<Visitor*>(who)->look_round(); };
  for (int round = 0; round < rounds; ++round) {
    ASSERT_TRUE(ok(tuttiStreamAddCallback(stream, come, &visitor)));
    ASSERT_TRUE(ok(make_barrier(round, seat, comm, stream)));
    ASSERT_TRUE(ok(tuttiStreamAddCallback(stream, look_round, &visitor)));
  }
}

TEST_P(Barrier, LetsNobodyThroughBeforeAllHaveCome) {
  const auto [transport, on_stream] = GetParam();
  const int rounds = share_of(100);
  const auto body = [&, streams = on_stream](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    Visitor visitor(seat);
    if (streams) {
      tuttiStream_t stream = nullptr;
      ASSERT_TRUE(ok(tuttiStreamCreate(&stream)));
      queue_all(rounds, visitor, seat, comm, stream);
      EXPECT_TRUE(ok(tuttiStreamSynchronize(stream)));
      EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
    } else {
      for (int round = 0; round < rounds; ++round) {
        visitor.come();
        ASSERT_TRUE(ok(make_barrier(round, seat, comm, nullptr)));
        visitor.look_round();
      }
    }
    EXPECT_EQ(visitor.times_through(), static_cast<std::uint64_t>(rounds));
    EXPECT_EQ(visitor.too_early(), "");
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  };
  launch_ranks({.ranks = 5, .environment = {std::string("TUTTI_TRANSPORT=") + transport}}, body);
}

}  // namespace
}  // namespace tutti::testing
