// A program closes all descriptors from 3 on, as some do before they start children: its rank is the one that fails,
// and says why, on all ranks.
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "support/launch_ranks.h"
#include "support/service_time.h"

namespace tutti::testing {
namespace {

constexpr int odd = 1;
constexpr std::size_t never = 1;  // a word of the board that nobody raises

class ClosedDescriptors : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transports, ClosedDescriptors, ::testing::Values("auto", "cma", "slots", "socket"),
                         [](const auto& transport) { return std::string(transport.param); });

TEST_P(ClosedDescriptors, AreTheFaultOfWhoClosedThem) {
  const Team team{.ranks = 3, .environment = {std::string("TUTTI_TRANSPORT=") + GetParam(), "TUTTI_DEBUG=NONE"}};
  launch_ranks(team, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    float value = 1;
    ASSERT_TRUE(ok(tuttiAllReduce(&value, &value, 1, tuttiFloat32, tuttiMax, comm, nullptr)));
    ASSERT_TRUE(seat.meet());
    if (seat.rank() == odd) ::close_range(3, ~0u, 0);
    tuttiResult_t result = tuttiSuccess;
    while (result == tuttiSuccess) result = tuttiAllReduce(&value, &value, 1, tuttiFloat32, tuttiMax, comm, nullptr);
    const std::string words = tuttiGetLastError(comm);
    EXPECT_NE(words.find("[peer 1]"), std::string::npos) << words;
    EXPECT_EQ(words.find("rank 1/3"), words.find("rank ")) << words;
    if (seat.rank() == odd) {
      EXPECT_NE(words.find("has lost its descriptors"), std::string::npos) << words;
    }
    ASSERT_TRUE(seat.meet());
    const double before_s = service_seconds();
    EXPECT_FALSE(seat.board().wait_for(never, 1, std::chrono::milliseconds(1'000)));
    EXPECT_LT(service_seconds() - before_s, 0.3) << "the service thread has nothing to do";
    EXPECT_TRUE(ok(tuttiCommAbort(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
