// Communicators made from communicators: who is in which, as the definition says; and all of them work at once.
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>

#include "support/call.h"
#include "support/descriptors.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

constexpr int ranks = 6;

class Split : public ::testing::TestWithParam<Layout> {
 protected:
  /// Body gets one handle per rank driven here.
  static void run(const std::function<void(Seat&, const std::vector<tuttiComm_t>&)>& body) {
    launch_ranks({.ranks = ranks, .layout = GetParam()}, [&](Seat& seat) {
      const auto comms = seat.init();
      ASSERT_FALSE(comms.empty());
      body(seat, comms);
      for (const auto comm : comms) EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, Split,
                         ::testing::Values(Layout::threads, Layout::processes, Layout::pairs, Layout::one_thread),
                         [](const auto& test) { return name(test.param); });

struct AlgorithmFilter {
  int color;
  int key;
};

/// Few colors and keys, so that both repeat.
std::vector<AlgorithmFilter> random_filters(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<AlgorithmFilter> filters;
  for (int rank = 0; rank < ranks; ++rank)
    filters.push_back({static_cast<int>(random() % 4) - 1, static_cast<int>(random() % 3) - 1});
  return filters;
}

/// The parent's ranks that form the communicator `rank` gets, in its order; none for a rank without a color.
std::vector<int> members_by_definition(const std::vector<AlgorithmFilter>& filters, int rank) {
  std::vector<int> members;
  if (filters[rank].color == TUTTI_SPLIT_NOCOLOR) return members;
  for (int other = 0; other < static_cast<int>(filters.size()); ++other)
    if (filters[other].color == filters[rank].color) members.push_back(other);
  std::ranges::sort(members, {}, [&](int other) { return std::pair(filters[other].key, other); });
  return members;
}

/// Size, place, and that exactly the members' contributions arrive, in order.
void expect_members(tuttiComm_t comm, const std::vector<int>& members, int me) {
  int count = -1;
  int place = -1;
  ASSERT_TRUE(ok(tuttiCommCount(comm, &count)));
  ASSERT_TRUE(ok(tuttiCommUserRank(comm, &place)));
  EXPECT_EQ(count, static_cast<int>(members.size()));
  ASSERT_LT(place, static_cast<int>(members.size()));
  EXPECT_EQ(members[place], me);
}

struct Made {
  int rank;
  tuttiComm_t comm;
  std::vector<int> members;
};

/// All splits of one thread as one group.
std::vector<Made> split_all(const std::vector<int>& here, const std::vector<tuttiComm_t>& comms,
                            const std::vector<AlgorithmFilter>& filters) {
  std::vector<tuttiComm_t> out(comms.size(), reinterpret_cast<tuttiComm_t>(0x1));
  EXPECT_TRUE(ok(tuttiGroupStart()));
  for (std::size_t i = 0; i < comms.size(); ++i)
    EXPECT_TRUE(ok(tuttiCommSplit(comms[i], filters[here[i]].color, filters[here[i]].key, &out[i], nullptr)));
  EXPECT_TRUE(ok(tuttiGroupEnd()));
  std::vector<Made> made;
  for (std::size_t i = 0; i < comms.size(); ++i) {
    auto members = members_by_definition(filters, here[i]);
    EXPECT_EQ(out[i] == nullptr, members.empty()) << "rank " << here[i];
    if (!members.empty() && out[i] != nullptr) made.push_back({here[i], out[i], std::move(members)});
  }
  return made;
}

/// Gathers each rank's number over its communicator, all in one group. Then destroys.
void expect_gathered_and_destroy(const std::vector<Made>& made) {
  std::vector<std::vector<int>> got;
  std::vector<int> mine;
  for (const auto& one : made) {
    got.emplace_back(one.members.size(), -1);
    mine.push_back(one.rank);
  }
  ASSERT_TRUE(ok(tuttiGroupStart()));
  for (std::size_t i = 0; i < made.size(); ++i)
    ASSERT_TRUE(ok(tuttiAllGather(&mine[i], got[i].data(), 1, tuttiInt32, made[i].comm, nullptr)));
  ASSERT_TRUE(ok(tuttiGroupEnd()));
  for (std::size_t i = 0; i < made.size(); ++i) {
    EXPECT_EQ(got[i], made[i].members);
    expect_members(made[i].comm, made[i].members, made[i].rank);
    EXPECT_TRUE(ok(tuttiCommDestroy(made[i].comm)));
  }
}

TEST_P(Split, RandomColorsAndKeysGiveWhatTheDefinitionSays) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    for (std::uint64_t round = 0; round < 15; ++round) {
      seat.doing("round " + std::to_string(round));
      expect_gathered_and_destroy(split_all(seat.here(), comms, random_filters(round)));
      if (::testing::Test::HasFailure()) return;
    }
  });
}

TEST_P(Split, NobodyHasAColor) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    const std::vector<AlgorithmFilter> filters(ranks, {.color = TUTTI_SPLIT_NOCOLOR, .key = 0});
    EXPECT_TRUE(split_all(seat.here(), comms, filters).empty());
  });
}

/// Halves, and halves of those: ranks of the inner ones are still those of the definition.
TEST_P(Split, OfASplit) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    std::vector<AlgorithmFilter> outer_filters;
    for (int rank = 0; rank < ranks; ++rank) outer_filters.push_back({rank / 3, -rank});
    const auto outer = split_all(seat.here(), comms, outer_filters);
    ASSERT_EQ(outer.size(), comms.size());

    std::vector<tuttiComm_t> inner(outer.size());
    ASSERT_TRUE(ok(tuttiGroupStart()));
    for (std::size_t i = 0; i < outer.size(); ++i)
      ASSERT_TRUE(ok(tuttiCommSplit(outer[i].comm, outer[i].rank % 2, 0, &inner[i], nullptr)));
    ASSERT_TRUE(ok(tuttiGroupEnd()));

    std::vector<Made> made;
    for (std::size_t i = 0; i < outer.size(); ++i) {
      std::vector<int> members;
      for (const int member : outer[i].members)
        if (member % 2 == outer[i].rank % 2) members.push_back(member);
      made.push_back({outer[i].rank, inner[i], members});
      EXPECT_TRUE(ok(tuttiCommDestroy(outer[i].comm)));  // the inner one does not need it
    }
    expect_gathered_and_destroy(made);
  });
}

/// Parent and both halves have calls under way at the same time, on a stream each.
TEST_P(Split, WorksBesideItsParent) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    std::vector<AlgorithmFilter> filters;
    for (int rank = 0; rank < ranks; ++rank) filters.push_back({rank % 2, 0});
    const auto halves = split_all(seat.here(), comms, filters);
    ASSERT_EQ(halves.size(), comms.size());
    std::vector<tuttiStream_t> streams(2 * comms.size());
    for (auto& stream : streams) ASSERT_TRUE(ok(tuttiStreamCreate(&stream)));
    constexpr int times = 25;
    std::vector<std::vector<std::uint64_t>> x(2 * comms.size(), std::vector<std::uint64_t>(10'000, 1));
    for (int time = 0; time < times; ++time)
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_TRUE(ok(tuttiAllReduce(x[i].data(), x[i].data(), x[i].size(), tuttiUint64, tuttiSum,
                                      i % 2 == 0 ? comms[i / 2] : halves[i / 2].comm, streams[i])));
    std::array<std::uint64_t, 2> expected = {1, 1};
    for (int time = 0; time < times; ++time) expected = {expected[0] * ranks, expected[1] * ranks / 2};
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_TRUE(ok(tuttiStreamDestroy(streams[i])));
      EXPECT_EQ(x[i].front(), expected[i % 2]);
      EXPECT_EQ(std::ranges::count(x[i], expected[i % 2]), static_cast<std::ptrdiff_t>(x[i].size()));
    }
    expect_gathered_and_destroy(halves);
  });
}

/// Random lists of ranks in random order; who is not listed does nothing.
TEST_P(Split, GroupsFromListsOfRanks) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    std::mt19937_64 random(5);
    for (int round = 0; round < 10; ++round) {
      seat.doing("round " + std::to_string(round));
      std::vector<int> order(ranks);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::shuffle(order, random);
      const auto cut = static_cast<std::ptrdiff_t>(1 + random() % (ranks - 1));
      const std::vector<int> first(order.begin(), order.begin() + cut);
      const std::vector<int> second(order.begin() + cut, order.end() - (round % 2));  // in odd rounds one stays out

      std::vector<Made> made;
      for (const int rank : seat.here()) {
        const bool in_second = std::ranges::find(second, rank) != second.end();
        if (std::ranges::find(first, rank) != first.end() || in_second)
          made.push_back({rank, nullptr, in_second ? second : first});
      }
      ASSERT_TRUE(ok(tuttiGroupStart()));
      for (auto& one : made)
        ASSERT_TRUE(ok(tuttiCommCreateGroup(comms[one.rank - seat.here().front()], one.members.data(),
                                            static_cast<int>(one.members.size()), &one.comm, nullptr)));
      ASSERT_TRUE(ok(tuttiGroupEnd()));
      expect_gathered_and_destroy(made);
      if (::testing::Test::HasFailure()) return;
    }
  });
}

/// Many live at once, and cost no descriptor.
TEST(ManySplits, KeepNoDescriptors) {
  launch_ranks({.ranks = 3}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    std::vector<tuttiComm_t> all;
    std::ptrdiff_t before = 0;
    for (int i = 0; i < 40; ++i) {
      tuttiComm_t made = nullptr;
      ASSERT_TRUE(ok(tuttiCommSplit(comm, i % 2 == 0 ? 0 : seat.rank() % 2, -seat.rank(), &made, nullptr)));
      ASSERT_NE(made, nullptr);
      all.push_back(made);
      // The first ones open what the process keeps.
      if (i == 1) before = open_descriptors();
    }
    EXPECT_TRUE(descriptors_fall_to(before)) << open_descriptors() << " instead of " << before;
    for (const auto made : all) {
      int count = 0, rank = 0;
      ASSERT_TRUE(ok(tuttiCommCount(made, &count)));
      ASSERT_TRUE(ok(tuttiCommUserRank(made, &rank)));
      ASSERT_EQ(run_call({.count = 700, .seed = 3}, {rank}, count, {made}), "");
    }
    for (const auto made : all) EXPECT_TRUE(ok(tuttiCommDestroy(made)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// Rank 1 has no descriptor left for its memory. Those of its color hear why, the others are not concerned, and the
/// parent is as good as before.
TEST(ManySplits, OfARankThatCannotJoinFailForItsColor) {
  launch_ranks({.ranks = 4}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    tuttiComm_t made = nullptr;
    rlimit usual{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
    if (seat.rank() == 1) {
      const rlimit none{.rlim_cur = 3, .rlim_max = usual.rlim_max};
      ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    }
    const auto result = tuttiCommSplit(comm, seat.rank() / 2, 0, &made, nullptr);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
    if (seat.rank() < 2)
      EXPECT_TRUE(fails(result, tuttiSystemError, seat.rank() == 0 ? "rank 1 could not join" : ""));
    else
      EXPECT_TRUE(ok(result));
    EXPECT_EQ(run_call({.count = 10, .seed = 3}, seat.here(), seat.ranks(), {comm}), "");
    if (made != nullptr) {
      EXPECT_TRUE(ok(tuttiCommDestroy(made)));
    }
    ASSERT_TRUE(ok(tuttiCommSplit(comm, 0, 0, &made, nullptr)));
    EXPECT_EQ(run_call({.count = 10, .seed = 3}, seat.here(), seat.ranks(), {made}), "");
    EXPECT_TRUE(ok(tuttiCommDestroy(made)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST(ManySplits, OfRanksThatDisagreeAreRefused) {
  launch_ranks({.ranks = 3, .layout = Layout::pairs}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    tuttiComm_t made = nullptr;
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    config.deterministic = seat.rank() == 2 ? 1 : 0;
    EXPECT_TRUE(fails(tuttiCommSplit(comm, 0, 0, &made, &config), tuttiInvalidUsage, "deterministic is 0 on rank 0"));
    EXPECT_EQ(run_call({.count = 10, .seed = 3}, seat.here(), seat.ranks(), {comm}), "");
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST(Ids, ComeInBulk) {
  launch_ranks({.ranks = 1}, [](Seat&) {
    std::vector<tuttiUniqueId> ids(64);
    EXPECT_TRUE(fails(tuttiGetUniqueIds(nullptr, 1), tuttiInvalidArgument, "ids is NULL"));
    EXPECT_TRUE(ok(tuttiGetUniqueIds(nullptr, 0)));
    ASSERT_TRUE(ok(tuttiGetUniqueIds(ids.data(), 1)));
    const auto before = open_descriptors();
    ASSERT_TRUE(ok(tuttiGetUniqueIds(ids.data() + 1, 63)));
    EXPECT_TRUE(descriptors_fall_to(before));
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) EXPECT_NE(std::memcmp(&ids[i], &ids[j], sizeof ids[i]), 0);
    tuttiComm_t comm = nullptr;
    ASSERT_TRUE(ok(tuttiCommInitRank(&comm, 1, ids[40], 0)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (i != 40) {
        EXPECT_TRUE(ok(tuttiDropUniqueId(&ids[i])));
      }
  });
}

TEST(SplitArguments, AreChecked) {
  launch_ranks({.ranks = 2}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    tuttiComm_t made = nullptr;
    const auto group = [&](std::vector<int> list) {
      return tuttiCommCreateGroup(comm, list.data(), static_cast<int>(list.size()), &made, nullptr);
    };
    const int other = 1 - seat.rank();
    EXPECT_TRUE(fails(tuttiCommSplit(comm, -2, 0, &made, nullptr), tuttiInvalidArgument, "color"));
    EXPECT_TRUE(fails(tuttiCommSplit(comm, 0, 0, nullptr, nullptr), tuttiInvalidArgument, "newcomm"));
    EXPECT_TRUE(fails(tuttiCommSplit(nullptr, 0, 0, &made, nullptr), tuttiInvalidArgument, "comm is NULL"));
    EXPECT_TRUE(fails(group({other}), tuttiInvalidArgument, "not in ranks"));
    EXPECT_TRUE(fails(group({0, 0}), tuttiInvalidArgument, "distinct"));
    EXPECT_TRUE(fails(group({0, 2}), tuttiInvalidArgument, "ranks of comm"));
    EXPECT_TRUE(fails(group({-1, 1}), tuttiInvalidArgument, "ranks of comm"));
    EXPECT_TRUE(fails(group({}), tuttiInvalidArgument, "ranks"));
    EXPECT_TRUE(fails(group({0, 1, 0}), tuttiInvalidArgument, "nranks 3"));
    EXPECT_TRUE(ok(tuttiBarrier(comm, nullptr)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
