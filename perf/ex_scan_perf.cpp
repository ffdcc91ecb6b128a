// Measures and checks exclusive prefix reductions.
#include "perf/harness.h"

int main(int argc, char** argv) {
  return perf::run(
      argc, argv,
      {.name = "ex_scan",
       .launch =
           [](const perf::Call& c) { return tuttiExScan(c.send, c.recv, c.count, c.type, c.op, c.comm, c.stream); },
       .expected = perf::prefix_but_on_first,
       .bus_factor = perf::bus_factor_one,
       .reduces = true,
       .combined = [](int rank) { return rank; }});
}
