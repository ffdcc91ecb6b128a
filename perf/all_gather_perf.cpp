// Measures and checks all-gather.
#include "perf/harness.h"

int main(int argc, char** argv) {
  return perf::run(
      argc, argv,
      {.name = "all_gather",
       .launch = [](const perf::Call& c) { return tuttiAllGather(c.send, c.recv, c.count, c.type, c.comm, c.stream); },
       .expected = perf::all_inputs,
       .bus_factor = perf::bus_factor_others,
       .recv = perf::Blocks::per_rank,
       .in_place = perf::InPlace::send_is_own_block});
}
