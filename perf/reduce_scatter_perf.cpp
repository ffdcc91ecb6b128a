// Measures and checks reduce-scatter.
#include "perf/harness.h"

int main(int argc, char** argv) {
  return perf::run(argc, argv,
                   {.name = "reduce_scatter",
                    .launch =
                        [](const perf::Call& c) {
                          return tuttiReduceScatter(c.send, c.recv, c.count, c.type, c.op, c.comm, c.stream);
                        },
                    .expected = perf::block_of_reduction,
                    .bus_factor = perf::bus_factor_others,
                    .send = perf::Blocks::per_rank,
                    .in_place = perf::InPlace::recv_is_own_block,
                    .reduces = true});
}
