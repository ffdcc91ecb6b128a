// Measures and checks all-gather of blocks of different sizes.
#include "perf/skewed.h"

namespace {

tuttiResult_t launch(const perf::Call& c) {
  const auto counts = perf::skewed_counts(c);
  return tuttiAllGatherV(c.send, counts[static_cast<std::size_t>(c.rank)], c.recv, counts.data(), nullptr, c.type,
                         c.comm, c.stream);
}

std::vector<perf::Piece> expected(const perf::Call& c) {
  const auto counts = perf::skewed_counts(c);
  std::vector<perf::Piece> pieces;
  for (int rank = 0; rank < c.ranks; ++rank)
    pieces.push_back({perf::sum_before(counts, rank), counts[static_cast<std::size_t>(rank)], rank, 0});
  return pieces;
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv,
                   {.name = "all_gather_v",
                    .launch = launch,
                    .expected = expected,
                    .bus_factor = perf::bus_factor_others,
                    .send = perf::Blocks::per_rank,
                    .recv = perf::Blocks::per_rank,
                    .in_place = perf::InPlace::never});
}
