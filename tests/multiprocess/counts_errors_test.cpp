// Collectives with a count per rank: what is wrong with the arguments is said at the call; what does not fit together
// between ranks is said on all of them, with the numbers, and nothing was written.
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "support/counts_call.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

constexpr auto bad = tuttiInvalidArgument;

void with_comm(int ranks, const std::function<void(tuttiComm_t, Seat&)>& body) {
  launch_ranks({.ranks = ranks, .layout = Layout::threads}, [&](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    body(comm, seat);
    tuttiResult_t first = tuttiInternalError;
    EXPECT_TRUE(ok(tuttiCommGetAsyncError(comm, &first)));
    EXPECT_EQ(first, tuttiSuccess);
    EXPECT_EQ(run_counts_call({.seed = 3}, seat.here(), seat.ranks(), {comm}), "");
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// What is passed; good for every call on two ranks, but for what a test changes. Single counts are those of this rank.
struct Passed {
  tuttiComm_t comm;
  int rank;
  const int* send;
  int* recv;
  std::vector<std::size_t> sendcounts = {3, 5}, sdispls = {0, 3}, recvcounts = {3, 5}, rdispls = {0, 3};
  const std::size_t* sendcounts_at = sendcounts.data();
  const std::size_t* sdispls_at = sdispls.data();
  const std::size_t* recvcounts_at = recvcounts.data();
  const std::size_t* rdispls_at = rdispls.data();
  int root = rank;
  tuttiDataType_t type = tuttiInt32;
  tuttiRedOp_t op = tuttiSum;
  std::size_t own = rank == 0 ? 3 : 5;
};

struct Function {
  const char* name;
  tuttiResult_t (*call)(const Passed& p);
  bool many_sent;
  bool many_received;
  bool has_root = false;
  bool has_op = false;
};

constexpr std::array functions = {
    Function{"AllGatherV",
             [](const Passed& p) {
               return tuttiAllGatherV(p.send, p.own, p.recv, p.recvcounts_at, p.rdispls_at, p.type, p.comm, nullptr);
             },
             false, true},
    Function{"ReduceScatterV",
             [](const Passed& p) {
               return tuttiReduceScatterV(p.send, p.sendcounts_at, p.sdispls_at, p.recv, p.own, p.type, p.op, p.comm,
                                          nullptr);
             },
             true, false, false, true},
    Function{"AllToAllV",
             [](const Passed& p) {
               return tuttiAllToAllV(p.send, p.sendcounts_at, p.sdispls_at, p.recv, p.recvcounts_at, p.rdispls_at,
                                     p.type, p.comm, nullptr);
             },
             true, true},
    Function{"GatherV",
             [](const Passed& p) {
               return tuttiGatherV(p.send, p.own, p.recv, p.recvcounts_at, p.rdispls_at, p.type, p.root, p.comm,
                                   nullptr);
             },
             false, true, true},
    Function{"ScatterV",
             [](const Passed& p) {
               return tuttiScatterV(p.send, p.sendcounts_at, p.sdispls_at, p.recv, p.own, p.type, p.root, p.comm,
                                    nullptr);
             },
             true, false, true},
};

TEST(CountsArguments, OfEveryCallAreChecked) {
  with_comm(2, [](tuttiComm_t comm, Seat& seat) {
    std::vector<int> a(64), b(64);
    for (const auto& function : functions) {
      SCOPED_TRACE(function.name);
      const auto refused = [&](const std::string& words, const std::function<void(Passed&)>& change) {
        Passed passed{.comm = comm, .rank = seat.rank(), .send = a.data(), .recv = b.data()};
        change(passed);
        EXPECT_TRUE(fails(function.call(passed), bad, words));
      };
      refused("sendbuff is NULL", [](Passed& p) { p.send = nullptr; });
      refused("recvbuff is NULL", [](Passed& p) { p.recv = nullptr; });
      refused("comm is NULL", [](Passed& p) { p.comm = nullptr; });
      refused("type " + std::to_string(tuttiNumTypes), [](Passed& p) { p.type = tuttiNumTypes; });
      if (function.has_op) refused("op 12", [](Passed& p) { p.op = tuttiNumOps; });
      if (function.has_root) refused("root -1", [](Passed& p) { p.root = -1; });
      if (function.has_root) refused("root 2", [](Passed& p) { p.root = 2; });
      const std::string own = "sends itself";
      const auto r = static_cast<std::size_t>(seat.rank());
      if (function.many_sent) {
        refused("sendcounts is NULL", [](Passed& p) { p.sendcounts_at = nullptr; });
        refused(own, [&](Passed& p) { ++p.sendcounts[r]; });
        refused("sendcounts[1]", [](Passed& p) { p.sendcounts[1] = SIZE_MAX / 4; });
        refused("sendcounts[0]", [](Passed& p) { p.sdispls[0] = SIZE_MAX - 1; });
        refused("sendcounts[1]", [](Passed& p) { p.sendcounts = {SIZE_MAX / 8 - 5, 10}, p.sdispls_at = nullptr; });
      }
      if (function.many_received) {
        refused("recvcounts is NULL", [](Passed& p) { p.recvcounts_at = nullptr; });
        refused(own, [&](Passed& p) { ++p.recvcounts[r]; });
        refused("recvcounts[0]", [](Passed& p) { p.rdispls[0] = SIZE_MAX - 1; });
        refused("groups 0 and 1 overlap", [](Passed& p) { p.rdispls[1] = 2; });
        refused("groups 0 and 1 overlap", [](Passed& p) { p.rdispls = {4, 0}; });
      }
    }
  });
}

TEST(CountsArguments, NegativeNumbersOf32BitsAreRefused) {
  with_comm(2, [](tuttiComm_t comm, Seat& seat) {
    std::vector<int> a(64), b(64);
    const std::array good = {3, 5}, negative = {3, -5}, displs = {0, 3}, before = {-1, 3};
    const int own = good[static_cast<std::size_t>(seat.rank())];
    const auto type = tuttiInt32;
    const auto* const s = a.data();
    auto* const r = b.data();
    EXPECT_TRUE(fails(tuttiAllGatherV32(s, -1, r, good.data(), nullptr, type, comm, nullptr), bad,
                      "sendcounts[0] = -1 is negative"));
    EXPECT_TRUE(fails(tuttiAllGatherV32(s, own, r, negative.data(), nullptr, type, comm, nullptr), bad,
                      "recvcounts[1] = -5 is negative"));
    EXPECT_TRUE(fails(tuttiAllGatherV32(s, own, r, good.data(), before.data(), type, comm, nullptr), bad,
                      "rdispls[0] = -1 is negative"));
    EXPECT_TRUE(fails(tuttiAllGatherV32(s, own, r, nullptr, nullptr, type, comm, nullptr), bad, "recvcounts is NULL"));
    EXPECT_TRUE(fails(tuttiReduceScatterV32(s, good.data(), before.data(), r, own, type, tuttiSum, comm, nullptr), bad,
                      "sdispls[0] = -1 is negative"));
    EXPECT_TRUE(
        fails(tuttiAllToAllV32(s, negative.data(), displs.data(), r, good.data(), displs.data(), type, comm, nullptr),
              bad, "sendcounts[1] = -5 is negative"));
    EXPECT_TRUE(fails(tuttiGatherV32(s, own, r, negative.data(), nullptr, type, seat.rank(), comm, nullptr), bad,
                      "recvcounts[1] = -5 is negative"));
    EXPECT_TRUE(fails(tuttiGatherV32(s, own, r, good.data(), nullptr, type, 2, comm, nullptr), bad, "root 2"));
    EXPECT_TRUE(fails(tuttiScatterV32(s, good.data(), nullptr, r, -2, type, seat.rank(), comm, nullptr), bad,
                      "recvcounts[0] = -2 is negative"));
    EXPECT_TRUE(fails(tuttiScatterV32(s, good.data(), nullptr, r, 3, type, 0, nullptr, nullptr), bad, "comm is NULL"));
    // The displacement of an empty block is ignored, whatever it is.
    const std::array none = {0, 0};
    EXPECT_TRUE(
        ok(tuttiAllToAllV32(s, none.data(), before.data(), r, none.data(), before.data(), type, comm, nullptr)));
  });
}

TEST(CountsArguments, OverlapIsRefusedUnlessInPlace) {
  with_comm(2, [](tuttiComm_t comm, Seat& seat) {
    std::vector<int> x(64);
    const auto r = static_cast<std::size_t>(seat.rank());
    for (const auto& function : functions) {
      SCOPED_TRACE(function.name);
      // One of the blocks where there are several, and the other buffer's only one on top of it.
      const auto placed = [&](std::ptrdiff_t shift) {
        Passed passed{.comm = comm, .rank = seat.rank(), .send = x.data() + 8, .recv = x.data() + 8, .root = 0};
        const auto own_block = static_cast<std::ptrdiff_t>(passed.sdispls[r]);
        if (!function.many_sent) passed.send += own_block + shift;
        if (!function.many_received) passed.recv += own_block + shift;
        if (function.many_sent && function.many_received) passed.send += shift;
        return passed;
      };
      const bool all_in_place = !function.has_root || seat.rank() == 0;
      for (const std::ptrdiff_t shift : {-1, 1})
        EXPECT_TRUE(!all_in_place || fails(function.call(placed(shift)), bad, "overlap"));
      if (!function.many_sent || !function.many_received) {
        auto good = placed(0);
        EXPECT_TRUE(ok(function.call(good)));
        continue;
      }
      // An all-to-all sends and receives the same numbers in place.
      auto same = placed(0);
      same.sendcounts = same.recvcounts = {4, 4}, same.sdispls = same.rdispls = {4, 0};
      EXPECT_TRUE(ok(function.call(same)));
      same.sdispls = {0, 4};
      EXPECT_TRUE(fails(function.call(same), bad, "overlap"));
    }
  });
}

TEST(CountsArguments, WhatIsNotUsedMayBeNull) {
  with_comm(3, [](tuttiComm_t comm, Seat& seat) {
    const auto none = std::vector<std::size_t>(3);
    const std::vector<std::size_t> far(3, SIZE_MAX);
    const auto type = tuttiFloat64;
    const auto* const n = none.data();
    const auto* const d = far.data();
    EXPECT_TRUE(ok(tuttiAllToAllV(nullptr, n, d, nullptr, n, d, type, comm, nullptr)));
    EXPECT_TRUE(ok(tuttiAllGatherV(nullptr, 0, nullptr, n, nullptr, type, comm, nullptr)));
    EXPECT_TRUE(ok(tuttiReduceScatterV(nullptr, n, d, nullptr, 0, type, tuttiSum, comm, nullptr)));
    double x = seat.rank() + 1, y[4] = {};
    const std::vector<std::size_t> ones(3, 1), at = {2, 0, 3};
    const bool root = seat.rank() == 1;
    EXPECT_TRUE(ok(tuttiGatherV(&x, 1, root ? y : nullptr, root ? ones.data() : nullptr, root ? at.data() : nullptr,
                                type, 1, comm, nullptr)));
    const std::vector<double> gathered = root ? std::vector<double>{2, 0, 1, 3} : std::vector<double>(4);
    EXPECT_EQ(std::vector<double>(y, y + 4), gathered);
    EXPECT_TRUE(ok(tuttiScatterV(root ? y : nullptr, root ? ones.data() : nullptr, root ? at.data() : nullptr, &x, 1,
                                 type, 1, comm, nullptr)));
    EXPECT_EQ(x, seat.rank() + 1);
  });
}

TEST(CountsArguments, OfScatterGatherAreChecked) {
  with_comm(3, [](tuttiComm_t comm, Seat&) {
    std::vector<int> x(64), y(64);
    const auto refused = [&](const std::string& words, const std::vector<int>& from, int froms,
                             const std::vector<int>& to, int tos, std::size_t unit, std::size_t total) {
      EXPECT_TRUE(
          fails(tuttiScatterGather(x.data(), y.data(), from.empty() ? nullptr : from.data(), froms,
                                   to.empty() ? nullptr : to.data(), tos, unit, total, tuttiInt32, comm, nullptr),
                bad, words));
    };
    refused("sources is NULL", {}, 1, {0}, 1, 1, 1);
    refused("destinations is NULL", {0}, 1, {}, 1, 1, 1);
    refused("sources has no ranks", {0}, 0, {0}, 1, 1, 1);
    refused("destinations has no ranks", {0}, 1, {0}, 0, 1, 1);
    refused("number of sources is negative", {0}, -1, {0}, 1, 1, 1);
    refused("sources[1] = 3", {0, 3}, 2, {0}, 1, 1, 1);
    refused("destinations[0] = -1", {0}, 1, {-1}, 1, 1, 1);
    refused("names rank 2 twice", {2, 1, 2}, 3, {0}, 1, 1, 1);
    refused("unitcount 2 does not divide totalcount 3", {0}, 1, {1}, 1, 2, 3);
    refused("unitcount 4 does not divide totalcount 2", {0}, 1, {1}, 1, 4, 2);
    const int list[] = {2, 0};
    EXPECT_TRUE(fails(tuttiScatterGather(x.data(), x.data() + 1, list, 2, list, 2, 2, 4, tuttiInt32, nullptr, nullptr),
                      bad, "comm is NULL"));
  });
}

struct Setup {
  int ranks;
  Layout layout;
  const char* transport;
};

class CountsMismatch : public ::testing::TestWithParam<Setup> {
 protected:
  /// `body` calls something that differs between ranks, on a communicator that has worked before.
  static void run(const std::function<tuttiResult_t(Seat&, tuttiComm_t)>& body, const std::vector<std::string>& words) {
    launch_ranks({.ranks = GetParam().ranks,
                  .layout = GetParam().layout,
                  .environment = {std::string("TUTTI_TRANSPORT=") + GetParam().transport, "TUTTI_DEBUG=NONE"}},
                 [&](Seat& seat) {
                   const auto comm = seat.init_one();
                   ASSERT_NE(comm, nullptr);
                   EXPECT_EQ(run_counts_call({.seed = 5}, seat.here(), seat.ranks(), {comm}), "");
                   ASSERT_TRUE(seat.meet());
                   const auto result = body(seat, comm);
                   for (const auto& word : words) EXPECT_TRUE(fails(result, tuttiInvalidUsage, word, comm));
                   EXPECT_EQ(tuttiBarrier(comm, nullptr), tuttiInvalidUsage);
                   ASSERT_TRUE(seat.meet());  // peers read what this rank published
                   EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
                 });
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, CountsMismatch,
                         ::testing::Values(Setup{3, Layout::processes, "auto"}, Setup{4, Layout::threads, "mapped"},
                                           Setup{3, Layout::processes, "slots"}, Setup{3, Layout::processes, "socket"},
                                           Setup{3, Layout::processes, "rdma"}),
                         [](const auto& test) {
                           return fmt::format("{}_{}_{}", name(test.param.layout), test.param.ranks,
                                              test.param.transport);
                         });

/// Rank 1 sends rank 0 one element more than that wants, or the other way round.
TEST_P(CountsMismatch, NamesBothRanksAndBothNumbers) {
  constexpr std::array kinds = {Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all, Kind::gather, Kind::scatter};
  for (const Kind kind : kinds)
    for (const Mix memory : {Mix::mapped, Mix::heap}) {
      const int ranks = GetParam().ranks;
      const CountsCall call{.kind = kind, .root = 0, .memory = memory, .seed = 12};
      // In a scatter it is rank 1 that receives.
      const int from = kind == Kind::scatter ? 0 : 1, to = 1 - from;
      const std::size_t right = call.count(from, to, ranks);
      const std::size_t sent = kind == Kind::scatter ? right : right + 1;
      const std::size_t wanted = kind == Kind::scatter ? right + 1 : right;
      const auto body = [&](Seat& seat, tuttiComm_t comm) {
        CountsOnRank mine(call, seat.rank(), ranks);
        if (seat.rank() == 1) switch (kind) {
            case Kind::all_gather: ++mine.counts(true)[0], ++mine.counts(false)[1]; break;
            case Kind::gather: ++mine.counts(true)[0]; break;
            case Kind::scatter: ++mine.counts(false)[0]; break;
            default: ++mine.counts(true)[0]; break;
          }
        const auto result = mine.submit(comm);
        EXPECT_TRUE(seat.rank() == 1 || mine.untouched()) << call.text();
        return result;
      };
      SCOPED_TRACE(call.text());
      run(body, {"ranks disagree",
                 fmt::format("rank {} sends {} elements to rank {}, which wants {}", from, sent, to, wanted),
                 "Nothing was written"});
    }
}

TEST_P(CountsMismatch, OfFormsIsToldAsOfCollectives) {
  std::vector<int> x(64), y(64);
  const std::vector<std::size_t> twos(8, 2);
  run(
      [&](Seat& seat, tuttiComm_t comm) {
        if (seat.rank() == 1) return tuttiAllGather(x.data(), y.data(), 2, tuttiInt32, comm, nullptr);
        return tuttiAllGatherV(x.data(), 2, y.data(), twos.data(), nullptr, tuttiInt32, comm, nullptr);
      },
      {"collective mismatch", "AllGather count=2 int32", "AllGatherV int32"});
  const std::vector<int> some = {0, 2}, others = {2, 0};
  run(
      [&](Seat& seat, tuttiComm_t comm) {
        const auto& list = seat.rank() == 1 ? some : others;
        return tuttiScatterGather(x.data(), y.data(), list.data(), 2, some.data(), 2, 2, 4, tuttiInt32, comm, nullptr);
      },
      {"collective mismatch", "ScatterGather unitcount=2 int32"});
}

}  // namespace
}  // namespace tutti::testing
