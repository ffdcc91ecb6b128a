// The cost of choosing an algorithm: making the table of one collective, and looking it up.
#include <benchmark/benchmark.h>

#include "algorithms/choice.h"
#include "algorithms/select.h"
#include "plan/fuse.h"
#include "plan/lower.h"

namespace tutti {
namespace {

void make_envelope(benchmark::State& state) {
  const Shape shape{.collective = static_cast<Collective>(state.range(0)), .ranks = static_cast<int>(state.range(1))};
  const auto access = static_cast<Access>(state.range(2));
  const auto all = candidates(shape, access, "");
  for (auto _ : state) benchmark::DoNotOptimize(Envelope(shape, access, all, Machine{}, {.cores = 8}).at(4096));
  state.counters["candidates"] = static_cast<double>(all.size());
}

void look_up(benchmark::State& state) {
  const Shape shape{.ranks = 4};
  const Envelope envelope(shape, Access::slots, candidates(shape, Access::slots, ""), Machine{}, {.cores = 8});
  std::size_t bytes = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(envelope.at(bytes));
    bytes = bytes * 5 % 1'000'003;
  }
}

/// One rank's plan, as made by the first call that uses an algorithm.
void make_plan(benchmark::State& state, Collective collective, const char* name, Access access) {
  const Shape shape{.collective = collective, .ranks = static_cast<int>(state.range(0))};
  const Algorithm* const algorithm = find_algorithm(name, shape);
  for (auto _ : state) benchmark::DoNotOptimize(fuse(lower(algorithm->build(shape), 1, access), 4));
}

#define PLAN(collective, name, access)                                                                        \
  BENCHMARK_CAPTURE(make_plan, collective##_##name##_##access, Collective::collective, #name, Access::access) \
      ->Arg(64)                                                                                               \
      ->Arg(256)                                                                                              \
      ->Arg(1024)                                                                                             \
      ->Unit(benchmark::kMillisecond)
PLAN(all_reduce, ring, slots);
PLAN(all_reduce, circulant, slots);
PLAN(all_reduce, two_shot, slots);
PLAN(all_reduce, two_shot, mapped);
PLAN(all_reduce, recursive_doubling, slots);
PLAN(all_gather, ring, slots);
PLAN(all_gather, circulant, slots);
PLAN(all_gather, one_shot, mapped);
PLAN(reduce_scatter, circulant, slots);
PLAN(reduce_scatter, one_shot, mapped);
PLAN(all_to_all, pairwise, slots);
PLAN(all_to_all, one_shot, mapped);
PLAN(broadcast, binomial, slots);
PLAN(broadcast, two_shot, mapped);
#undef PLAN

BENCHMARK(make_envelope)
    ->ArgNames({"collective", "ranks", "reach"})
    ->ArgsProduct({{static_cast<int>(Collective::all_reduce), static_cast<int>(Collective::broadcast)},
                   {2, 4, 8, 16},
                   {static_cast<int>(Access::mapped), static_cast<int>(Access::slots)}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(look_up);

}  // namespace
}  // namespace tutti
