// Measures and checks a send to the next rank together with a receive from the previous one.
#include "perf/harness.h"

namespace {

tuttiResult_t shift(const perf::Call& c) {
  const int next = (c.rank + 1) % c.ranks;
  const int previous = (c.rank + c.ranks - 1) % c.ranks;
  if (const tuttiResult_t result = tuttiGroupStart(); result != tuttiSuccess) return result;
  const tuttiResult_t sent = tuttiSend(c.send, c.count, c.type, next, c.comm, c.stream);
  const tuttiResult_t received = tuttiRecv(c.recv, c.count, c.type, previous, c.comm, c.stream);
  const tuttiResult_t ended = tuttiGroupEnd();
  return sent != tuttiSuccess ? sent : received != tuttiSuccess ? received : ended;
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv,
                   {.name = "sendrecv",
                    .launch = shift,
                    .expected = perf::input_of_previous,
                    .bus_factor = perf::bus_factor_one,
                    .in_place = perf::InPlace::never});
}
