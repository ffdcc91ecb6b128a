// Measures and checks reduce.
#include "perf/harness.h"

int main(int argc, char** argv) {
  return perf::run(argc, argv,
                   {.name = "reduce",
                    .launch =
                        [](const perf::Call& c) {
                          return tuttiReduce(c.send, c.recv, c.count, c.type, c.op, c.root, c.comm, c.stream);
                        },
                    .expected = perf::reduction_at_root,
                    .bus_factor = perf::bus_factor_one,
                    .reduces = true,
                    .has_root = true});
}
