// Abort and destroy return soon whatever is under way; all others hear of it; and no late hand touches what was given
// back.
#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "support/call.h"
#include "support/launch_ranks.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

using Clock = std::chrono::steady_clock;
const std::vector<std::string> quiet = {"TUTTI_DEBUG=NONE"};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The promise is a second.
void expect_soon(Clock::time_point start, const char* what) {
  EXPECT_LT(seconds_since(start), 1.5 * patience()) << what;
}

/// Things a rank can be in the midst of while the others do not come.
enum class Busy { nothing, small, window, heap, barrier, send, receive, group, queued };
constexpr std::array busy_names = {"Nothing", "Small",   "Window", "Heap",  "Barrier",
                                   "Send",    "Receive", "Group",  "Queued"};

/// Waits in vain, until somebody ends it.
tuttiResult_t wait_in_vain(Busy busy, tuttiComm_t comm, int rank, int ranks, tuttiStream_t stream) {
  const int peer = (rank + 1) % ranks;
  Buffer buffer(busy == Busy::heap || busy == Busy::send ? Memory::heap : Memory::mapped, 4 << 20);
  const auto sum = [&](std::size_t bytes, tuttiStream_t on) {
    return tuttiAllReduce(buffer.data(), buffer.data(), bytes / 4, tuttiFloat32, tuttiSum, comm, on);
  };
  switch (busy) {
    case Busy::nothing: return tuttiCommFinalize(comm);
    case Busy::small: return sum(64, nullptr);
    case Busy::window:
    case Busy::heap: return sum(4 << 20, nullptr);
    case Busy::barrier: return tuttiBarrier(comm, nullptr);
    case Busy::send: return tuttiSend(buffer.data(), 4 << 20, tuttiUint8, peer, comm, nullptr);
    case Busy::receive: return tuttiRecv(buffer.data(), 4 << 20, tuttiUint8, peer, comm, nullptr);
    case Busy::group: {
      EXPECT_TRUE(ok(tuttiGroupStart()));
      (void)sum(4 << 20, nullptr);  // refused, if it is over already: then the end says so
      (void)tuttiRecv(buffer.data(), 9, tuttiUint8, peer, comm, nullptr);
      return tuttiGroupEnd();
    }
    case Busy::queued: {
      const auto refused = sum(4 << 20, stream);
      (void)sum(64, stream);
      const auto failed = tuttiStreamSynchronize(stream);
      return failed == tuttiSuccess ? refused : failed;
    }
  }
  return tuttiInternalError;
}

class Abort : public ::testing::TestWithParam<std::tuple<Busy, Layout>> {
 protected:
  const Busy busy = std::get<0>(GetParam());
  const Layout layout = std::get<1>(GetParam());
};
INSTANTIATE_TEST_SUITE_P(States, Abort,
                         ::testing::Combine(::testing::Values(Busy::nothing, Busy::small, Busy::window, Busy::heap,
                                                              Busy::barrier, Busy::send, Busy::receive, Busy::group,
                                                              Busy::queued),
                                            ::testing::Values(Layout::threads, Layout::processes)),
                         [](const auto& test) {
                           return std::string(busy_names[static_cast<std::size_t>(std::get<0>(test.param))]) + "_" +
                                  name(std::get<1>(test.param));
                         });

/// Rank 0 waits in a call; another thread of its process aborts.
TEST_P(Abort, EndsAnyCallFromAnotherThread) {
  launch_ranks({.ranks = 3, .layout = layout, .environment = quiet}, [this](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    if (seat.rank() == 0) {
      tuttiStream_t stream = nullptr;
      ASSERT_TRUE(ok(tuttiStreamCreate(&stream)));
      std::thread aborter([&] {
        ASSERT_TRUE(seat.board().wait_for(0, 1));
        // Any moment will do: also the one before the call has begun.
        for (std::uint64_t i = seat.board().word(1).load(); i > 0; --i) std::this_thread::yield();
        const auto start = Clock::now();
        EXPECT_TRUE(ok(tuttiCommAbort(comm)));
        expect_soon(start, "abort");
      });
      seat.board().word(1).store(mix(static_cast<std::uint64_t>(busy)) % 2000);
      seat.board().raise(0, 1);
      const auto result = wait_in_vain(busy, comm, 0, 3, stream);
      if (busy != Busy::nothing) {
        EXPECT_NE(result, tuttiSuccess);
      }
      aborter.join();
      EXPECT_TRUE(fails(tuttiBarrier(comm, nullptr), tuttiInvalidArgument, "comm"));
      EXPECT_EQ(tuttiStreamDestroy(stream), tuttiSuccess);
    } else {
      // Something that does not meet what rank 0 does.
      const auto result = busy == Busy::send ? tuttiRecv(&seat, 1, tuttiUint8, 3 - seat.rank(), comm, nullptr)
                                             : tuttiRecv(&seat, 1, tuttiUint8, 0, comm, nullptr);
      EXPECT_TRUE(fails(result, tuttiRemoteError, "rank 0", comm));
      const auto start = Clock::now();
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      expect_soon(start, "destroy");
    }
    ASSERT_TRUE(seat.meet());
  });
}

/// The others are in the midst of a call that the aborting rank never joins.
TEST_P(Abort, EndsTheCallsOfAllOthers) {
  if (busy == Busy::nothing) return;
  launch_ranks({.ranks = 3, .layout = layout, .environment = quiet}, [this](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    if (seat.rank() == 0) {
      EXPECT_TRUE(ok(tuttiCommAbort(comm)));
      ASSERT_TRUE(seat.meet());
      return;
    }
    tuttiStream_t stream = nullptr;
    ASSERT_TRUE(ok(tuttiStreamCreate(&stream)));
    EXPECT_TRUE(
        fails(wait_in_vain(busy, comm, seat.rank(), 3, stream), tuttiRemoteError, "aborted the communicator", comm));
    const auto start = Clock::now();
    EXPECT_TRUE(ok(seat.rank() == 1 ? tuttiCommDestroy(comm) : tuttiCommAbort(comm)));
    expect_soon(start, "destroy");
    EXPECT_EQ(tuttiStreamDestroy(stream), tuttiSuccess);
    ASSERT_TRUE(seat.meet());
  });
}

/// After the error the buffers are the caller's again: whatever is in them stays.
class GivenBack : public ::testing::TestWithParam<std::tuple<Layout, Memory, Kind, const char*>> {
 protected:
  const Layout layout = std::get<0>(GetParam());
  const Memory memory = std::get<1>(GetParam());
  const Kind kind = std::get<2>(GetParam());
  const char* const transport = std::get<3>(GetParam());
};
const auto given_back_kinds = ::testing::Values(Kind::all_reduce, Kind::all_gather, Kind::all_to_all);
std::string name_of(const ::testing::TestParamInfo<GivenBack::ParamType>& test) {
  const auto [layout, memory, kind, transport] = test.param;
  return std::string(name(layout)) + (memory == Memory::mapped ? "_mapped_" : "_heap_") + name(kind) + "_" + transport;
}
INSTANTIATE_TEST_SUITE_P(Layouts, GivenBack,
                         ::testing::Combine(::testing::Values(Layout::threads, Layout::processes, Layout::pairs),
                                            ::testing::Values(Memory::mapped, Memory::heap), given_back_kinds,
                                            ::testing::Values("auto")),
                         name_of);
/// Devices read blocks where they lie in their senders' memory; the fake ones read them late.
INSTANTIATE_TEST_SUITE_P(Devices, GivenBack,
                         ::testing::Combine(::testing::Values(Layout::processes), ::testing::Values(Memory::mapped),
                                            given_back_kinds, ::testing::Values("rdma")),
                         name_of);

/// Where an abort closes connections, too.
INSTANTIATE_TEST_SUITE_P(Sockets, GivenBack,
                         ::testing::Combine(::testing::Values(Layout::processes), ::testing::Values(Memory::heap),
                                            ::testing::Values(Kind::all_reduce), ::testing::Values("socket")),
                         name_of);

std::vector<std::string> environment_of(const char* transport) {
  return {"TUTTI_DEBUG=NONE", std::string("TUTTI_TRANSPORT=") + transport, "FAKE_VERBS_SEED=7"};
}

tuttiResult_t call(Kind kind, Buffer& in, Buffer& out, int ranks, tuttiComm_t comm) {
  const std::size_t bytes = out.bytes();
  const std::size_t block = bytes / static_cast<std::size_t>(ranks);
  switch (kind) {
    case Kind::all_reduce: return tuttiAllReduce(in.data(), out.data(), bytes, tuttiUint8, tuttiSum, comm, nullptr);
    case Kind::all_gather: return tuttiAllGather(in.data(), out.data(), block, tuttiUint8, comm, nullptr);
    default: return tuttiAllToAll(in.data(), out.data(), block, tuttiUint8, comm, nullptr);
  }
}

/// Rank 0 gives up before rank 2 has come; rank 1 and 2 then think that all are there.
TEST_P(GivenBack, BuffersAreNotWrittenByThoseWhoComeLater) {
  launch_ranks({.ranks = 3, .layout = layout, .environment = environment_of(transport)}, [this](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    Buffer in(memory, 3 << 19);
    Buffer out(memory, 3 << 19);
    if (seat.rank() == 0) {
      std::thread aborter([&] {
        ASSERT_TRUE(seat.board().wait_for(0, 1));
        EXPECT_TRUE(ok(tuttiCommAbort(comm)));
      });
      seat.board().raise(0, 1);
      EXPECT_NE(call(kind, in, out, 3, comm), tuttiSuccess);
      aborter.join();
      in.poison();
      out.poison();
      seat.board().raise(1, 1);
    } else {
      if (seat.rank() == 2) {
        ASSERT_TRUE(seat.board().wait_for(1, 1));
      }
      EXPECT_TRUE(fails(call(kind, in, out, 3, comm), tuttiRemoteError, "aborted the communicator", comm));
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    }
    ASSERT_TRUE(seat.meet());
    if (seat.rank() == 0) {
      EXPECT_TRUE(out.poisoned(0, out.bytes()));
      EXPECT_TRUE(out.guards_intact());
    }
    ASSERT_TRUE(seat.meet());
  });
}

/// Rank 0 gives up at some moment in the midst of it.
TEST_P(GivenBack, BuffersAreNotWrittenByThoseInTheMidst) {
  launch_ranks({.ranks = 3, .layout = layout, .environment = environment_of(transport)}, [this](Seat& seat) {
    std::mt19937_64 random(static_cast<std::uint64_t>(kind) * 7);
    for (int round = 0; round < share_of(8); ++round) {
      seat.doing("round " + std::to_string(round));
      const auto delay = random() % 3'000'000;
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      Buffer in(memory, 3 << 19);
      Buffer out(memory, 3 << 19);
      std::thread aborter;
      if (seat.rank() == 0)
        aborter = std::thread([&] {
          const auto start = Clock::now();
          while (Clock::now() - start < std::chrono::nanoseconds(delay)) std::this_thread::yield();
          EXPECT_TRUE(ok(tuttiCommAbort(comm)));
        });
      tuttiResult_t result = tuttiSuccess;
      while (result == tuttiSuccess) result = call(kind, in, out, 3, comm);
      in.poison();
      out.poison();
      if (seat.rank() == 0) {
        aborter.join();
      } else {
        EXPECT_TRUE(fails(result, tuttiRemoteError, "aborted the communicator", comm));
      }
      ASSERT_TRUE(seat.meet());
      EXPECT_TRUE(out.poisoned(0, out.bytes())) << "round " << round;
      EXPECT_TRUE(in.poisoned(0, in.bytes())) << "round " << round;
      EXPECT_TRUE(out.guards_intact() && in.guards_intact());
      ASSERT_TRUE(seat.meet());
      if (seat.rank() != 0) {
        EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      }
      if (::testing::Test::HasFailure()) return;
    }
  });
}

/// What was read from a buffer after its owner had taken it back is never passed off as the result.
TEST_P(GivenBack, NobodySucceedsWithWhatWasNotMeant) {
  launch_ranks({.ranks = 3, .layout = layout, .environment = environment_of(transport)}, [this](Seat& seat) {
    std::mt19937_64 random(static_cast<std::uint64_t>(kind) * 11);
    for (int round = 0; round < share_of(10); ++round) {
      const auto delay = random() % 2'000'000;
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      Call one{.kind = kind, .type = tuttiUint8, .count = 1 << 20, .seed = static_cast<std::uint64_t>(round)};
      one.memory = memory == Memory::mapped ? Mix::mapped : Mix::heap;
      std::thread aborter;
      if (seat.rank() == 0)
        aborter = std::thread([&] {
          const auto start = Clock::now();
          while (Clock::now() - start < std::chrono::nanoseconds(delay)) std::this_thread::yield();
          EXPECT_TRUE(ok(tuttiCommAbort(comm)));
        });
      for (;;) {
        CallOnRank mine(one, seat.rank(), seat.ranks());
        if (mine.submit(comm) != tuttiSuccess) {
          mine.fill(~one.seed);
          break;
        }
        ASSERT_EQ(mine.check(), "");
        ++one.seed;
      }
      if (seat.rank() == 0) aborter.join();
      ASSERT_TRUE(seat.meet());
      if (seat.rank() != 0) {
        EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      }
    }
  });
}

}  // namespace
}  // namespace tutti::testing
