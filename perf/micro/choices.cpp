// What it costs to choose: the table of one collective, and looking into it.
#include <benchmark/benchmark.h>

#include "algorithms/choice.h"
#include "algorithms/select.h"

namespace tutti {
namespace {

void make_envelope(benchmark::State& state) {
  const Shape shape{.collective = static_cast<Collective>(state.range(0)), .ranks = static_cast<int>(state.range(1))};
  const auto reach = static_cast<Reach>(state.range(2));
  const auto all = candidates(shape, reach, "");
  for (auto _ : state) benchmark::DoNotOptimize(Envelope(shape, reach, all, Machine{}, {.cores = 8}).at(4096));
  state.counters["candidates"] = static_cast<double>(all.size());
}

void look_up(benchmark::State& state) {
  const Shape shape{.ranks = 4};
  const Envelope envelope(shape, Reach::fifo, candidates(shape, Reach::fifo, ""), Machine{}, {.cores = 8});
  std::size_t bytes = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(envelope.at(bytes));
    bytes = bytes * 5 % 1'000'003;
  }
}

BENCHMARK(make_envelope)
    ->ArgNames({"collective", "ranks", "reach"})
    ->ArgsProduct({{static_cast<int>(Collective::all_reduce), static_cast<int>(Collective::broadcast)},
                   {2, 4, 8, 16},
                   {static_cast<int>(Reach::window), static_cast<int>(Reach::fifo)}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(look_up);

}  // namespace
}  // namespace tutti
