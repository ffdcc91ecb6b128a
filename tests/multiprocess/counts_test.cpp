// Collectives with a count per rank, and tuttiScatterGather: any counts, displacements, types, operators and memory
// give what they should, whatever the access, and nothing between the blocks is touched.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "support/counts_call.h"
#include "support/random.h"
#include "support/reference_reduce.h"
#include "support/setup.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

class Counts : public ::testing::TestWithParam<Setup> {
 protected:
  static void run(const std::function<void(Seat&, const std::vector<tuttiComm_t>&)>& body) {
    with_communicators(GetParam(), body);
  }
};

INSTANTIATE_TEST_SUITE_P(
    Layouts, Counts,
    ::testing::Values(Setup{1, Layout::processes, "auto"}, Setup{2, Layout::processes, "auto"},
                      Setup{3, Layout::processes, "mapped"}, Setup{4, Layout::processes, "cma"},
                      Setup{5, Layout::processes, "slots"}, Setup{6, Layout::pairs, "auto"},
                      Setup{4, Layout::threads, "auto"}, Setup{3, Layout::threads, "slots"},
                      Setup{8, Layout::one_thread, "auto"}, Setup{7, Layout::one_thread, "slots"},
                      Setup{5, Layout::one_thread, "cma"}, Setup{20, Layout::one_thread, "slots", "pairwise,ring"},
                      Setup{20, Layout::one_thread, "mapped"}, Setup{4, Layout::processes, "socket"},
                      Setup{6, Layout::pairs, "socket"}, Setup{4, Layout::processes, "rdma"},
                      Setup{6, Layout::one_thread, "slots", "circulant"}, Setup{5, Layout::threads, "slots", "ring"},
                      Setup{4, Layout::one_thread, "slots", "spread_out"}),
    name_of_setup);

TEST_P(Counts, EveryCallGivesWhatItShould) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    const int calls = share_of(seat.ranks() > 8 ? 40 : 120);
    for (int i = 0; i < calls; ++i) {
      const CountsCall call = random_counts_call(mix(test_seed(), static_cast<std::uint64_t>(i)), seat.ranks());
      seat.doing(call.text());
      ASSERT_EQ(run_counts_call(call, seat.here(), seat.ranks(), comms), "") << call.text();
      // In between, calls of other forms on the same lines and slots.
      if (i % 5 == 0) {
        const Call plain{.kind = static_cast<Kind>(i / 5 % kind_count), .count = i % 2 == 0 ? 10u : 3000u, .seed = 8};
        ASSERT_EQ(run_call(plain, seat.here(), seat.ranks(), comms), "") << plain.text();
      }
    }
  });
}

/// Each rank has data for higher ones alone, so no rank but the last begins by receiving; between hosts, connections
/// that counts did not need open in this call.
TEST_P(Counts, GoToHigherRanksAlone) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    const auto ranks = static_cast<std::size_t>(seat.ranks());
    const bool grouped = comms.size() > 1;
    std::vector<std::vector<int>> sent(comms.size()), got(comms.size());
    ASSERT_TRUE(!grouped || ok(tuttiGroupStart()));
    for (std::size_t i = 0; i < comms.size(); ++i) {
      const auto rank = static_cast<std::size_t>(seat.here()[i]);
      std::vector<std::size_t> to(ranks), from(ranks);
      for (std::size_t peer = 0; peer < ranks; ++peer) {
        to[peer] = peer > rank ? 3 : 0;
        from[peer] = peer < rank ? 3 : 0;
      }
      sent[i].assign(3 * ranks, static_cast<int>(rank));
      got[i].assign(3 * ranks, -1);
      ASSERT_TRUE(ok(tuttiAllToAllV(sent[i].data(), to.data(), nullptr, got[i].data(), from.data(), nullptr, tuttiInt32,
                                    comms[i], nullptr)));
    }
    ASSERT_TRUE(!grouped || ok(tuttiGroupEnd()));
    for (std::size_t i = 0; i < comms.size(); ++i)
      for (std::size_t k = 0; k < 3 * ranks; ++k)
        EXPECT_EQ(got[i][k], k < 3 * static_cast<std::size_t>(seat.here()[i]) ? static_cast<int>(k / 3) : -1);
  });
}

/// Several calls under way on one stream: each keeps the counts it was given, whatever becomes of the arrays.
TEST_P(Counts, WaitOnStreamsAndInGroups) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    tuttiStream_t stream = nullptr;
    std::vector<tuttiStream_t> streams;
    for (std::size_t i = 0; i < comms.size(); ++i) {
      ASSERT_TRUE(ok(tuttiStreamCreate(&stream)));
      streams.push_back(stream);
    }
    for (const bool grouped : {false, true}) {
      std::vector<std::unique_ptr<CountsOnRank>> parts;
      std::vector<std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> given;
      if (grouped) {
        ASSERT_TRUE(ok(tuttiGroupStart()));
      }
      for (int call = 0; call < 6; ++call)
        for (std::size_t i = 0; i < comms.size(); ++i) {
          const auto made = random_counts_call(mix(test_seed(), 77, static_cast<std::uint64_t>(call)), seat.ranks());
          parts.push_back(std::make_unique<CountsOnRank>(made, seat.here()[i], seat.ranks()));
          given.emplace_back(parts.back()->counts(true), parts.back()->counts(false));
          ASSERT_TRUE(ok(parts.back()->submit(comms[i], streams[i])));
          for (const bool send : {true, false}) std::ranges::fill(parts.back()->counts(send), 12345);
        }
      if (grouped) {
        ASSERT_TRUE(ok(tuttiGroupEnd()));
      }
      for (const auto each : streams) ASSERT_TRUE(ok(tuttiStreamSynchronize(each)));
      for (std::size_t i = 0; i < parts.size(); ++i) {
        parts[i]->counts(true) = given[i].first;
        parts[i]->counts(false) = given[i].second;
        EXPECT_EQ(parts[i]->check(), "");
      }
    }
    for (const auto each : streams) EXPECT_TRUE(ok(tuttiStreamDestroy(each)));
  });
}

/// The arguments of one tuttiScatterGather.
struct Lists {
  std::vector<int> sources, destinations;
  std::size_t unit = 0, units = 1;
  tuttiDataType_t type = tuttiInt32;
};

std::vector<int> some_ranks(Random& random, int ranks) {
  std::vector<int> list(static_cast<std::size_t>(ranks));
  std::iota(list.begin(), list.end(), 0);
  if (random.chance(40)) return list;
  for (int i = ranks; i > 1; --i)
    std::swap(list[static_cast<std::size_t>(i - 1)], list[static_cast<std::size_t>(random.below(i))]);
  list.resize(static_cast<std::size_t>(random.chance(40) ? 1 : random.between(1, ranks)));
  return list;
}

Lists random_lists(std::uint64_t seed, int ranks) {
  Random random(seed);
  Lists lists{.sources = some_ranks(random, ranks), .destinations = some_ranks(random, ranks)};
  lists.unit = static_cast<std::size_t>(random.chance(20) ? random.below(40) : random.below(5000));
  const std::array units = {std::size_t{1}, lists.destinations.size(), static_cast<std::size_t>(random.between(1, 9))};
  lists.units = units[static_cast<std::size_t>(random.below(3))];
  lists.type = type_at(static_cast<std::size_t>(random.below(real_type_count)));
  return lists;
}

/// The place of `rank` in a list; its size if it is not there.
std::size_t place(const std::vector<int>& list, int rank) {
  return static_cast<std::size_t>(std::ranges::find(list, rank) - list.begin());
}

/// One rank's buffers of such a call.
class ListsOnRank {
 public:
  ListsOnRank(const Lists& lists, int rank, int ranks, std::uint64_t seed)
      : lists_(lists), rank_(rank), in_{lists.type, Op::sum, Values::bits, ranks, seed} {
    const auto memory = seed % 3 == 0 ? Memory::heap : Memory::mapped;
    const std::size_t total = lists.unit * lists.units, bytes = size_of(lists.type);
    send_ = std::make_unique<Buffer>(memory, total * bytes, seed % 5);
    recv_ = std::make_unique<Buffer>(memory, lists.unit * lists.sources.size() * bytes, seed % 7);
    write_inputs(in_, rank, send_->data(), 0, total);
  }

  tuttiResult_t submit(tuttiComm_t comm) const {
    const bool source = place(lists_.sources, rank_) < lists_.sources.size();
    const bool destination = place(lists_.destinations, rank_) < lists_.destinations.size();
    return tuttiScatterGather(source ? send_->data() : nullptr, destination ? recv_->data() : nullptr,
                              lists_.sources.data(), static_cast<int>(lists_.sources.size()),
                              lists_.destinations.data(), static_cast<int>(lists_.destinations.size()), lists_.unit,
                              lists_.unit * lists_.units, lists_.type, comm, nullptr);
  }
  std::string check() const {
    if (!send_->guards_intact() || !recv_->guards_intact()) return "wrote outside of the buffers";
    const std::size_t j = place(lists_.destinations, rank_);
    if (j == lists_.destinations.size())
      return recv_->poisoned(0, recv_->bytes()) ? "" : "wrote to who is no destination";
    for (std::size_t k = 0; k < lists_.sources.size(); ++k) {
      const std::size_t first = j * lists_.unit % std::max<std::size_t>(1, lists_.unit * lists_.units);
      auto wrong = check_copied(in_, lists_.sources[k], recv_->data() + k * lists_.unit * size_of(lists_.type), first,
                                lists_.unit);
      if (!wrong.empty()) return fmt::format("rank {} from {}: {}", rank_, lists_.sources[k], wrong);
    }
    return check_copied(in_, rank_, send_->data(), 0, lists_.unit * lists_.units);
  }

 private:
  const Lists& lists_;
  int rank_;
  Inputs in_;
  std::unique_ptr<Buffer> send_, recv_;
};

TEST_P(Counts, ScatterGatherGivesWhatItsListsSay) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    const int calls = share_of(seat.ranks() > 8 ? 20 : 50);
    for (int i = 0; i < calls; ++i) {
      const std::uint64_t now = mix(test_seed(), 99, static_cast<std::uint64_t>(i));
      const Lists lists = random_lists(now, seat.ranks());
      seat.doing(fmt::format("scatter-gather {}, seed {}", i, now));
      std::vector<std::unique_ptr<ListsOnRank>> parts;
      for (const int rank : seat.here()) parts.push_back(std::make_unique<ListsOnRank>(lists, rank, seat.ranks(), now));
      const bool grouped = parts.size() > 1;
      ASSERT_TRUE(!grouped || ok(tuttiGroupStart()));
      for (std::size_t k = 0; k < parts.size(); ++k) ASSERT_TRUE(ok(parts[k]->submit(comms[k]))) << i;
      ASSERT_TRUE(!grouped || ok(tuttiGroupEnd()));
      for (const auto& part : parts) ASSERT_EQ(part->check(), "") << "call " << i << " seed " << now;
    }
  });
}

}  // namespace
}  // namespace tutti::testing
