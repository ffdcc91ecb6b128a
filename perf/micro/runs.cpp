// The executor's overhead over the passes of the smallest calls.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "exec/run.h"
#include "plan/plan.h"

namespace tutti {
namespace {

struct alignas(64) Ring {
  std::byte bytes[64];
};

/// Rank 0 of two reduces 8 bytes from the peer's call descriptor, which is already there, and its own input.
void eight_bytes_by_line(benchmark::State& state) {
  std::vector<std::vector<Ring>> memory(2, std::vector<Ring>(DescriptorRings::ring_bytes(64) / sizeof(Ring) + 1));
  const std::vector<std::byte*> rings{memory[0][0].bytes, memory[1][0].bytes};
  CallDescriptors lines[] = {CallDescriptors(rings, 0, 64), CallDescriptors(rings, 1, 64)};
  for (CallDescriptors& mine : lines) {
    CallDescriptor& line = mine.begin(1);
    line.signature = {};
    mine.publish(line, 1);
  }
  Plan plan;
  plan.access = Access::in_line;
  plan.ranks = 2;
  plan.actions = {{.verb = Verb::wait_descriptor, .peer = 1},
                  {.verb = Verb::reduce, .last = 1, .sources = 2, .destinations = 1}};
  plan.places = {
      {.where = Where::input, .contribution = 1}, {.where = Where::peer_payload, .peer = 1}, {.where = Where::output}};
  Channel channel;
  channel.reserve(2);
  float input[] = {1, 2}, output[] = {0, 0};
  Binding binding{.input = reinterpret_cast<std::byte*>(input),
                  .output = reinterpret_cast<std::byte*>(output),
                  .type = DataType::float32,
                  .split = Split(2, sizeof(float), 1),
                  .sequence = 1};
  const RunContext links{.channels = {&channel, 1}, .descriptors = &lines[0]};
  for (auto _ : state) {
    Run run(plan, binding, links);
    auto progress = run.advance();
    if (!progress || *progress != Progress::done) std::abort();
    benchmark::ClobberMemory();
  }
}

BENCHMARK(eight_bytes_by_line);

}  // namespace
}  // namespace tutti
