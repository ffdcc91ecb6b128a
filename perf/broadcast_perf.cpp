// Measures and checks broadcast.
#include "perf/harness.h"

int main(int argc, char** argv) {
  return perf::run(argc, argv,
                   {.name = "broadcast",
                    .launch =
                        [](const perf::Call& c) {
                          return tuttiBroadcast(c.send, c.recv, c.count, c.type, c.root, c.comm, c.stream);
                        },
                    .expected = perf::input_of_root,
                    .bus_factor = perf::bus_factor_one,
                    .has_root = true});
}
