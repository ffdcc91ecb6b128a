// A receive from any source while ranks leave or end: it waits as long as somebody is left who may send.
#include <unistd.h>

#include <string>
#include <thread>

#include <fmt/format.h>

#include "support/ends.h"

namespace tutti::testing {
namespace {

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
      tuttiRequest_t request = nullptr;
      if (seat.rank() == 0) {
        ASSERT_TRUE(ok(tuttiIrecv(&x, 1, tuttiInt32, TUTTI_ANY_SOURCE, 0, comm, &request)));
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
