// Measures and checks reduce-scatter into blocks of different sizes.
#include "perf/skewed.h"

namespace {

tuttiResult_t launch(const perf::Call& c) {
  const auto counts = perf::skewed_counts(c);
  return tuttiReduceScatterV(c.send, counts.data(), nullptr, c.recv, counts[static_cast<std::size_t>(c.rank)], c.type,
                             c.op, c.comm, c.stream);
}

std::vector<perf::Piece> expected(const perf::Call& c) {
  const auto counts = perf::skewed_counts(c);
  return {{0, counts[static_cast<std::size_t>(c.rank)], perf::Pattern::kAllRanks, perf::sum_before(counts, c.rank)}};
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv,
                   {.name = "reduce_scatter_v",
                    .launch = launch,
                    .expected = expected,
                    .bus_factor = perf::bus_factor_others,
                    .send = perf::Blocks::per_rank,
                    .recv = perf::Blocks::per_rank,
                    .in_place = perf::InPlace::never,
                    .reduces = true});
}
