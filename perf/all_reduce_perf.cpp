// Measures and checks all-reduce.
#include "perf/harness.h"

int main(int argc, char** argv) {
  return perf::run(
      argc, argv,
      {.name = "all_reduce",
       .launch =
           [](const perf::Call& c) { return tuttiAllReduce(c.send, c.recv, c.count, c.type, c.op, c.comm, c.stream); },
       .expected = perf::reduction,
       .bus_factor = [](double ranks) { return 2 * (ranks - 1) / ranks; },
       .reduces = true});
}
