// With `deterministic` in the config the bits of a reduction depend on the number of ranks alone; without it they are
// the same on all ranks at least.
#include <algorithm>
#include <set>

#include "algorithms/algorithm.h"
#include "support/call.h"
#include "support/launch_ranks.h"
#include "support/reference_reduce.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

constexpr std::size_t count = 60'000;  // of float32: 240 KB, many slots

struct Way {
  const char* name;
  Layout layout;
  std::vector<std::string> environment;
  Memory memory;
  bool in_place;
  std::size_t piece;  ///< elements per call
};

std::vector<Way> ways() {
  return {
      {"AsItComes", Layout::processes, {}, Memory::mapped, false, count},
      {"InPlace", Layout::processes, {}, Memory::mapped, true, count},
      {"Fifo", Layout::processes, {"TUTTI_TRANSPORT=slots"}, Memory::heap, false, count},
      {"FifoInPlace", Layout::processes, {"TUTTI_TRANSPORT=slots"}, Memory::heap, true, count},
      {"Window", Layout::processes, {"TUTTI_TRANSPORT=mapped"}, Memory::mapped, false, count},
      {"Pull", Layout::processes, {"TUTTI_TRANSPORT=cma"}, Memory::heap, false, count},
      {"Socket", Layout::processes, {"TUTTI_TRANSPORT=socket"}, Memory::heap, true, count},
      {"Rdma", Layout::processes, {"TUTTI_TRANSPORT=rdma"}, Memory::heap, true, count},
      {"SocketPairs", Layout::pairs, {"TUTTI_TRANSPORT=socket"}, Memory::heap, false, count},
      {"Threads", Layout::threads, {}, Memory::heap, false, count},
      {"OneThread", Layout::one_thread, {}, Memory::heap, true, count},
      {"Pairs", Layout::pairs, {}, Memory::heap, false, count},
      {"SmallSlots", Layout::processes, {"TUTTI_TRANSPORT=slots", "TUTTI_BUFFSIZE=4096"}, Memory::heap, false, count},
      {"OneChannel", Layout::processes, {"TUTTI_TRANSPORT=slots", "TUTTI_NCHANNELS=1"}, Memory::heap, true, count},
      {"ForcedAlgorithm", Layout::threads, {"TUTTI_ALGO=one_shot"}, Memory::heap, false, count},
      {"UnwantedAlgorithm",
       Layout::processes,
       {"TUTTI_ALGO=^two_shot", "TUTTI_TRANSPORT=slots"},
       Memory::heap,
       true,
       count},
      {"Halves", Layout::processes, {}, Memory::mapped, false, count / 2},
      {"Thousands", Layout::processes, {}, Memory::mapped, false, 1'000},
      {"TinyCalls", Layout::threads, {}, Memory::heap, true, 97}};
}

enum class Result { all_reduce, reduce, reduce_scatter, scan, ex_scan };
constexpr std::array result_names = {"all_reduce", "reduce", "reduce_scatter", "scan", "ex_scan"};

bool has_result(Result what, int rank) {
  return what == Result::reduce ? rank == 1 : what != Result::ex_scan || rank > 0;
}

/// One rank's whole result, made by calls on pieces. Reduce-scatter gives this rank's block of it.
tuttiResult_t submit(Result what, const Way& way, std::size_t at, Buffer& in, Buffer& out, int rank, int ranks,
                     tuttiComm_t comm) {
  const std::size_t n = std::min(way.piece, count - at);
  std::byte* const from = in.data() + at * sizeof(float);
  std::byte* const to = way.in_place ? from : out.data() + at * sizeof(float);
  switch (what) {
    case Result::all_reduce: return tuttiAllReduce(from, to, n, tuttiFloat32, tuttiSum, comm, nullptr);
    case Result::reduce: return tuttiReduce(from, to, n, tuttiFloat32, tuttiSum, 1, comm, nullptr);
    case Result::scan: return tuttiScan(from, to, n, tuttiFloat32, tuttiSum, comm, nullptr);
    case Result::ex_scan: return tuttiExScan(from, to, n, tuttiFloat32, tuttiSum, comm, nullptr);
    default: break;
  }
  const std::size_t block = n / static_cast<std::size_t>(ranks);
  return tuttiReduceScatter(from, to + static_cast<std::size_t>(rank) * block * sizeof(float), block, tuttiFloat32,
                            tuttiSum, comm, nullptr);
}

std::uint64_t hash_of(const Buffer& buffer, std::size_t from, std::size_t elements) {
  std::uint64_t hash = 1;
  for (std::size_t i = 0; i < elements; ++i) hash = mix(hash, load<std::uint32_t>(buffer.data(), from + i));
  return hash;
}

/// Word rank of the board: a hash of what the rank has.
void run_rank(Seat& seat, Result what, const Way& way) {
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.deterministic = 1;
  const auto comms = seat.init(&config);
  ASSERT_FALSE(comms.empty());
  Inputs inputs{.type = tuttiFloat32, .values = Values::random, .ranks = seat.ranks(), .seed = 8};
  std::vector<std::unique_ptr<Buffer>> in;
  std::vector<std::unique_ptr<Buffer>> out;
  for (const int rank : seat.here()) {
    in.push_back(std::make_unique<Buffer>(way.memory, count * sizeof(float)));
    out.push_back(std::make_unique<Buffer>(way.memory, count * sizeof(float)));
    write_inputs(inputs, rank, in.back()->data(), 0, count);
  }
  for (std::size_t at = 0; at < count; at += way.piece) {
    ASSERT_TRUE(ok(tuttiGroupStart()));
    for (std::size_t i = 0; i < comms.size(); ++i)
      ASSERT_TRUE(ok(submit(what, way, at, *in[i], *out[i], seat.here()[i], seat.ranks(), comms[i])));
    ASSERT_TRUE(ok(tuttiGroupEnd()));
  }
  for (std::size_t i = 0; i < comms.size(); ++i) {
    const int rank = seat.here()[i];
    const Buffer& result = way.in_place ? *in[i] : *out[i];
    const std::size_t block = count / static_cast<std::size_t>(seat.ranks());
    const bool whole = what != Result::reduce_scatter;
    const std::size_t first = whole ? 0 : static_cast<std::size_t>(rank) * block;
    const std::size_t elements = whole ? count : block;
    if (has_result(what, rank)) {
      inputs.combined = what == Result::scan ? rank + 1 : what == Result::ex_scan ? rank : 0;
      EXPECT_EQ(check_reduced(inputs, result.data() + first * sizeof(float), first, elements), "") << way.name;
      seat.board().word(static_cast<std::size_t>(rank)).store(hash_of(result, first, elements));
    }
    EXPECT_TRUE(ok(tuttiCommDestroy(comms[i])));
  }
}

/// Of two ranks a ring sums up in their order.
Way ring_of_two() {
  return {"RingOfTwo", Layout::processes, {"TUTTI_ALGO=allreduce:ring", "TUTTI_TRANSPORT=slots"}, Memory::heap, false,
          count};
}

enum class Ways { all, in_one_process };

class Deterministic : public ::testing::TestWithParam<std::tuple<Result, Ways>> {};
INSTANTIATE_TEST_SUITE_P(Results, Deterministic,
                         ::testing::Combine(::testing::Values(Result::all_reduce, Result::reduce,
                                                              Result::reduce_scatter, Result::scan, Result::ex_scan),
                                            ::testing::Values(Ways::all, Ways::in_one_process)),
                         [](const auto& test) {
                           return std::string(result_names[static_cast<std::size_t>(std::get<0>(test.param))]) +
                                  (std::get<1>(test.param) == Ways::all ? "" : "_threads");
                         });

TEST_P(Deterministic, BitsDoNotDependOnTheWay) {
  const auto [what, which] = GetParam();
  for (const int ranks : {2, 3, 5}) {
    std::vector<std::uint64_t> expected;
    int nth = 3 * static_cast<int>(what) + ranks;  // every way is in the share of several
    auto all = ways();
    if (ranks == 2) all.push_back(ring_of_two());
    for (const auto& way : all) {
      // Pieces of a reduce-scatter are other blocks: no way to cut it gives the same call.
      if (what == Result::reduce_scatter && way.piece != count) continue;
      const bool one_process = way.layout == Layout::threads || way.layout == Layout::one_thread;
      if (which == Ways::in_one_process ? !one_process : !in_share(nth++)) continue;
      auto environment = way.environment;
      environment.emplace_back("TUTTI_DEBUG=WARN");
      Workers workers({.ranks = ranks, .layout = way.layout, .environment = environment},
                      [&, result = what](Seat& seat) { run_rank(seat, result, way); });
      ASSERT_TRUE(workers.finish()) << way.name;
      std::vector<std::uint64_t> hashes;
      for (int rank = 0; rank < ranks; ++rank) hashes.push_back(workers.board().word(static_cast<std::size_t>(rank)));
      if (expected.empty()) expected = hashes;
      EXPECT_EQ(hashes, expected) << way.name << ", " << ranks << " ranks";
    }
    EXPECT_NE(expected[1], 0u);
  }
}

/// One all-reduce of all ranks in one thread; their results.
void reduce_once(Seat& seat, std::size_t elements) {
  const auto comms = seat.init();
  ASSERT_FALSE(comms.empty());
  const Inputs inputs{.type = tuttiFloat32, .values = Values::random, .ranks = seat.ranks(), .seed = 9};
  std::vector<std::unique_ptr<Buffer>> buffers;
  ASSERT_TRUE(ok(tuttiGroupStart()));
  for (std::size_t i = 0; i < comms.size(); ++i) {
    buffers.push_back(std::make_unique<Buffer>(Memory::heap, elements * sizeof(float)));
    std::byte* const data = buffers.back()->data();
    write_inputs(inputs, seat.here()[i], data, 0, elements);
    ASSERT_TRUE(ok(tuttiAllReduce(data, data, elements, tuttiFloat32, tuttiSum, comms[i], nullptr)));
  }
  ASSERT_TRUE(ok(tuttiGroupEnd()));
  for (std::size_t i = 0; i < comms.size(); ++i) {
    EXPECT_EQ(check_reduced(inputs, buffers[i]->data(), 0, elements), "");
    seat.board().word(static_cast<std::size_t>(seat.here()[i])).store(hash_of(*buffers[i], 0, elements));
    EXPECT_TRUE(ok(tuttiCommDestroy(comms[i])));
  }
}

TEST(AnyAlgorithm, threads_GivesAllRanksTheSameBits) {
  constexpr int ranks = 6;
  std::set<std::uint64_t> results;
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.supports({.collective = Collective::all_reduce, .ranks = ranks})) continue;
    Workers workers({.ranks = ranks,
                     .layout = Layout::one_thread,
                     .environment = {"TUTTI_ALGO=" + algorithm.name, "TUTTI_TRANSPORT=slots", "TUTTI_DEBUG=WARN"}},
                    [](Seat& seat) { reduce_once(seat, 5'003); });
    ASSERT_TRUE(workers.finish()) << algorithm.name;
    const std::uint64_t first = workers.board().word(0);
    for (int rank = 1; rank < ranks; ++rank)
      EXPECT_EQ(workers.board().word(static_cast<std::size_t>(rank)), first) << algorithm.name << ", rank " << rank;
    results.insert(first);
  }
  EXPECT_GT(results.size(), 3u) << "the values hide in which order they are summed up";
}

TEST(Refusal, threads_NamesAlgorithmCollectiveAndThoseThatBelong) {
  for (const Layout layout : {Layout::processes, Layout::threads})
    EXPECT_TRUE(
        launch_ranks({.ranks = 3, .layout = layout, .environment = {"TUTTI_ALGO=allreduce:ring"}}, [](Seat& seat) {
          tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
          config.deterministic = 1;
          tuttiComm_t comm = nullptr;
          const tuttiUniqueId id = seat.next_id();
          EXPECT_TRUE(fails(tuttiCommInitRankConfig(&comm, seat.ranks(), id, seat.here().front(), &config),
                            tuttiInvalidUsage,
                            "TUTTI_ALGO asks for ring, which does not sum up in the order of ranks in "
                            "all_reduce of 3 ranks"));
          EXPECT_TRUE(fails(tuttiCommInitRankConfig(&comm, seat.ranks(), seat.next_id(), seat.here().front(), &config),
                            tuttiInvalidUsage, "those that do: one_shot, two_shot"));
          EXPECT_EQ(comm, nullptr);
        }));
}

}  // namespace
}  // namespace tutti::testing
