// Measures and checks inclusive prefix reductions.
#include "perf/harness.h"

int main(int argc, char** argv) {
  return perf::run(
      argc, argv,
      {.name = "scan",
       .launch = [](const perf::Call& c) { return tuttiScan(c.send, c.recv, c.count, c.type, c.op, c.comm, c.stream); },
       .expected = perf::prefix,
       .bus_factor = perf::bus_factor_one,
       .reduces = true,
       .combined = [](int rank) { return rank + 1; }});
}
