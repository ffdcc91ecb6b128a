// Measures and checks all-to-all of blocks of different sizes.
#include "perf/skewed.h"

namespace {

/// Rank a sends as much to rank b as b sends to a, so one list serves both sides.
tuttiResult_t launch(const perf::Call& c) {
  const auto counts = perf::skewed_counts(c, c.rank);
  return tuttiAllToAllV(c.send, counts.data(), nullptr, c.recv, counts.data(), nullptr, c.type, c.comm, c.stream);
}

std::vector<perf::Piece> expected(const perf::Call& c) {
  const auto counts = perf::skewed_counts(c, c.rank);
  std::vector<perf::Piece> pieces;
  for (int rank = 0; rank < c.ranks; ++rank)
    pieces.push_back({perf::sum_before(counts, rank), counts[static_cast<std::size_t>(rank)], rank,
                      perf::sum_before(perf::skewed_counts(c, rank), c.rank)});
  return pieces;
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv,
                   {.name = "all_to_all_v",
                    .launch = launch,
                    .expected = expected,
                    .bus_factor = perf::bus_factor_others,
                    .send = perf::Blocks::per_rank,
                    .recv = perf::Blocks::per_rank,
                    .in_place = perf::InPlace::never});
}
