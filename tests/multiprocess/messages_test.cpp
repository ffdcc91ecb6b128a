// Messages with tags: each comes to the receive it fits, in order, whatever else is under way; and nothing waits for
// one that nobody receives.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "support/buffer.h"
#include "support/call.h"
#include "support/random.h"
#include "support/setup.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

constexpr auto bad = tuttiInvalidArgument;

class Messages : public ::testing::TestWithParam<Setup> {
 protected:
  static void run(const std::function<void(Seat&, tuttiComm_t)>& body, bool destroy = true) {
    Team team = team_of(GetParam());
    team.environment.emplace_back("TUTTI_DEBUG=NONE");
    launch_ranks(team, [&](Seat& seat) {
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      body(seat, comm);
      if (destroy) {
        EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      }
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, Messages,
                         ::testing::Values(Setup{1, Layout::threads, "auto"}, Setup{2, Layout::processes, "auto"},
                                           Setup{4, Layout::threads, "auto"}, Setup{3, Layout::processes, "slots"},
                                           Setup{3, Layout::processes, "cma"}, Setup{4, Layout::pairs, "auto"},
                                           Setup{3, Layout::processes, "socket"}, Setup{4, Layout::pairs, "socket"},
                                           Setup{2, Layout::processes, "rdma"}),
                         name_of_setup);

/// The n-th message from one rank to another; every rank knows all of them.
struct Planned {
  int from, to, tag;
  std::uint32_t nth;
  std::size_t bytes;
  std::uint64_t seed;

  /// It says who it is, as far as there is room, so that a receive of any source can tell.
  std::byte at(std::size_t i) const {
    const std::array<std::uint32_t, 3> words = {static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(tag), nth};
    if (i < sizeof words) return reinterpret_cast<const std::byte*>(words.data())[i];
    return static_cast<std::byte>(mix(seed, nth, i / 8) >> (i % 8 * 8));
  }
};

constexpr int tags = 4;

std::vector<Planned> planned(std::uint64_t seed, int ranks, int from, int to) {
  Random random(mix(seed, static_cast<std::uint64_t>(from * ranks + to)));
  std::vector<Planned> all;
  const int count = random.between(0, 12);
  for (int i = 0; i < count; ++i) {
    const std::array sizes = {random.between(12, 40), random.between(12, 20'000), random.between(16'000, 16'800),
                              random.between(12, 600'000)};
    all.push_back({from, to, random.below(tags), static_cast<std::uint32_t>(i),
                   static_cast<std::size_t>(sizes[static_cast<std::size_t>(random.below(4))]), seed});
  }
  return all;
}

struct Sent {
  std::unique_ptr<Buffer> buffer;
  tuttiRequest_t request = nullptr;
};

std::vector<Sent> send_all(std::uint64_t seed, Seat& seat, tuttiComm_t comm) {
  std::vector<Sent> sent;
  for (int to = 0; to < seat.ranks(); ++to)
    for (const Planned& one : planned(seed, seat.ranks(), seat.rank(), to)) {
      Sent& out = sent.emplace_back();
      out.buffer = std::make_unique<Buffer>(one.nth % 2 == 0 ? Memory::mapped : Memory::heap, one.bytes);
      for (std::size_t i = 0; i < one.bytes; ++i) out.buffer->data()[i] = one.at(i);
      EXPECT_TRUE(ok(tuttiIsend(out.buffer->data(), one.bytes, tuttiUint8, to, one.tag, comm, &out.request)));
    }
  return sent;
}

std::string difference(const Planned& one, const std::byte* data, const tuttiStatus_t& status) {
  if (status.source != one.from || status.tag != one.tag || status.count != one.bytes || status.cancelled != 0 ||
      status.type != tuttiUint8)
    return fmt::format("status says {} x {} from {} with tag {}, not {} from {} with {}", status.count,
                       static_cast<int>(status.type), status.source, status.tag, one.bytes, one.from, one.tag);
  for (std::size_t i = 0; i < one.bytes; ++i)
    if (data[i] != one.at(i)) return fmt::format("byte {} of {}", i, one.bytes);
  return {};
}

void wait_for_sent(std::vector<Sent>& sent) {
  for (Sent& out : sent) {
    tuttiStatus_t status{};
    ASSERT_TRUE(ok(tuttiWait(&out.request, &status)));
    EXPECT_EQ(out.request, nullptr);
    EXPECT_TRUE(out.buffer->guards_intact());
  }
}

/// Received by source and tag, the last tag first: messages that come before others must not hold them up.
TEST_P(Messages, OfEachSourceAndTagComeInOrder) {
  run([](Seat& seat, tuttiComm_t comm) {
    for (int round = 0; round < share_of(8); ++round) {
      const std::uint64_t seed = mix(test_seed(), static_cast<std::uint64_t>(round));
      seat.doing(fmt::format("round {}, seed {}", round, seed));
      auto sent = send_all(seed, seat, comm);
      for (int tag = tags; tag-- > 0;)
        for (int from = seat.ranks(); from-- > 0;)
          for (const Planned& one : planned(seed, seat.ranks(), from, seat.rank())) {
            if (one.tag != tag) continue;
            Buffer into(one.nth % 3 == 0 ? Memory::mapped : Memory::heap, one.bytes + 5);
            tuttiRequest_t request = nullptr;
            tuttiStatus_t status{};
            ASSERT_TRUE(ok(tuttiIrecv(into.data(), one.bytes + 5, tuttiUint8, from, tag, comm, &request)));
            ASSERT_TRUE(ok(tuttiWait(&request, &status)));
            ASSERT_EQ(difference(one, into.data(), status), "") << "number " << one.nth << " from " << from;
            ASSERT_TRUE(into.poisoned(one.bytes, 5) && into.guards_intact());
          }
      wait_for_sent(sent);
    }
  });
}

/// All receives are posted at once and take anything. Those of one rank come in the order in which they were sent, as
/// the receives were posted.
TEST_P(Messages, OfAnySourceAndTagAllCome) {
  run([](Seat& seat, tuttiComm_t comm) {
    for (int round = 0; round < share_of(8); ++round) {
      const std::uint64_t seed = mix(test_seed(), 77, static_cast<std::uint64_t>(round));
      seat.doing(fmt::format("any, round {}, seed {}", round, seed));
      std::vector<std::vector<Planned>> coming;
      std::size_t all = 0;
      for (int from = 0; from < seat.ranks(); ++from)
        all += coming.emplace_back(planned(seed, seat.ranks(), from, seat.rank())).size();
      std::vector<std::unique_ptr<Buffer>> into;
      std::vector<tuttiRequest_t> requests(all);
      const auto post = [&](std::size_t i) {
        into.push_back(std::make_unique<Buffer>(Memory::heap, 600'000));
        ASSERT_TRUE(ok(
            tuttiIrecv(into.back()->data(), 600'000, tuttiUint8, TUTTI_ANY_SOURCE, TUTTI_ANY_TAG, comm, &requests[i])));
      };
      for (std::size_t i = 0; i < all / 2; ++i) post(i);  // some before, some after the sends
      auto sent = send_all(seed, seat, comm);
      for (std::size_t i = all / 2; i < all; ++i) post(i);
      std::vector<std::size_t> next(static_cast<std::size_t>(seat.ranks()));
      for (std::size_t i = 0; i < all; ++i) {
        tuttiStatus_t status{};
        int done = 0;
        while (done == 0) ASSERT_TRUE(ok(tuttiTest(&requests[i], &done, &status)));
        ASSERT_GE(status.source, 0);
        const auto from = static_cast<std::size_t>(status.source);
        ASSERT_LT(next[from], coming[from].size());
        ASSERT_EQ(difference(coming[from][next[from]++], into[i]->data(), status), "") << "receive " << i;
      }
      wait_for_sent(sent);
      ASSERT_TRUE(seat.meet());  // a receive of anything takes what a rank sends in its next round
    }
  });
}

/// A receive that nothing comes for yet, and sends that nobody has received: all other calls go on.
TEST_P(Messages, HoldUpNoOtherCall) {
  run([](Seat& seat, tuttiComm_t comm) {
    const int next = (seat.rank() + 1) % seat.ranks(), last = (seat.rank() + seat.ranks() - 1) % seat.ranks();
    std::vector<int> early(100'000, seat.rank()), got(100'000, -1), late(10, seat.rank()), got_late(10, -1);
    std::array<tuttiRequest_t, 4> requests{};
    ASSERT_TRUE(ok(tuttiIrecv(got_late.data(), 10, tuttiInt32, last, 9, comm, &requests[0])));
    ASSERT_TRUE(ok(tuttiIsend(early.data(), early.size(), tuttiInt32, next, 1, comm, &requests[1])));
    for (const std::size_t count : {std::size_t{1}, std::size_t{300'000}})
      ASSERT_EQ(run_call({.count = count, .seed = 3}, seat.here(), seat.ranks(), {comm}), "");
    if (seat.ranks() > 1) {
      int x = seat.rank(), y = -1;
      ASSERT_TRUE(ok(tuttiGroupStart()));
      ASSERT_TRUE(ok(tuttiSend(&x, 1, tuttiInt32, next, comm, nullptr)));
      ASSERT_TRUE(ok(tuttiRecv(&y, 1, tuttiInt32, last, comm, nullptr)));
      ASSERT_TRUE(ok(tuttiGroupEnd()));
      EXPECT_EQ(y, last);
    }
    int done = -1;
    ASSERT_TRUE(ok(tuttiTest(&requests[0], &done, nullptr)));
    EXPECT_EQ(done, 0) << "nobody has sent it";
    ASSERT_NE(requests[0], nullptr);
    ASSERT_TRUE(ok(tuttiBarrier(comm, nullptr)));
    ASSERT_TRUE(ok(tuttiIsend(late.data(), 10, tuttiInt32, next, 9, comm, &requests[2])));
    ASSERT_TRUE(ok(tuttiWait(&requests[0], nullptr)));
    EXPECT_EQ(got_late, std::vector<int>(10, last));
    ASSERT_TRUE(ok(tuttiIrecv(got.data(), got.size(), tuttiInt32, last, 1, comm, &requests[3])));
    for (auto& request : requests) ASSERT_TRUE(ok(tuttiWait(&request, nullptr)));
    EXPECT_EQ(got, std::vector<int>(got.size(), last));
  });
}

/// A rank that waits in a collective still sends what a peer receives before it makes that call.
TEST_P(Messages, GoOnWhileOtherCallsWait) {
  run([](Seat& seat, tuttiComm_t comm) {
    const int next = (seat.rank() + 1) % seat.ranks();
    std::vector<int> x(500'000, 7), y(500'000);
    tuttiRequest_t request = nullptr, received = nullptr;
    if (seat.rank() == 0) {
      ASSERT_TRUE(ok(tuttiIsend(x.data(), x.size(), tuttiInt32, next, 3, comm, &request)));
    }
    if (seat.rank() == 1 % seat.ranks()) {
      ASSERT_TRUE(ok(tuttiIrecv(y.data(), y.size(), tuttiInt32, 0, 3, comm, &received)));
      ASSERT_TRUE(ok(tuttiWait(&received, nullptr)));
      EXPECT_EQ(x, y);
    }
    ASSERT_TRUE(ok(tuttiBarrier(comm, nullptr)));
    ASSERT_TRUE(ok(tuttiWait(&request, nullptr)));
  });
}

TEST_P(Messages, ArePeekedAtWithoutReceiving) {
  run([](Seat& seat, tuttiComm_t comm) {
    const int next = (seat.rank() + 1) % seat.ranks(), last = (seat.rank() + seat.ranks() - 1) % seat.ranks();
    int found = -1;
    tuttiStatus_t status{};
    ASSERT_TRUE(ok(tuttiIprobe(TUTTI_ANY_SOURCE, TUTTI_ANY_TAG, comm, &found, &status)));
    EXPECT_EQ(found, 0);
    ASSERT_TRUE(ok(tuttiBarrier(comm, nullptr)));
    for (const std::size_t count : {std::size_t{3}, std::size_t{50'000}}) {
      std::vector<float> x(count, 1.5F), y(count);
      tuttiRequest_t out = nullptr, in = nullptr;
      ASSERT_TRUE(ok(tuttiIsend(x.data(), count, tuttiFloat32, next, 5, comm, &out)));
      ASSERT_TRUE(ok(tuttiProbe(TUTTI_ANY_SOURCE, 5, comm, &status)));
      EXPECT_EQ(status.source, last);
      EXPECT_EQ(status.count, count);
      EXPECT_EQ(status.type, tuttiFloat32);
      ASSERT_TRUE(ok(tuttiIprobe(last, TUTTI_ANY_TAG, comm, &found, &status)));
      EXPECT_EQ(found, 1) << "it is still there";
      ASSERT_TRUE(ok(tuttiIprobe(last, 6, comm, &found, nullptr)));
      EXPECT_EQ(found, 0) << "no such tag";
      ASSERT_TRUE(ok(tuttiIrecv(y.data(), status.count, status.type, status.source, status.tag, comm, &in)));
      ASSERT_TRUE(ok(tuttiWait(&in, nullptr)));
      EXPECT_EQ(x, y);
      ASSERT_TRUE(ok(tuttiWait(&out, nullptr)));
      ASSERT_TRUE(ok(tuttiBarrier(comm, nullptr)));
    }
  });
}

TEST_P(Messages, CanBeCancelledWhileNothingHasCome) {
  run([](Seat& seat, tuttiComm_t comm) {
    int x = -1, cancelled = -1;
    tuttiRequest_t request = nullptr;
    tuttiStatus_t status{};
    ASSERT_TRUE(ok(tuttiIrecv(&x, 1, tuttiInt32, TUTTI_ANY_SOURCE, 2, comm, &request)));
    ASSERT_TRUE(ok(tuttiCancel(request, &cancelled)));
    EXPECT_EQ(cancelled, 1);
    ASSERT_TRUE(ok(tuttiWait(&request, &status)));
    EXPECT_EQ(status.cancelled, 1);
    ASSERT_TRUE(ok(tuttiBarrier(comm, nullptr)));
    // What was cancelled takes nothing.
    const int next = (seat.rank() + 1) % seat.ranks(), last = (seat.rank() + seat.ranks() - 1) % seat.ranks();
    int y = seat.rank();
    tuttiRequest_t out = nullptr;
    ASSERT_TRUE(ok(tuttiIsend(&y, 1, tuttiInt32, next, 2, comm, &out)));
    ASSERT_TRUE(ok(tuttiIrecv(&x, 1, tuttiInt32, TUTTI_ANY_SOURCE, 2, comm, &request)));
    ASSERT_TRUE(ok(tuttiWait(&request, &status)));
    EXPECT_EQ(x, last);
    EXPECT_EQ(status.cancelled, 0);
    ASSERT_TRUE(ok(tuttiWait(&out, nullptr)));
  });
}

/// The receive alone fails; the message is gone, and the next one comes.
TEST_P(Messages, ThatDoNotFitFailTheirReceive) {
  run([](Seat& seat, tuttiComm_t comm) {
    const int next = (seat.rank() + 1) % seat.ranks(), last = (seat.rank() + seat.ranks() - 1) % seat.ranks();
    for (const std::size_t count : {std::size_t{10}, std::size_t{70'000}}) {
      std::vector<int> x(count, 4), y(count, -1);
      std::array<tuttiRequest_t, 3> out{};
      for (auto& request : out) ASSERT_TRUE(ok(tuttiIsend(x.data(), count, tuttiInt32, next, 0, comm, &request)));
      tuttiRequest_t in = nullptr;
      ASSERT_TRUE(ok(tuttiIrecv(y.data(), count - 1, tuttiInt32, last, 0, comm, &in)));
      EXPECT_TRUE(
          fails(tuttiWait(&in, nullptr), tuttiInvalidUsage, fmt::format("receives at most {} x int32", count - 1)));
      EXPECT_EQ(in, nullptr);
      ASSERT_TRUE(ok(tuttiIrecv(y.data(), count, tuttiFloat32, last, 0, comm, &in)));
      EXPECT_TRUE(fails(tuttiWait(&in, nullptr), tuttiInvalidUsage, "float32"));
      EXPECT_EQ(y, std::vector<int>(count, -1)) << "nothing was written";
      ASSERT_TRUE(ok(tuttiIrecv(y.data(), count, tuttiInt32, last, 0, comm, &in)));
      ASSERT_TRUE(ok(tuttiWait(&in, nullptr)));
      EXPECT_EQ(x, y);
      for (auto& request : out) ASSERT_TRUE(ok(tuttiWait(&request, nullptr)));
    }
    tuttiResult_t first = tuttiInternalError;
    EXPECT_TRUE(ok(tuttiCommGetAsyncError(comm, &first)));
    EXPECT_EQ(first, tuttiSuccess);
  });
}

TEST_P(Messages, WaitNoLongerThanTheirLimit) {
  if (GetParam().ranks == 1) GTEST_SKIP() << "needs a peer";
  run(
      [](Seat& seat, tuttiComm_t comm) {
        if (seat.rank() == 0) {
          int x = 0;
          tuttiRequest_t request = nullptr;
          ASSERT_TRUE(ok(tuttiCommSetTimeout(comm, 100)));
          ASSERT_TRUE(ok(tuttiIrecv(&x, 1, tuttiInt32, 1, 0, comm, &request)));
          EXPECT_TRUE(fails(tuttiWait(&request, nullptr), tuttiTimeout, "a receive from rank 1"));
        }
        ASSERT_TRUE(seat.meet());
        (void)tuttiCommDestroy(comm);
      },
      false);
}

TEST_P(Messages, UnderWayAtTheEndFail) {
  run(
      [](Seat& seat, tuttiComm_t comm) {
        int x = 0;
        tuttiRequest_t request = nullptr;
        ASSERT_TRUE(ok(tuttiIrecv(&x, 1, tuttiInt32, TUTTI_ANY_SOURCE, 0, comm, &request)));
        ASSERT_TRUE(seat.meet());  // where a rank has left, a receive that begins is refused
        EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
        EXPECT_TRUE(fails(tuttiWait(&request, nullptr), tuttiInvalidUsage, "destroyed before"));
        EXPECT_EQ(request, nullptr);
      },
      false);
}

TEST_P(Messages, OfARankThatAbortsFail) {
  if (GetParam().ranks == 1) GTEST_SKIP() << "needs a peer";
  run(
      [](Seat& seat, tuttiComm_t comm) {
        if (seat.rank() == 1) {
          EXPECT_TRUE(ok(tuttiCommAbort(comm)));
          return;
        }
        int x = 0;
        tuttiRequest_t request = nullptr;
        // It may have aborted before this.
        if (tuttiIrecv(&x, 1, tuttiInt32, 1, 0, comm, &request) == tuttiSuccess) {
          EXPECT_TRUE(fails(tuttiWait(&request, nullptr), tuttiRemoteError, ""));
        }
        (void)tuttiCommDestroy(comm);
      },
      false);
}

/// Also messages without data take memory while no receive takes them.
TEST_P(Messages, ThatNobodyReceivesAreKeptUpToALimit) {
  if (GetParam().ranks != 2 || std::string_view(GetParam().transport) != "auto") GTEST_SKIP() << "of one pair";
  run(
      [](Seat& seat, tuttiComm_t comm) {
        constexpr int most = 2'000'000;
        tuttiRequest_t request = nullptr;
        if (seat.rank() == 0) {
          EXPECT_TRUE(ok(tuttiIrecv(nullptr, 0, tuttiInt8, 1, /*tag=*/2, comm, &request)));
          EXPECT_TRUE(fails(tuttiWait(&request, nullptr), tuttiSystemError, "that no receive takes"));
        } else {
          int sent = 0;
          while (sent < most && tuttiIsend(nullptr, 0, tuttiInt8, 0, /*tag=*/1, comm, &request) == tuttiSuccess &&
                 tuttiWait(&request, nullptr) == tuttiSuccess)
            ++sent;
          EXPECT_GT(sent, 1'000);
          EXPECT_LT(sent, most);
        }
        (void)tuttiCommAbort(comm);
      },
      false);
}

TEST_P(Messages, OfWrongArgumentsAreRefused) {
  run([](Seat& seat, tuttiComm_t comm) {
    int x = 0, flag = 0;
    tuttiRequest_t r = nullptr;
    tuttiStatus_t status{};
    const int n = seat.ranks();
    EXPECT_TRUE(fails(tuttiIsend(&x, 1, tuttiInt32, n, 0, comm, &r), bad, fmt::format("peer {}", n)));
    EXPECT_TRUE(fails(tuttiIsend(&x, 1, tuttiInt32, TUTTI_ANY_SOURCE, 0, comm, &r), bad, "peer -1"));
    EXPECT_TRUE(fails(tuttiIsend(&x, 1, tuttiInt32, 0, -1, comm, &r), bad, "tag -1"));
    EXPECT_TRUE(fails(tuttiIsend(nullptr, 1, tuttiInt32, 0, 0, comm, &r), bad, "sendbuff is NULL"));
    EXPECT_TRUE(fails(tuttiIsend(&x, 1, tuttiNumTypes, 0, 0, comm, &r), bad, "type " + std::to_string(tuttiNumTypes)));
    EXPECT_TRUE(fails(tuttiIsend(&x, SIZE_MAX / 2, tuttiInt32, 0, 0, comm, &r), bad, "count"));
    EXPECT_TRUE(fails(tuttiIsend(&x, 1, tuttiInt32, 0, 0, nullptr, &r), bad, "comm is NULL"));
    EXPECT_TRUE(fails(tuttiIsend(&x, 1, tuttiInt32, 0, 0, comm, nullptr), bad, "request is NULL"));
    EXPECT_TRUE(fails(tuttiIrecv(&x, 1, tuttiInt32, -2, 0, comm, &r), bad, "source -2"));
    EXPECT_TRUE(fails(tuttiIrecv(&x, 1, tuttiInt32, 0, -2, comm, &r), bad, "tag -2"));
    EXPECT_TRUE(fails(tuttiIrecv(nullptr, 1, tuttiInt32, 0, 0, comm, &r), bad, "recvbuff is NULL"));
    EXPECT_TRUE(fails(tuttiIprobe(n, 0, comm, &flag, &status), bad, "source"));
    EXPECT_TRUE(fails(tuttiIprobe(0, 0, comm, nullptr, &status), bad, "found is NULL"));
    EXPECT_TRUE(fails(tuttiProbe(0, -5, comm, &status), bad, "tag -5"));
    EXPECT_EQ(r, nullptr);
    EXPECT_TRUE(ok(tuttiWait(&r, &status)));
    EXPECT_TRUE(ok(tuttiTest(&r, &flag, &status)));
    EXPECT_EQ(flag, 1);
    EXPECT_TRUE(fails(tuttiTest(&r, nullptr, &status), bad, "done is NULL"));
    EXPECT_TRUE(fails(tuttiWait(nullptr, &status), bad, "request is NULL"));
    EXPECT_TRUE(fails(tuttiCancel(nullptr, &flag), bad, "request is not a request"));
    auto none = reinterpret_cast<tuttiRequest_t>(&x);
    EXPECT_TRUE(fails(tuttiWait(&none, &status), bad, "request is not a request"));
    // Empty messages are messages.
    tuttiRequest_t in = nullptr;
    ASSERT_TRUE(ok(tuttiIsend(nullptr, 0, tuttiInt32, seat.rank(), 4, comm, &r)));
    ASSERT_TRUE(ok(tuttiIrecv(nullptr, 0, tuttiInt32, seat.rank(), 4, comm, &in)));
    EXPECT_TRUE(ok(tuttiWait(&in, &status)));
    EXPECT_EQ(status.count, 0u);
    EXPECT_TRUE(ok(tuttiWait(&r, &status)));
  });
}

}  // namespace
}  // namespace tutti::testing
