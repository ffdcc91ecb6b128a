// Host streams: order, several of them, what a call without a stream sees, waiting and asking, and where errors come
// out.
#include <memory>

#include "support/call.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

class Streams : public ::testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, Streams, ::testing::Values(Layout::threads, Layout::processes, Layout::one_thread),
                         [](const auto& test) { return name(test.param); });

tuttiStream_t new_stream() {
  tuttiStream_t stream = nullptr;
  EXPECT_TRUE(ok(tuttiStreamCreate(&stream)));
  return stream;
}

/// One stream per rank of here(): ranks of one thread need no group, since nobody waits.
std::vector<tuttiStream_t> new_streams(const Seat& seat) {
  std::vector<tuttiStream_t> streams;
  for (std::size_t i = 0; i < seat.here().size(); ++i) streams.push_back(new_stream());
  return streams;
}

std::uint64_t power(std::uint64_t base, int exponent) {
  std::uint64_t result = 1;
  for (int i = 0; i < exponent; ++i) result *= base;
  return result;
}

/// x ← sum over ranks of x, in place, again and again: right only if each call sees what the one before left.
TEST_P(Streams, CallsRunInOrder) {
  launch_ranks({.ranks = 3, .layout = GetParam()}, [](Seat& seat) {
    const auto comms = seat.init();
    ASSERT_FALSE(comms.empty());
    const auto streams = new_streams(seat);
    constexpr int times = 50;
    for (const std::size_t count : {10u, 100'000u}) {
      std::vector<std::vector<std::uint64_t>> x(comms.size(), std::vector<std::uint64_t>(count, 5));
      for (int time = 0; time < times; ++time)
        for (std::size_t i = 0; i < comms.size(); ++i)
          ASSERT_TRUE(ok(tuttiAllReduce(x[i].data(), x[i].data(), count, tuttiUint64, tuttiSum, comms[i], streams[i])));
      for (std::size_t i = 0; i < comms.size(); ++i) {
        ASSERT_TRUE(ok(tuttiStreamSynchronize(streams[i])));
        EXPECT_TRUE(ok(tuttiStreamQuery(streams[i])));
        EXPECT_EQ(x[i], std::vector<std::uint64_t>(count, 5 * power(3, times)));
      }
    }
    for (const auto stream : streams) EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
    for (const auto comm : comms) EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// Ranks queue on two communicators in opposite orders; each communicator has a stream of its own, so nobody waits in
/// vain.
TEST_P(Streams, TwoStreamsAreIndependent) {
  launch_ranks({.ranks = 2, .layout = GetParam()}, [](Seat& seat) {
    const auto a = seat.init();
    const auto b = seat.init();
    ASSERT_FALSE(a.empty() || b.empty());
    const auto on_a = new_streams(seat);
    const auto on_b = new_streams(seat);
    constexpr std::size_t count = 20'000;
    std::vector<std::vector<std::uint64_t>> x(a.size(), std::vector<std::uint64_t>(count, 1));
    auto y = x;
    for (int time = 0; time < 20; ++time)
      for (std::size_t i = 0; i < a.size(); ++i)
        for (const bool first : {true, false}) {
          const bool use_a = (seat.here()[i] == 0) == first;
          auto& data = use_a ? x[i] : y[i];
          ASSERT_TRUE(ok(tuttiAllReduce(data.data(), data.data(), count, tuttiUint64, tuttiSum, use_a ? a[i] : b[i],
                                        use_a ? on_a[i] : on_b[i])));
        }
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_TRUE(ok(tuttiStreamSynchronize(on_b[i])));
      ASSERT_TRUE(ok(tuttiStreamSynchronize(on_a[i])));
      EXPECT_EQ(x[i], std::vector<std::uint64_t>(count, power(2, 20)));
      EXPECT_EQ(y[i], x[i]);
    }
    for (const auto& streams : {on_a, on_b})
      for (const auto stream : streams) EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
    for (const auto& comms : {a, b})
      for (const auto comm : comms) EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST(Stream, CallWithoutStreamComesAfterQueuedOnes) {
  launch_ranks({.ranks = 3, .layout = Layout::processes}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const auto stream = new_stream();
    for (const std::size_t count : {10u, 200'000u}) {
      std::vector<std::uint64_t> x(count, 1);
      for (int time = 0; time < 10; ++time)
        ASSERT_TRUE(ok(tuttiAllReduce(x.data(), x.data(), count, tuttiUint64, tuttiSum, comm, stream)));
      ASSERT_TRUE(ok(tuttiAllReduce(x.data(), x.data(), count, tuttiUint64, tuttiSum, comm, nullptr)));
      EXPECT_EQ(x, std::vector<std::uint64_t>(count, power(3, 11)));
      ASSERT_TRUE(ok(tuttiStreamSynchronize(stream)));
    }
    EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST(Stream, OneCommunicatorOnTwoStreamsKeepsItsOrder) {
  launch_ranks({.ranks = 2, .layout = Layout::threads}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const std::array streams = {new_stream(), new_stream()};
    std::vector<std::uint64_t> x(5'000, 1);
    for (std::size_t time = 0; time < 30; ++time)
      ASSERT_TRUE(ok(tuttiAllReduce(x.data(), x.data(), x.size(), tuttiUint64, tuttiSum, comm, streams[time % 2])));
    for (const auto stream : streams) ASSERT_TRUE(ok(tuttiStreamSynchronize(stream)));
    EXPECT_EQ(x, std::vector<std::uint64_t>(x.size(), power(2, 30)));
    for (const auto stream : streams) EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST(Stream, QuerySaysWhetherItWorks) {
  launch_ranks({.ranks = 2, .layout = Layout::threads}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const auto stream = new_stream();
    EXPECT_TRUE(ok(tuttiStreamQuery(stream)));
    if (seat.rank() == 0) {
      ASSERT_TRUE(ok(tuttiBarrier(comm, stream)));
      EXPECT_EQ(tuttiStreamQuery(stream), tuttiInProgress);
      ASSERT_TRUE(seat.meet());  // the other one calls only now
    } else {
      ASSERT_TRUE(seat.meet());
      ASSERT_TRUE(ok(tuttiBarrier(comm, stream)));
    }
    EXPECT_TRUE(ok(tuttiStreamSynchronize(stream)));
    EXPECT_TRUE(ok(tuttiStreamQuery(stream)));
    EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST(Stream, DestroyingStreamOrCommunicatorFinishesWhatIsQueued) {
  for (const bool stream_first : {true, false})
    launch_ranks({.ranks = 2, .layout = Layout::processes}, [stream_first](Seat& seat) {
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      const auto stream = new_stream();
      std::vector<std::uint64_t> x(100'000, 1);
      for (int time = 0; time < 20; ++time)
        ASSERT_TRUE(ok(tuttiAllReduce(x.data(), x.data(), x.size(), tuttiUint64, tuttiSum, comm, stream)));
      const auto destroy_stream = [stream] { EXPECT_TRUE(ok(tuttiStreamDestroy(stream))); };
      if (stream_first) destroy_stream();
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      EXPECT_EQ(x, std::vector<std::uint64_t>(x.size(), power(2, 20)));
      if (!stream_first) destroy_stream();
    });
}

TEST(Stream, FinalizeWaitsForWhatIsQueued) {
  launch_ranks({.ranks = 2, .layout = Layout::processes}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const auto stream = new_stream();
    std::vector<std::uint64_t> x(100'000, 1);
    for (int time = 0; time < 20; ++time)
      ASSERT_TRUE(ok(tuttiAllReduce(x.data(), x.data(), x.size(), tuttiUint64, tuttiSum, comm, stream)));
    EXPECT_TRUE(ok(tuttiCommFinalize(comm)));
    EXPECT_EQ(x, std::vector<std::uint64_t>(x.size(), power(2, 20)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
  });
}

TEST(Stream, FailuresComeOutAtSynchronizeOnEveryRank) {
  launch_ranks({.ranks = 3, .layout = Layout::processes}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const auto stream = new_stream();
    std::vector<float> x(100 + (seat.rank() == 2 ? 1 : 0));
    // Who comes late, when the others know already, hears of it at the call.
    tuttiResult_t told = tuttiAllReduce(x.data(), x.data(), x.size(), tuttiFloat32, tuttiSum, comm, stream);
    if (told == tuttiSuccess) told = tuttiStreamSynchronize(stream);
    EXPECT_TRUE(fails(told, tuttiInvalidUsage, "", comm));
    EXPECT_TRUE(ok(tuttiStreamSynchronize(stream))) << "an error is told once";
    tuttiResult_t first = tuttiSuccess;
    EXPECT_TRUE(ok(tuttiCommGetAsyncError(comm, &first)));
    EXPECT_EQ(first, tuttiInvalidUsage);
    EXPECT_EQ(tuttiBarrier(comm, stream), tuttiInvalidUsage);
    // The stream itself goes on.
    const auto fresh = seat.init_one();
    ASSERT_NE(fresh, nullptr);
    EXPECT_TRUE(ok(tuttiBarrier(fresh, stream)));
    EXPECT_TRUE(ok(tuttiStreamSynchronize(stream)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    EXPECT_TRUE(ok(tuttiCommDestroy(fresh)));
    EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
  });
}

TEST(Stream, StaleHandlesAreRefused) {
  launch_ranks({.ranks = 1}, [](Seat& seat) {
    const auto comm = seat.init_one();
    const auto stream = new_stream();
    EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
    EXPECT_TRUE(fails(tuttiStreamDestroy(stream), tuttiInvalidArgument, "stream"));
    EXPECT_TRUE(fails(tuttiStreamSynchronize(stream), tuttiInvalidArgument, "stream"));
    EXPECT_TRUE(fails(tuttiStreamQuery(stream), tuttiInvalidArgument, "stream"));
    EXPECT_TRUE(fails(tuttiBarrier(comm, stream), tuttiInvalidArgument, "stream"));
    EXPECT_TRUE(fails(tuttiStreamSynchronize(nullptr), tuttiInvalidArgument, "NULL"));
    EXPECT_TRUE(fails(tuttiStreamCreate(nullptr), tuttiInvalidArgument, "NULL"));
    EXPECT_TRUE(ok(tuttiBarrier(comm, nullptr)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// A callback sees what was queued before it, and the error if there was one; the order of callbacks is that of calls.
TEST_P(Streams, CallbacksComeInOrder) {
  launch_ranks({.ranks = 2, .layout = GetParam()}, [](Seat& seat) {
    const auto comms = seat.init();
    ASSERT_FALSE(comms.empty());
    const auto streams = new_streams(seat);
    struct Seen {
      const int* sum;
      std::vector<int> sums;
      std::vector<tuttiResult_t> results;
    };
    constexpr int times = 20;
    std::vector<int> x(comms.size(), 1);
    std::vector<Seen> seen(comms.size());
    for (std::size_t i = 0; i < comms.size(); ++i) seen[i].sum = &x[i];
    const auto note = [](void* context, tuttiResult_t result) {
      auto& noted = *static_cast<Seen*>(context);
      noted.sums.push_back(*noted.sum);
      noted.results.push_back(result);
    };
    for (int time = 0; time < times; ++time)
      for (std::size_t i = 0; i < comms.size(); ++i) {
        ASSERT_TRUE(ok(tuttiAllReduce(&x[i], &x[i], 1, tuttiInt32, tuttiSum, comms[i], streams[i])));
        ASSERT_TRUE(ok(tuttiStreamAddCallback(streams[i], note, &seen[i])));
      }
    for (std::size_t i = 0; i < comms.size(); ++i) {
      ASSERT_TRUE(ok(tuttiStreamSynchronize(streams[i])));
      ASSERT_EQ(seen[i].sums.size(), static_cast<std::size_t>(times));
      for (int time = 0; time < times; ++time) {
        EXPECT_EQ(seen[i].sums[time], 1 << (time + 1));
        EXPECT_EQ(seen[i].results[time], tuttiSuccess);
      }
      EXPECT_TRUE(fails(tuttiStreamAddCallback(streams[i], nullptr, nullptr), tuttiInvalidArgument, "callback"));
    }
    for (const auto stream : streams) EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
    for (const auto comm : comms) EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
