// The callback of a config: a thread that waits runs it, so that a peer which needs it first gets on; others do not.
#include <array>
#include <atomic>

#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

constexpr std::size_t came = 1;

/// Of one rank: how often its callback ran; what it raises there lets a peer go on.
struct Meanwhile {
  Board* board = nullptr;
  std::atomic<int> calls{0};

  static void run(void* context) {
    auto& self = *static_cast<Meanwhile*>(context);
    if (self.calls.fetch_add(1) == 0) self.board->raise(came, 1);
  }
  tuttiConfig_t config() {
    tuttiConfig_t made = TUTTI_CONFIG_INITIALIZER;
    made.progress = &Meanwhile::run;
    made.progressContext = this;
    return made;
  }
};

int all_reduce_one(tuttiComm_t comm, tuttiStream_t stream = nullptr) {
  int sum = 1;
  EXPECT_TRUE(ok(tuttiAllReduce(&sum, &sum, 1, tuttiInt32, tuttiSum, comm, stream)));
  if (stream != nullptr) {
    EXPECT_TRUE(ok(tuttiStreamSynchronize(stream)));
  }
  return sum;
}

class WhileWaiting : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transports, WhileWaiting, ::testing::Values("auto", "slots", "socket"),
                         [](const auto& test) { return std::string(test.param); });

std::vector<std::string> transport(const char* name) {
  return {std::string("TUTTI_TRANSPORT=") + name};
}

/// Rank 1 comes only after rank 0, which waits in the call, has run its callback.
TEST_P(WhileWaiting, ABlockedCallRunsTheCallback) {
  launch_ranks({.ranks = 2, .environment = transport(GetParam())}, [](Seat& seat) {
    Meanwhile meanwhile{.board = &seat.board()};
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    tuttiComm_t made = nullptr;
    const auto config = meanwhile.config();
    ASSERT_TRUE(ok(tuttiCommSplit(comm, 0, 0, &made, seat.rank() == 0 ? &config : nullptr)));
    seat.board().word(came).store(0);
    meanwhile.calls.store(0);
    ASSERT_TRUE(seat.meet());
    if (seat.rank() == 1) {
      ASSERT_TRUE(seat.board().wait_for(came, 1));
    }
    EXPECT_EQ(all_reduce_one(made), 2);
    if (seat.rank() == 0) {
      EXPECT_GT(meanwhile.calls.load(), 0);
    }
    EXPECT_TRUE(ok(tuttiCommDestroy(made)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST_P(WhileWaiting, ABlockedStartRunsTheCallback) {
  launch_ranks({.ranks = 2, .environment = transport(GetParam())}, [](Seat& seat) {
    Meanwhile meanwhile{.board = &seat.board()};
    const auto config = meanwhile.config();
    if (seat.rank() == 1) {
      ASSERT_TRUE(seat.board().wait_for(came, 1));
    }
    const auto comm = seat.init_one(seat.rank() == 0 ? &config : nullptr);
    ASSERT_NE(comm, nullptr);
    EXPECT_EQ(all_reduce_one(comm), 2);
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// A group is a call as well; a communicator made from another one keeps the callback.
TEST_P(WhileWaiting, GroupsAndChildrenRunItToo) {
  launch_ranks({.ranks = 2, .environment = transport(GetParam())}, [](Seat& seat) {
    Meanwhile meanwhile{.board = &seat.board()};
    const auto config = meanwhile.config();
    const auto parent = seat.init_one(seat.rank() == 0 ? &config : nullptr);
    ASSERT_NE(parent, nullptr);
    tuttiComm_t comm = nullptr;
    ASSERT_TRUE(ok(tuttiCommSplit(parent, 0, 0, &comm, nullptr)));
    ASSERT_TRUE(seat.meet());
    seat.board().word(came).store(0);
    meanwhile.calls.store(0);
    ASSERT_TRUE(seat.meet());
    if (seat.rank() == 1) {
      ASSERT_TRUE(seat.board().wait_for(came, 1));
    }
    const int mine = seat.rank();
    int theirs = -1;
    ASSERT_TRUE(ok(tuttiGroupStart()));
    ASSERT_TRUE(ok(tuttiSend(&mine, 1, tuttiInt32, 1 - seat.rank(), comm, nullptr)));
    ASSERT_TRUE(ok(tuttiRecv(&theirs, 1, tuttiInt32, 1 - seat.rank(), comm, nullptr)));
    EXPECT_TRUE(ok(tuttiGroupEnd()));
    EXPECT_EQ(theirs, 1 - seat.rank());
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    EXPECT_TRUE(ok(tuttiCommDestroy(parent)));
  });
}

/// A stream's thread is one of the library: it waits without the callback, until the program's thread waits too.
TEST(WhileWaitingOnStreams, TheThreadOfAStreamDoesNot) {
  launch_ranks({.ranks = 2}, [](Seat& seat) {
    Meanwhile meanwhile{.board = &seat.board()};
    const auto config = meanwhile.config();
    const auto comm = seat.init_one(&config);
    ASSERT_NE(comm, nullptr);
    tuttiStream_t stream = nullptr;
    ASSERT_TRUE(ok(tuttiStreamCreate(&stream)));
    ASSERT_TRUE(seat.meet());
    meanwhile.calls.store(0);
    for (int time = 0; time < 200; ++time) EXPECT_EQ(all_reduce_one(comm, stream), 2);
    EXPECT_EQ(meanwhile.calls.load(), 0);
    EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// A config of a program that was built before there was a callback ends before it.
TEST(WhileWaitingConfig, AnOlderConfigHasNone) {
  launch_ranks({.ranks = 2}, [](Seat& seat) {
    Meanwhile meanwhile{.board = &seat.board()};
    auto config = meanwhile.config();
    config.size = offsetof(tuttiConfig_t, progress);
    const auto comm = seat.init_one(&config);
    ASSERT_NE(comm, nullptr);
    for (int time = 0; time < 200; ++time) EXPECT_EQ(all_reduce_one(comm), 2);
    EXPECT_EQ(meanwhile.calls.load(), 0);
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
