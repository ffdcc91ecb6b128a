// The cost of choosing an algorithm: making the table of one collective, and looking it up.
#include <benchmark/benchmark.h>

#include "choice/choice.h"
#include "choice/rank_plan.h"
#include "choice/select.h"
#include "plan/fuse.h"

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
  std::size_t bytes = 0;
  for (auto _ : state) {
    const Plan plan = fuse(rank_plan(*algorithm, shape, 1, access), 4);
    bytes = plan.actions.capacity() * sizeof(Action) + plan.places.capacity() * sizeof(Place);
  }
  state.counters["MB"] = static_cast<double>(bytes) * 1e-6;
}

#define PLAN(collective, name, access)                                                                        \
  BENCHMARK_CAPTURE(make_plan, collective##_##name##_##access, Collective::collective, #name, Access::access) \
      ->Arg(64)                                                                                               \
      ->Arg(256)                                                                                              \
      ->Arg(1024)                                                                                             \
      ->Unit(benchmark::kMillisecond)
/// Also for as many ranks as the largest machines have.
#define PLAN_OF_MANY(collective, name) PLAN(collective, name, slots)->Arg(24'576)
PLAN_OF_MANY(all_reduce, ring);
PLAN_OF_MANY(all_reduce, circulant);
PLAN(all_reduce, two_shot, slots);
PLAN(all_reduce, two_shot, mapped);
PLAN_OF_MANY(all_reduce, recursive_doubling);
PLAN_OF_MANY(all_reduce, hierarchical);
PLAN_OF_MANY(all_reduce, double_tree);
PLAN_OF_MANY(all_gather, ring);
PLAN_OF_MANY(all_gather, circulant);
PLAN_OF_MANY(all_gather, hierarchical);
PLAN(all_gather, one_shot, mapped);
PLAN_OF_MANY(reduce_scatter, circulant);
PLAN_OF_MANY(reduce_scatter, hierarchical);
PLAN(reduce_scatter, one_shot, mapped);
PLAN_OF_MANY(all_to_all, pairwise);
PLAN(all_to_all, one_shot, mapped);
PLAN_OF_MANY(broadcast, binomial);
PLAN(broadcast, two_shot, mapped);
#undef PLAN_OF_MANY
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
