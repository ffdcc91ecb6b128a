// Messages with tags that no receive takes: an error at the end of the communicator, of any length and on every wire;
// and never one for an orderly program.
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "support/setup.h"

namespace tutti::testing {
namespace {

constexpr int tag = 4;
constexpr std::size_t waiting_bytes_min = 16 * 1024 + 1;  // the send waits for its receive

/// What the receiver does beside not receiving it.
enum class Look { nothing, probe, cancel };

struct Left {
  std::size_t bytes = 0;
  Look look = Look::nothing;
  bool receiver_first = false;
};

/// Rank 0 sends rank 1, or itself, a message.
class Unreceived : public ::testing::TestWithParam<Setup> {
 protected:
  static void run(const std::function<void(Seat&)>& body) {
    Team team = team_of(GetParam());
    team.environment.emplace_back("TUTTI_DEBUG=NONE");
    launch_ranks(team, body);
  }
  static bool by_wire() {
    const std::string_view transport = GetParam().transport;
    return transport == "socket" || transport == "rdma";
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, Unreceived,
                         ::testing::Values(Setup{1, Layout::threads, "auto"}, Setup{2, Layout::processes, "auto"},
                                           Setup{3, Layout::threads, "auto"}, Setup{2, Layout::processes, "slots"},
                                           Setup{2, Layout::processes, "cma"}, Setup{2, Layout::processes, "mapped"},
                                           Setup{4, Layout::pairs, "auto"}, Setup{3, Layout::processes, "socket"},
                                           Setup{4, Layout::pairs, "socket"}, Setup{2, Layout::processes, "rdma"}),
                         name_of_setup);

/// Opens the connection, so that the next message needs no help from its receiver to leave; and what was sent before
/// has come when it has.
void pass_one(const Seat& seat, tuttiComm_t comm) {
  int x = 0;
  tuttiRequest_t request = nullptr;
  if (seat.rank() == 0) {
    ASSERT_TRUE(ok(tuttiIsend(&x, 1, tuttiInt32, 1, tag + 1, comm, &request)));
  } else if (seat.rank() == 1) {
    ASSERT_TRUE(ok(tuttiIrecv(&x, 1, tuttiInt32, 0, tag + 1, comm, &request)));
  }
  ASSERT_TRUE(ok(tuttiWait(&request, nullptr)));
}

void cancel_one(tuttiComm_t comm) {
  int x = 0, cancelled = 0;
  tuttiRequest_t request = nullptr;
  ASSERT_TRUE(ok(tuttiIrecv(&x, 1, tuttiInt32, 0, tag, comm, &request)));
  ASSERT_TRUE(ok(tuttiCancel(request, &cancelled)));
  EXPECT_EQ(cancelled, 1);
  ASSERT_TRUE(ok(tuttiWait(&request, nullptr)));
}

/// Ranks that have nothing to do with the message leave before the others, and those one after the other.
tuttiResult_t destroy_in_turn(Seat& seat, tuttiComm_t comm, bool last) {
  const int meetings_before = seat.rank() > 1 ? 0 : (last ? 2 : 1);
  for (int meeting = 0; meeting < meetings_before; ++meeting) EXPECT_TRUE(seat.meet());
  const auto left = tuttiCommDestroy(comm);
  for (int meeting = meetings_before; meeting < 2; ++meeting) EXPECT_TRUE(seat.meet());
  return left;
}

void leave_one(Seat& seat, const Left& left, bool by_wire) {
  const auto comm = seat.init_one();
  ASSERT_NE(comm, nullptr);
  const bool alone = seat.ranks() == 1, sends = seat.rank() == 0, receives = seat.rank() == 1 || alone;
  const bool last = !alone && sends == left.receiver_first, waits = left.bytes >= waiting_bytes_min && !alone;
  if (!alone) pass_one(seat, comm);
  if (receives && left.look == Look::cancel) cancel_one(comm);
  ASSERT_TRUE(seat.meet());
  const std::vector<std::byte> data(left.bytes + 1);
  tuttiRequest_t request = nullptr;
  if (sends) {
    ASSERT_TRUE(ok(tuttiIsend(data.data(), left.bytes, tuttiUint8, 1 % seat.ranks(), tag, comm, &request)));
  }
  if (!waits) {
    ASSERT_TRUE(ok(tuttiWait(&request, nullptr)));
  } else {
    pass_one(seat, comm);
  }
  ASSERT_TRUE(seat.meet());
  if (receives && left.look == Look::probe) {
    ASSERT_TRUE(ok(tuttiProbe(TUTTI_ANY_SOURCE, tag, comm, nullptr)));
  }
  const auto result = destroy_in_turn(seat, comm, last);
  if (!receives && (!sends || !last)) {
    EXPECT_TRUE(ok(result)) << "the receiver may still want it";
  } else if (receives || !by_wire || result != tuttiSuccess) {  // over a wire the news may come too late
    EXPECT_TRUE(fails(result, tuttiInvalidUsage, fmt::format("rank 0 sent {} x uint8 with tag 4", left.bytes)));
  }
  if (request != nullptr) {
    EXPECT_NE(tuttiWait(&request, nullptr), tuttiSuccess);
  }
}

TEST_P(Unreceived, IsAnErrorAtTheEndOnEveryWire) {
  run([](Seat& seat) {
    for (const std::size_t bytes : {0UL, 4096UL, 16384UL, 1UL << 20})
      for (const Look look : {Look::nothing, Look::probe, Look::cancel})
        for (const bool receiver_first : {true, false}) {
          SCOPED_TRACE(fmt::format("{} bytes, look {}, {} first, rank {}", bytes, static_cast<int>(look),
                                   receiver_first ? "receiver" : "sender", seat.rank()));
          leave_one(seat, {.bytes = bytes, .look = look, .receiver_first = receiver_first}, by_wire());
          if (HasFailure()) return;
        }
  });
}

/// Its sender has left long before.
TEST_P(Unreceived, IsNotWhatIsReceivedLate) {
  if (GetParam().ranks == 1) GTEST_SKIP() << "needs a peer";
  run([](Seat& seat) {
    for (const std::size_t bytes : {0UL, 4096UL, 16384UL}) {
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      pass_one(seat, comm);
      std::vector<std::byte> sent(bytes + 1, std::byte{7}), got(bytes + 1, std::byte{7});
      tuttiRequest_t request = nullptr;
      if (seat.rank() == 0) {
        ASSERT_TRUE(ok(tuttiIsend(sent.data(), bytes, tuttiUint8, 1, tag, comm, &request)));
        ASSERT_TRUE(ok(tuttiWait(&request, nullptr)));
      }
      if (seat.rank() != 1) {
        EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      }
      ASSERT_TRUE(seat.meet());
      if (seat.rank() != 1) continue;
      std::fill_n(got.begin(), bytes, std::byte{0});
      ASSERT_TRUE(ok(tuttiIrecv(got.data(), bytes, tuttiUint8, 0, tag, comm, &request)));
      ASSERT_TRUE(ok(tuttiWait(&request, nullptr)));
      EXPECT_EQ(sent, got);
      EXPECT_TRUE(ok(tuttiCommFinalize(comm)));
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    }
  });
}

/// A rank that has never asked for a message hears of it all the same.
TEST_P(Unreceived, IsNoticedByARankThatNeverReceives) {
  if (GetParam().ranks == 1 || by_wire()) GTEST_SKIP() << "needs a peer that shares memory";
  run([](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    tuttiRequest_t request = nullptr;
    if (seat.rank() == 0) {
      ASSERT_TRUE(ok(tuttiIsend("x", 1, tuttiInt8, 1, tag, comm, &request)));
      ASSERT_TRUE(ok(tuttiWait(&request, nullptr)));
    }
    ASSERT_TRUE(seat.meet());
    const auto result = destroy_in_turn(seat, comm, /*last=*/seat.rank() == 0);
    if (seat.rank() > 1) {
      EXPECT_TRUE(ok(result));
    } else {
      EXPECT_TRUE(fails(result, tuttiInvalidUsage, "rank 0 sent 1 x int8 with tag 4, which rank 1 has not received"));
    }
  });
}

}  // namespace
}  // namespace tutti::testing
