#include "support/forced_turns.h"

namespace tutti::testing {
namespace {

constexpr std::size_t first_hash = 8;

/// None travels in call descriptors but barriers.
std::vector<Call> calls_of(Collective collective, int ranks, Mix memory) {
  if (collective == Collective::barrier) return {{.kind = Kind::barrier}};
  const auto kind = static_cast<Kind>(collective);
  std::vector<Call> calls;
  for (const tuttiDataType_t type : {tuttiFloat32, tuttiUint8})
    for (const std::size_t bytes : {std::size_t{9'000}, std::size_t{150'000}}) {
      Call call{.kind = kind, .type = type, .memory = memory, .seed = 40 + calls.size()};
      call.values = kind == Kind::all_reduce && type == tuttiFloat32 ? Values::random
                    : testing::reduces(kind)                         ? Values::exact
                                                                     : Values::bits;
      call.count = count_for(kind, type, ranks, bytes) + 3;
      call.root = rooted(collective) && bytes > 9'000 ? ranks - 1 : 0;
      call.in_place = type == tuttiUint8 ? InPlace::some : InPlace::none;
      calls.push_back(call);
    }
  return calls;
}

Shape shape_of(Collective collective, int ranks, Rank root, const std::vector<int>& hosts) {
  Shape shape{.collective = collective, .ranks = ranks, .root = root};
  if (!hosts.empty()) shape.levels = {hosts};
  return shape;
}

Access access_named(const char* word) {
  for (const Access access : {Access::in_line, Access::mapped, Access::cma, Access::slots})
    if (name(access) == word) return access;
  if (std::string_view(word) == "socket" || std::string_view(word) == "rdma") return Access::slots;
  ADD_FAILURE() << "no such transport: " << word;
  return Access::slots;
}

}  // namespace

std::vector<Turn> turns_of(int ranks, const std::vector<int>& hosts) {
  std::vector<Turn> turns;
  for (int c = 0; c < collective_count; ++c) {
    const auto collective = static_cast<Collective>(c);
    std::size_t nth = 0;
    for (const Algorithm& algorithm : algorithms()) {
      if (!algorithm.supports(shape_of(collective, ranks, 0, hosts))) continue;
      if (nth == turns.size()) turns.emplace_back();
      turns[nth++][collective] = &algorithm;
    }
  }
  return turns;
}

std::vector<Turn> full_turns_of(int ranks, const std::vector<int>& hosts) {
  std::vector<Turn> turns = turns_of(ranks, hosts);
  for (std::size_t nth = 1; nth < turns.size(); ++nth)
    for (const auto& [collective, first] : turns.front()) {
      std::size_t all = 0;
      while (all < turns.size() && turns[all].contains(collective)) ++all;
      if (nth >= all) turns[nth][collective] = turns[nth % all][collective];
    }
  return turns;
}

std::string setting(const Turn& turn) {
  std::string text = "TUTTI_ALGO=";
  for (const auto& [collective, algorithm] : turn) text += std::string(name(collective)) + ":" + algorithm->name + ";";
  return text;
}

std::size_t turn_words(int ranks) {
  return first_hash + static_cast<std::size_t>(ranks);
}

void run_turn(Seat& seat, tuttiComm_t comm, const Turn& turn, Mix memory, const std::vector<int>& hosts) {
  std::uint64_t bits = 0;
  for (const auto& [collective, algorithm] : turn)
    for (const Call& call : calls_of(collective, seat.ranks(), memory)) {
      std::uint64_t hash = 0;
      seat.doing(algorithm->name + ": " + call.text());
      ASSERT_EQ(run_call(call, seat.here(), seat.ranks(), {comm}, 1, &hash), "") << algorithm->name << call.text();
      if (collective == Collective::all_reduce) bits = mix(bits, hash);
      const char* used = nullptr;
      const char* transport = nullptr;
      ASSERT_TRUE(ok(tuttiCommLastAlgorithm(comm, &used, &transport)));
      const Access access = access_named(transport);
      if (serves(*algorithm, shape_of(collective, seat.ranks(), call.root, hosts), access)) {
        EXPECT_EQ(used, algorithm->name) << call.text();
        seat.board().word(static_cast<std::size_t>(access)).fetch_add(1);
      } else {
        EXPECT_NE(used, algorithm->name) << call.text();
      }
    }
  seat.board().word(first_hash + static_cast<std::size_t>(seat.rank())).store(bits);
}

void expect_same_bits(Workers& workers, int ranks, const std::string& what) {
  for (std::size_t rank = 1; rank < static_cast<std::size_t>(ranks); ++rank)
    EXPECT_EQ(workers.board().word(first_hash + rank), workers.board().word(first_hash)) << what << ", rank " << rank;
}

}  // namespace tutti::testing
