// A thread that is cancelled in a call finishes the call; process and communicator live on.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <ostream>
#include <string>
#include <vector>

#include "support/launch_ranks.h"

namespace {

using namespace tutti::testing;

constexpr std::size_t cancelled = 0;  // word: rank 0's thread was told to end

struct Work {
  const char* transport;
  std::size_t count;
};

void PrintTo(const Work& work, std::ostream* out) {
  *out << work.transport << ' ' << work.count;
}

/// What the cancelled thread does; the others of its process look at it.
struct Doomed {
  tuttiComm_t comm = nullptr;
  std::vector<float> data;
  std::atomic<bool> begun = false;
  tuttiResult_t result = tuttiInProgress;
};

void* call_once(void* given) {
  auto& doomed = *static_cast<Doomed*>(given);
  doomed.begun = true;
  doomed.result = tuttiAllReduce(doomed.data.data(), doomed.data.data(), doomed.data.size(), tuttiFloat32, tuttiSum,
                                 doomed.comm, nullptr);
  ::pthread_testcancel();
  return nullptr;
}

void all_reduce(tuttiComm_t comm, std::vector<float>& data) {
  ASSERT_TRUE(ok(tuttiAllReduce(data.data(), data.data(), data.size(), tuttiFloat32, tuttiSum, comm, nullptr)));
}

/// Cancelled while its peer has not come, which then comes.
void cancel_one(Seat& seat, std::size_t count) {
  const auto comm = seat.init_one();
  ASSERT_NE(comm, nullptr);
  std::vector<float> data(count, 1);
  all_reduce(comm, data);  // so that what a first call opens is open
  if (seat.rank() == 0) {
    Doomed doomed{.comm = comm, .data = std::vector<float>(count, 3)};
    pthread_t thread;
    ASSERT_EQ(::pthread_create(&thread, nullptr, call_once, &doomed), 0);
    while (!doomed.begun) {
    }
    ASSERT_EQ(::pthread_cancel(thread), 0);
    // It is to fall asleep over it; nothing else is waited for here.
    EXPECT_FALSE(seat.board().wait_for(cancelled, 1, std::chrono::milliseconds(100)));
    seat.board().raise(cancelled, 1);
    void* ended = nullptr;
    ASSERT_EQ(::pthread_join(thread, &ended), 0);
    EXPECT_EQ(ended, PTHREAD_CANCELED) << "behind the call it was to end";
    EXPECT_EQ(doomed.result, tuttiSuccess) << tuttiGetLastError(comm);
    EXPECT_EQ(doomed.data, std::vector<float>(count, 8));
  } else {
    ASSERT_TRUE(seat.board().wait_for(cancelled, 1));
    data.assign(count, 5);
    all_reduce(comm, data);
    EXPECT_EQ(data, std::vector<float>(count, 8));
  }
  data.assign(count, 1);
  all_reduce(comm, data);
  EXPECT_EQ(data, std::vector<float>(count, 2)) << "and it goes on";
  EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
}

class Cancel : public ::testing::TestWithParam<Work> {};

/// With a log, too, that tells of the wait.
TEST_P(Cancel, ACallIsFinished) {
  launch_ranks({.ranks = 2,
                .environment = {std::string("TUTTI_TRANSPORT=") + GetParam().transport, "TUTTI_DEBUG=WARN",
                                "TUTTI_DEBUG_FILE=/dev/null", "TUTTI_STALL_REPORT_MS=1"}},
               [](Seat& seat) { cancel_one(seat, GetParam().count); });
}

INSTANTIATE_TEST_SUITE_P(Works, Cancel,
                         ::testing::Values(Work{"socket", 1}, Work{"socket", 300'000}, Work{"rdma", 1},
                                           Work{"rdma", 300'000}, Work{"auto", 1}, Work{"slots", 300'000}),
                         [](const auto& test) {
                           return std::string(test.param.transport) + "_" + std::to_string(test.param.count);
                         });

}  // namespace
