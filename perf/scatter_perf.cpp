// Measures and checks scatter.
#include "perf/harness.h"

int main(int argc, char** argv) {
  return perf::run(
      argc, argv,
      {.name = "scatter",
       .launch =
           [](const perf::Call& c) { return tuttiScatter(c.send, c.recv, c.count, c.type, c.root, c.comm, c.stream); },
       .expected = perf::block_of_root,
       .bus_factor = perf::bus_factor_others,
       .send = perf::Blocks::per_rank,
       .in_place = perf::InPlace::recv_is_own_block,
       .has_root = true});
}
