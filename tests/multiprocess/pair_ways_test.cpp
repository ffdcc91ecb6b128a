// Each pair of ranks by its own way: blocks stay in their buffers inside a host, and leave it once for each other host.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "support/call.h"
#include "support/counts_call.h"
#include "support/cut_off.h"
#include "support/host_start.h"
#include "support/random.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

struct Place {
  int hosts;
  int each;    ///< ranks of a host
  bool turns;  ///< ranks are numbered in turns over hosts, otherwise in blocks
  int host_of(int rank) const { return turns ? rank % hosts : rank / each; }
};

/// Bytes that the calling thread's host has sent so far.
std::uint64_t sent_by_host() {
  std::ifstream devices("/proc/thread-self/net/dev");
  for (std::string line; std::getline(devices, line);) {
    const auto name = line.find("eth0:");
    if (name == std::string::npos) continue;
    std::istringstream fields(line.substr(name + 5));
    std::uint64_t value = 0;
    for (int field = 0; field < 9; ++field) fields >> value;
    return value;
  }
  ADD_FAILURE() << "no counters of eth0";
  return 0;
}

/// Memory of other ranks and of this one that is mapped here.
int segments() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("/memfd:tutti") != std::string::npos ? 1 : 0;
  return count;
}

class PairWays : public ::testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    if (const auto why = NetNamespaces::unavailable()) GTEST_SKIP() << *why;
  }
  /// A few all-reduces; `sent`: words of the board, by rank: what its host has sent; `more`: segments mapped in them.
  void run(const std::vector<std::string>& environment, Mix memory);

  static constexpr std::size_t bytes = 4 << 20;
  static constexpr int calls = 3;
  std::vector<std::uint64_t> sent_;
  std::vector<std::uint64_t> mapped_;
};

void PairWays::run(const std::vector<std::string>& environment, Mix memory) {
  const Place shape = GetParam();
  const int ranks = shape.hosts * shape.each;
  const NetNamespaces net({.hosts = shape.hosts});
  ASSERT_TRUE(net.made());
  Workers workers({.ranks = ranks, .environment = environment, .words = 2 * static_cast<std::size_t>(ranks)},
                  [&](Seat& seat) {
                    const auto comm = start_on(seat, net, shape.host_of(seat.rank()));
                    ASSERT_NE(comm, nullptr);
                    const auto rank = static_cast<std::size_t>(seat.rank());
                    const Call call{.count = bytes / sizeof(float), .memory = memory, .seed = 7};
                    CallOnRank mine(call, seat.rank(), seat.ranks());
                    std::uint64_t before = 0;
                    int known = 0;
                    for (int i = 0; i < 1 + calls; ++i) {
                      mine.fill(static_cast<std::uint64_t>(i));
                      ASSERT_TRUE(seat.meet());
                      if (i == 0) known = segments();
                      if (i == 1) before = sent_by_host();
                      ASSERT_TRUE(seat.meet());
                      ASSERT_TRUE(ok(mine.submit(comm)));
                      ASSERT_EQ(mine.check(), "");
                    }
                    seat.board()
                        .word(static_cast<std::size_t>(seat.ranks()) + rank)
                        .store(static_cast<std::uint64_t>(segments() - known));
                    ASSERT_TRUE(seat.meet());
                    seat.board().word(rank).store(sent_by_host() - before);
                    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
                  });
  ASSERT_TRUE(workers.finish());
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
    sent_.push_back(workers.board().word(rank).load());
    mapped_.push_back(workers.board().word(static_cast<std::size_t>(ranks) + rank).load());
  }
}

/// A host must send its share of the sums to all other hosts, and get theirs: 2 · bytes · (hosts − 1) / hosts, however
/// many ranks it has. The rest is headers, acknowledgements and signs of life.
TEST_P(PairWays, AnAllReduceLeavesAHostOnce) {
  run({"TUTTI_ALGO=allreduce:hierarchical"}, Mix::mapped);
  const auto least = static_cast<double>(2 * bytes * calls) * (GetParam().hosts - 1) / GetParam().hosts;
  for (std::size_t rank = 0; rank < sent_.size(); ++rank) {
    EXPECT_GE(static_cast<double>(sent_[rank]), least) << rank;
    EXPECT_LE(static_cast<double>(sent_[rank]), 1.1 * least) << rank;
  }
}

TEST_P(PairWays, BlocksStayInMappedBuffers) {
  run({"TUTTI_ALGO=allreduce:hierarchical"}, Mix::mapped);
  for (std::size_t rank = 0; rank < mapped_.size(); ++rank)
    EXPECT_GE(mapped_[rank], static_cast<std::uint64_t>(GetParam().each - 1)) << rank << " reads its mates' buffers";
}

TEST_P(PairWays, OrdinaryBuffersAreNotMapped) {
  run({"TUTTI_ALGO=allreduce:hierarchical"}, Mix::heap);
  run({"TUTTI_ALGO=allreduce:hierarchical", "TUTTI_TRANSPORT=cma"}, Mix::heap);
  run({"TUTTI_ALGO=allreduce:hierarchical", "TUTTI_TRANSPORT=slots"}, Mix::mapped);
  for (const std::uint64_t more : mapped_) EXPECT_EQ(more, 0U);
}

/// Every block that can stays in its buffer, and slots are small, so that many messages are under way.
TEST_P(PairWays, AllCallsGiveWhatTheyShould) {
  const Place shape = GetParam();
  const NetNamespaces net({.hosts = shape.hosts});
  ASSERT_TRUE(net.made());
  for (const char* transport : {"auto", "cma"})
    launch_ranks({.ranks = shape.hosts * shape.each,
                  .environment = {std::string("TUTTI_TRANSPORT=") + transport, "TUTTI_ZCOPY_THRESHOLD=64",
                                  "TUTTI_BUFFSIZE=4096"},
                  .limit = std::chrono::seconds(120)},
                 [&](Seat& seat) {
                   const auto comm = start_on(seat, net, shape.host_of(seat.rank()));
                   ASSERT_NE(comm, nullptr);
                   for (int i = 0; i < share_of(60); ++i) {
                     const auto seed = mix(test_seed(), static_cast<std::uint64_t>(i));
                     CountsCall counts = random_counts_call(seed, seat.ranks());
                     if (counts.memory == Mix::device) counts.memory = Mix::mapped;
                     seat.doing(counts.text());
                     ASSERT_EQ(run_counts_call(counts, seat.here(), seat.ranks(), {comm}), "") << counts.text();
                     const Call plain{.kind = static_cast<Kind>(i % kind_count),
                                      .count = seed % 9000,
                                      .root = i % seat.ranks(),
                                      .in_place = static_cast<InPlace>(i % 3),
                                      .memory = static_cast<Mix>(i % mix_count),
                                      .misaligned = i % 2 == 0 ? 0u : 4u,
                                      .seed = seed};
                     seat.doing(plain.text());
                     ASSERT_EQ(run_call(plain, seat.here(), seat.ranks(), {comm}), "") << plain.text();
                   }
                   EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
                 });
}

/// Also to its mates, which may be reading its buffer, or wait until it has read theirs.
TEST(PairWaysOf, ARankThatIsKilledIsToldToAll) {
  if (const auto why = NetNamespaces::unavailable()) GTEST_SKIP() << *why;
  constexpr int hosts = 2;
  for (const Memory memory : {Memory::mapped, Memory::heap}) {
    const NetNamespaces net({.hosts = hosts});
    ASSERT_TRUE(net.made());
    const std::string transport = memory == Memory::heap ? "cma" : "auto";
    Workers workers({.ranks = 3 * hosts, .environment = {"TUTTI_DEBUG=NONE", "TUTTI_TRANSPORT=" + transport}},
                    [&](Seat& seat) { call_until_told(seat, net, hosts, death_limit_s, "rank 2/6", memory); });
    ASSERT_TRUE(note_under_way(workers));
    workers.kill(2);
    EXPECT_TRUE(workers.finish()) << transport;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Places, PairWays, ::testing::Values(Place{2, 2, false}, Place{2, 2, true}, Place{3, 2, false}, Place{2, 4, true}),
    [](const auto& test) {
      return fmt::format("{}_hosts_of_{}{}", test.param.hosts, test.param.each, test.param.turns ? "_in_turns" : "");
    });

}  // namespace
}  // namespace tutti::testing
