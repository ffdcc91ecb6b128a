#include "support/property_space.h"

#include <array>

#include <fmt/format.h>

#include "algorithms/algorithm.h"

namespace tutti::testing {
namespace {

constexpr int ranks_max = 9;
constexpr int layouts = 4;
constexpr std::array transports = {"auto", "slots", "mapped", "cma", "socket", "rdma"};
constexpr std::array algorithm_names = {
    "",
#define ALGORITHM(x) #x,
#include "algorithms/list.inc"
#undef ALGORITHM
};
/// Reductions with each operator, and the others.
constexpr std::array reductions = {Kind::all_reduce, Kind::reduce, Kind::reduce_scatter, Kind::scan, Kind::ex_scan};
constexpr std::array others = {Kind::broadcast, Kind::all_gather, Kind::all_to_all,
                               Kind::gather,    Kind::scatter,    Kind::barrier};
constexpr int what_count = static_cast<int>(reductions.size()) * op_count + static_cast<int>(others.size());
static_assert(reductions.size() + others.size() == kind_count);
constexpr int count_levels = 7;

enum Dimension {
  d_ranks,
  d_layout,
  d_transport,
  d_algorithm,
  d_what,
  d_type,
  d_count,
  d_values,
  d_in_place,
  d_memory,
  d_alignment,
  d_root,
  dimensions
};
static_assert(d_what == set_dimensions);

std::pair<Kind, Op> what_of(int level) {
  const auto reducing = static_cast<int>(reductions.size()) * op_count;
  if (level < reducing) return {reductions[level / op_count], static_cast<Op>(level % op_count)};
  return {others[level - reducing], Op::sum};
}

std::size_t count_of(int level, Kind kind, tuttiDataType_t type, int ranks) {
  switch (level) {
    case 0: return 0;
    case 1: return 1;
    case 2: return 37;
    case 3: return count_for(kind, type, ranks, 4096);  // just fits a call descriptor
    case 4: return count_for(kind, type, ranks, 4096) + 1;
    case 5: return count_for(kind, type, ranks, 5 * 65536) + 13;  // several slots
    default: return count_for(kind, type, ranks, 1 << 20) + 7;
  }
}

bool floating(tuttiDataType_t type) {
  return with_type(type, []<class T>(T*) { return Precision<T>::floating; });
}

/// Forced on a call that it does not serve, an algorithm is not used. Asked of a few million rows.
bool serves_call(int algorithm, Kind kind, int ranks) {
  static const auto serves = [] {
    std::array<std::array<std::array<bool, ranks_max + 1>, kind_count>, algorithm_names.size()> all{};
    for (std::size_t name = 0; name < algorithm_names.size(); ++name)
      for (int of = 0; of < kind_count; ++of)
        for (int among = 1; among <= ranks_max; ++among) {
          Shape shape;
          shape.collective = static_cast<Collective>(of);
          shape.ranks = among;
          all[name][of][among] = find_algorithm(algorithm_names[name], shape) != nullptr;
        }
    return all;
  }();
  return serves[algorithm][static_cast<std::size_t>(kind)][ranks];
}

/// Of a row with open places: whether it is redundant whatever they are.
bool redundant_set(const Row& row) {
  const int ranks = row[d_ranks] + 1;  // 0: open
  if (ranks == 1) return row[d_layout] > 0 || row[d_algorithm] > 0;
  return ranks == 2 && static_cast<Layout>(row[d_layout]) == Layout::pairs;  // one process of two threads
}

/// What is called and by how many is not open.
bool redundant_call(const Row& row) {
  const int ranks = row[d_ranks] + 1;
  const auto [kind, op] = what_of(row[d_what]);
  if (prefixes(kind) && op == Op::avg) return true;
  if (row[d_algorithm] > 0 && !serves_call(row[d_algorithm], kind, ranks)) return true;
  if (kind == Kind::barrier)
    for (int d = d_type; d < dimensions; ++d)
      if (row[d] > 0) return true;
  if (row[d_values] > 0 && (!reduces(kind) || row[d_count] == 0)) return true;
  if (row[d_type] >= 0) {
    const auto type = type_at(static_cast<std::size_t>(row[d_type]));
    if (row[d_values] > 0 && !floating(type)) return true;
    if (row[d_alignment] == 2 && size_of(type) == 1) return true;
  }
  const int roots = rooted(static_cast<Collective>(kind)) ? std::min(ranks, 3) : 1;
  return row[d_root] >= roots;
}

}  // namespace

std::vector<int> space_levels() {
  return {ranks_max,
          layouts,
          transports.size(),
          algorithm_names.size(),
          what_count,
          real_type_count,
          count_levels,
          3,
          3,
          mix_count,
          3,
          3};
}

Set set_of(const Row& row) {
  return {.ranks = row[d_ranks] + 1,
          .layout = static_cast<Layout>(row[d_layout]),
          .transport = transports[row[d_transport]],
          .algorithm = algorithm_names[row[d_algorithm]]};
}

std::string name_of(const Set& set) {
  return fmt::format("{}_{}_{}_{}", name(set.layout), set.ranks, set.transport,
                     set.algorithm.empty() ? "any" : set.algorithm);
}

Call call_of(const Row& row, std::uint64_t seed) {
  const int ranks = row[d_ranks] + 1;
  const auto [kind, op] = what_of(row[d_what]);
  Call call{.kind = kind, .type = type_at(static_cast<std::size_t>(row[d_type])), .op = op};
  call.count = count_of(row[d_count], kind, call.type, ranks);
  call.values = reduces(kind) ? static_cast<Values>(row[d_values] + 1) : Values::bits;
  call.in_place = static_cast<InPlace>(row[d_in_place]);
  call.memory = static_cast<Mix>(row[d_memory]);
  call.misaligned = row[d_alignment] == 0 ? 0 : (row[d_alignment] == 1 ? 1 : size_of(call.type));
  call.root = row[d_root] == 0 ? 0 : (row[d_root] == 1 ? ranks - 1 : static_cast<int>(seed % ranks));
  call.seed = seed;
  return call;
}

bool redundant(const Row& row) {
  if (redundant_set(row)) return true;
  for (const auto& [open, levels] : {std::pair(d_what, what_count), std::pair(d_ranks, ranks_max)}) {
    if (row[open] >= 0) continue;
    Row chosen = row;
    for (chosen[open] = 0; chosen[open] < levels; ++chosen[open])
      if (!redundant(chosen)) return false;
    return true;
  }
  return redundant_call(row);
}

void run_calls(const Set& set, const std::vector<Call>& calls, std::chrono::seconds limit, int times) {
  const auto ranks = static_cast<std::size_t>(set.ranks);
  const Team team{.ranks = set.ranks,
                  .layout = set.layout,
                  .environment = {"TUTTI_TRANSPORT=" + set.transport, "TUTTI_ALGO=" + set.algorithm},
                  .limit = limit,
                  .words = calls.size() * ranks};
  Workers workers(team, [&](Seat& seat) {
    const auto comms = seat.init();
    ASSERT_EQ(comms.size(), seat.here().size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      seat.doing(calls[i].text());
      std::uint64_t hash = 0;
      const auto wrong = run_call(calls[i], seat.here(), seat.ranks(), comms, times, &hash);
      ASSERT_EQ(wrong, "") << calls[i].text();
      for (const int rank : seat.here()) seat.board().word(i * ranks + static_cast<std::size_t>(rank)).store(hash);
    }
    seat.doing("destroy");
    for (const auto comm : comms) EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
  ASSERT_TRUE(workers.finish());
  for (std::size_t i = 0; i < calls.size(); ++i)
    for (std::size_t rank = 1; rank < ranks && calls[i].kind == Kind::all_reduce; ++rank)
      EXPECT_EQ(workers.board().word(i * ranks + rank), workers.board().word(i * ranks))
          << "rank " << rank << " has other bits than rank 0: " << calls[i].text();
}

}  // namespace tutti::testing
