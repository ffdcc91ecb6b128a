// Measures and checks gather.
#include "perf/harness.h"

int main(int argc, char** argv) {
  return perf::run(
      argc, argv,
      {.name = "gather",
       .launch =
           [](const perf::Call& c) { return tuttiGather(c.send, c.recv, c.count, c.type, c.root, c.comm, c.stream); },
       .expected = perf::all_inputs_at_root,
       .bus_factor = perf::bus_factor_others,
       .recv = perf::Blocks::per_rank,
       .in_place = perf::InPlace::send_is_own_block,
       .has_root = true});
}
