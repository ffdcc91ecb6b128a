// Measures and checks all-to-all.
#include "perf/harness.h"

int main(int argc, char** argv) {
  return perf::run(
      argc, argv,
      {.name = "alltoall",
       .launch = [](const perf::Call& c) { return tuttiAllToAll(c.send, c.recv, c.count, c.type, c.comm, c.stream); },
       .expected = perf::block_of_everyone,
       .bus_factor = perf::bus_factor_others,
       .send = perf::Blocks::per_rank,
       .recv = perf::Blocks::per_rank});
}
