// Ranks of which one calls something else, each pair of calls once: all hear of it at their next call, at finalize or
// at destroy, whether or not any of them had to wait for another.
#include <chrono>
#include <memory>

#include "base/limits.h"
#include "support/counts_call.h"
#include "support/launch_ranks.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double told_limit_s = 1;

/// A collective, with one count or one per rank.
struct AnyCall {
  Call call = {};
  bool counts = false;

  /// As messages name it.
  std::string title() const {
    std::string text;
    bool upper = true;
    for (const char c : std::string(name(call.kind))) {
      if (c != '_') text += upper ? static_cast<char>(std::toupper(c)) : c;
      upper = c == '_';
    }
    return text + (counts ? "V" : "");
  }
};

/// What one rank needs for it.
class AnyOnRank {
 public:
  AnyOnRank(const AnyCall& any, int rank, int ranks) {
    if (any.counts)
      counts_ = std::make_unique<CountsOnRank>(
          CountsCall{.kind = any.call.kind, .sizes = Sizes::few, .root = any.call.root, .seed = 3}, rank, ranks);
    else
      plain_ = std::make_unique<CallOnRank>(any.call, rank, ranks);
  }
  tuttiResult_t submit(tuttiComm_t comm) { return counts_ ? counts_->submit(comm) : plain_->submit(comm); }

 private:
  std::unique_ptr<CountsOnRank> counts_;
  std::unique_ptr<CallOnRank> plain_;
};

/// Ranks whose data `rank` gets in its call.
bool needs(const AnyCall& any, int rank, int other) {
  switch (any.call.kind) {
    case Kind::broadcast:
    case Kind::scatter: return rank != any.call.root && other == any.call.root;
    case Kind::reduce:
    case Kind::gather: return rank == any.call.root && other != rank;
    case Kind::scan:
    case Kind::ex_scan: return other < rank;
    default: return rank != other;
  }
}

struct Pair {
  AnyCall usual;
  AnyCall odd;  ///< what one rank calls instead
};

std::vector<AnyCall> all_calls() {
  std::vector<AnyCall> all;
  for (int k = 0; k < kind_count; ++k)
    all.push_back({.call = {.kind = static_cast<Kind>(k), .count = 20, .memory = Mix::heap, .seed = 9}});
  for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all, Kind::gather, Kind::scatter})
    all.push_back({.call = {.kind = kind}, .counts = true});
  return all;
}

std::vector<Pair> pairs() {
  std::vector<Pair> pairs;
  const auto all = all_calls();
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = 0; k < all.size(); ++k)
      if (i != k) pairs.push_back({all[i], all[k]});
  for (const AnyCall& usual : all) {
    const Kind kind = usual.call.kind;
    if (usual.counts || kind == Kind::barrier) continue;
    const auto but = [&](auto change) {
      AnyCall odd = usual;
      change(odd.call);
      pairs.push_back({usual, odd});
    };
    but([](Call& call) { call.count -= 1; });
    but([](Call& call) { call.type = tuttiInt32; });
    if (reduces(kind)) but([](Call& call) { call.op = Op::max; });
    if (kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::gather || kind == Kind::scatter)
      but([](Call& call) { call.root = 1; });
  }
  return pairs;
}

enum class Ending { next_call, finalize, destroy };

/// What comes after the odd call, which must tell of it. The communicator is gone then.
tuttiResult_t end(tuttiComm_t comm, Ending ending) {
  tuttiResult_t result = tuttiSuccess;
  if (ending == Ending::next_call) result = tuttiBarrier(comm, nullptr);
  if (ending == Ending::finalize) result = tuttiCommFinalize(comm);
  const auto destroyed = tuttiCommDestroy(comm);
  return result == tuttiSuccess ? destroyed : result;
}

void expect_told(Seat& seat, const Pair& pair, int odd_rank, Ending ending) {
  const std::string what = pair.usual.title() + " and " + pair.odd.title() + ", odd rank " + std::to_string(odd_rank);
  SCOPED_TRACE(what);
  seat.doing(what);
  const auto comm = seat.init_one();
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(run_call({.count = 50, .seed = 1}, seat.here(), seat.ranks(), {comm}), "");
  ASSERT_TRUE(seat.meet());  // or the error of those who are ahead would end the first call of others
  const bool odd = seat.rank() == odd_rank;
  const AnyCall& mine = odd ? pair.odd : pair.usual;
  AnyOnRank on_rank(mine, seat.rank(), seat.ranks());
  const auto result = on_rank.submit(comm);
  std::string words = tuttiGetLastError(comm);
  for (int other = 0; other < seat.ranks(); ++other)
    EXPECT_FALSE(result == tuttiSuccess && (odd || other == odd_rank) && needs(mine, seat.rank(), other))
        << "it needs what rank " << other << " did not send";
  const auto begun = Clock::now();
  const auto told = end(comm, ending);
  if (result == tuttiSuccess) words = tuttiGetLastError(nullptr);
  EXPECT_LT(std::chrono::duration<double>(Clock::now() - begun).count(), told_limit_s * patience());
  EXPECT_EQ(result == tuttiSuccess ? told : result, tuttiInvalidUsage) << words;
  for (const AnyCall* any : {&pair.usual, &pair.odd})
    EXPECT_NE(words.find(any->title()), std::string::npos) << any->title() << " is not in:\n" << words;
  ASSERT_TRUE(seat.meet());
}

struct Group {
  int ranks;
  const char* transport;
};

class Pairs : public ::testing::TestWithParam<Group> {};

INSTANTIATE_TEST_SUITE_P(Ranks, Pairs,
                         ::testing::Values(Group{2, "auto"}, Group{3, "auto"}, Group{2, "socket"}, Group{3, "socket"},
                                           Group{3, "rdma"}),
                         [](const auto& test) { return std::to_string(test.param.ranks) + test.param.transport; });

TEST_P(Pairs, EveryRankIsTold) {
  const Group setup = GetParam();
  const auto all = pairs();
  // An id for each, of which a board has so many.
  constexpr std::size_t at_once = 60;
  for (std::size_t first = 0; first < all.size(); first += at_once)
    ASSERT_TRUE(launch_ranks(
        {.ranks = setup.ranks, .environment = {std::string("TUTTI_TRANSPORT=") + setup.transport, "TUTTI_DEBUG=NONE"}},
        [&](Seat& seat) {
          for (std::size_t i = first; i < std::min(all.size(), first + at_once); ++i) {
            if (!in_share(static_cast<int>(i))) continue;
            expect_told(seat, all[i], static_cast<int>(i) % seat.ranks(), static_cast<Ending>(i / 3 % 3));
            if (::testing::Test::HasFailure()) return;
          }
        }));
}

/// How many ranks are named as roots.
int roots_in(const std::string& words, int ranks) {
  int roots = 0;
  for (int rank = 0; rank < ranks; ++rank)
    roots += words.find("root=" + std::to_string(rank)) != std::string::npos ? 1 : 0;
  return roots;
}

class Silent : public ::testing::TestWithParam<Group> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Silent,
                         ::testing::Values(Group{2, "auto"}, Group{2, "socket"}, Group{3, "socket"}, Group{3, "rdma"}),
                         [](const auto& test) { return std::to_string(test.param.ranks) + test.param.transport; });

Team team_of(const Group& setup) {
  return {.ranks = setup.ranks, .environment = {std::string("TUTTI_TRANSPORT=") + setup.transport, "TUTTI_DEBUG=NONE"}};
}

/// For which a root does wait.
void open_connections(Seat& seat, tuttiComm_t comm) {
  float x = 0;
  for (int root = 0; root < seat.ranks(); ++root)
    ASSERT_TRUE(ok(tuttiBroadcast(&x, &x, 1, tuttiFloat32, root, comm, nullptr)));
  ASSERT_TRUE(seat.meet());
}

/// Roots wait for nobody: each rank is one, time and again, and then it leaves.
TEST_P(Silent, RanksThatAllBroadcastAsRootAreTold) {
  launch_ranks(team_of(GetParam()), [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    float x = 0;
    open_connections(seat, comm);
    const auto begun = Clock::now();
    int calls = 0;
    auto result = tuttiSuccess;
    for (; result == tuttiSuccess && calls < 1'000; ++calls)
      result = tuttiBroadcast(&x, &x, 1, tuttiFloat32, seat.rank(), comm, nullptr);
    if (result == tuttiSuccess) result = tuttiCommFinalize(comm);
    EXPECT_LT(std::chrono::duration<double>(Clock::now() - begun).count(), told_limit_s * patience());
    const std::string words = tuttiGetLastError(comm);
    EXPECT_EQ(result, tuttiInvalidUsage) << words;
    EXPECT_GE(roots_in(words, seat.ranks()), 2) << words;
    EXPECT_EQ(words.find("Nothing was written"), std::string::npos) << words;
    const bool lines = GetParam().transport == std::string("auto");
    EXPECT_TRUE(calls <= limits::call_descriptors / 2 + 1 || !lines) << calls;
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// One call differs, thousands of equal ones follow before anybody compares.
TEST_P(Silent, OneDifferenceAmongManyCallsIsNamed) {
  launch_ranks(team_of(GetParam()), [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    std::vector<float> x(2);
    ASSERT_TRUE(seat.meet());
    auto result = tuttiSuccess;
    for (int call = 1; call < 3'000 && result == tuttiSuccess; ++call)
      // Rank 0 is the root of all but that one, in which all ranks are.
      result = tuttiBroadcast(x.data(), x.data(), 2, tuttiFloat32, call == 7 ? seat.rank() : 0, comm, nullptr);
    std::string words = tuttiGetLastError(comm);
    if (result == tuttiSuccess) {
      result = tuttiCommFinalize(comm);
      words = tuttiGetLastError(comm);
    }
    EXPECT_EQ(result, tuttiInvalidUsage) << words;
    EXPECT_NE(words.find("#7"), std::string::npos) << words;
    EXPECT_GE(roots_in(words, seat.ranks()), 2) << words;  // of any two ranks that compare first
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// A call that waits for nobody, made by one rank more often than by the others.
TEST_P(Silent, OneCallMoreIsToldToBothWhenTheyLeave) {
  launch_ranks(team_of(GetParam()), [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    float x = 0;
    ASSERT_TRUE(ok(tuttiAllReduce(&x, &x, 1, tuttiFloat32, tuttiSum, comm, nullptr)));
    ASSERT_TRUE(seat.meet());
    if (seat.rank() == 0) {
      ASSERT_TRUE(ok(tuttiBroadcast(&x, &x, 1, tuttiFloat32, 0, comm, nullptr)));
    }
    ASSERT_TRUE(seat.meet());
    EXPECT_TRUE(fails(tuttiCommDestroy(comm), tuttiInvalidUsage, "#2 Broadcast"));
    EXPECT_TRUE(fails(tuttiInvalidUsage, tuttiInvalidUsage, "#1 AllReduce"));
  });
}

/// A root that has done its part need not wait for ranks that have not come yet, though it is about to leave.
TEST_P(Silent, ARootThatLeavesIsNotHeldUp) {
  launch_ranks(team_of(GetParam()), [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    float x = 0;
    open_connections(seat, comm);
    if (seat.rank() == 0) x = 4711;
    if (seat.rank() == 0) {
      ASSERT_TRUE(ok(tuttiBroadcast(&x, &x, 1, tuttiFloat32, 0, comm, nullptr)));
      const auto begun = Clock::now();
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      EXPECT_LT(std::chrono::duration<double>(Clock::now() - begun).count(), told_limit_s * patience());
      seat.board().raise(0, 1);
    } else {
      ASSERT_TRUE(seat.board().wait_for(0, 1));
      ASSERT_TRUE(ok(tuttiBroadcast(&x, &x, 1, tuttiFloat32, 0, comm, nullptr)));
      EXPECT_EQ(x, 4711);
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    }
  });
}

}  // namespace
}  // namespace tutti::testing
