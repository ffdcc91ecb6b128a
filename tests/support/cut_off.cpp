#include "support/cut_off.h"

#include <chrono>

namespace tutti::testing {
namespace {

using Clock = std::chrono::steady_clock;

/// Words of the board.
enum Word : std::size_t { under_way, done_to };

}  // namespace

bool note_under_way(Workers& workers) {
  if (!workers.board().wait_for(under_way, 20)) return false;
  workers.board().raise(done_to, static_cast<std::uint64_t>(Clock::now().time_since_epoch().count()));
  return true;
}

void call_until_told(Seat& seat, const NetNamespaces& net, int hosts, double limit_s, const std::string& named,
                     Memory memory) {
  const auto comm = start_on(seat, net, seat.rank() % hosts);
  ASSERT_NE(comm, nullptr);
  Buffer buffer(memory, 1 << 20);
  tuttiResult_t result = tuttiSuccess;
  for (std::uint64_t call = 1; result == tuttiSuccess; ++call) {
    result = tuttiAllReduce(buffer.data(), buffer.data(), call % 2 == 0 ? 1 << 18 : 2, tuttiFloat32, tuttiSum, comm,
                            nullptr);
    if (seat.rank() == 0) seat.board().raise(under_way, call);
  }
  const auto told = Clock::now();
  const std::string words = tuttiGetLastError(comm);
  ASSERT_TRUE(seat.board().wait_for(done_to, 1));
  const auto at = Clock::time_point(Clock::duration(static_cast<Clock::rep>(seat.board().word(done_to).load())));
  EXPECT_LT(std::chrono::duration<double>(told - at).count(), limit_s * patience()) << words;
  EXPECT_EQ(result, tuttiRemoteError) << words;
  EXPECT_NE(words.find(named), std::string::npos) << words;
  EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  EXPECT_LT(std::chrono::duration<double>(Clock::now() - told).count(), leave_limit_s * patience());
}

}  // namespace tutti::testing
