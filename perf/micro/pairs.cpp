// The limits of two cores working together, for comparison with collectives of two ranks.
#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "exec/reduce.h"
#include "transport/flag.h"

namespace tutti {
namespace {

/// Two threads that synchronise by flags, as ranks do.
class Pair {
 public:
  /// Both threads do `work(rank)` between two synchronisations; the partner runs until the pair is destroyed.
  explicit Pair(std::function<void(int)> work) : work_(std::move(work)), partner_([this] { serve(); }) {}
  ~Pair() {
    leaving_ = true;
    flags_[0].store(flags_[0].load() + 1);
  }

  void meet() {
    flags_[0].store(++round_);
    await(1, round_);
  }
  void once() {
    meet();
    work_(0);
    meet();
  }

 private:
  void await(int rank, std::uint64_t round) const {
    while (flags_[rank].load() < round) {
    }
  }
  void serve() {
    for (std::uint64_t round = 1;; ++round) {
      await(0, round);
      if (leaving_) return;
      flags_[1].store(round);
      if (round % 2 == 1) work_(1);
    }
  }

  std::function<void(int)> work_;
  Flag flags_[2] = {};
  std::uint64_t round_ = 0;
  std::atomic<bool> leaving_ = false;
  std::jthread partner_;
};

void flag_round_trip(benchmark::State& state) {
  Pair pair([](int) {});
  for (auto _ : state) pair.meet();
}

std::unique_ptr<std::byte, decltype(&std::free)> huge(std::size_t bytes) {
  auto* at = static_cast<std::byte*>(std::aligned_alloc(2 << 20, (bytes + (2 << 20) - 1) >> 21 << 21));
  std::memset(at, 0, bytes);
  return {at, &std::free};
}

/// A fused two-shot all-reduce of two ranks: each reduces its half of both inputs and stores it to both outputs.
void fused_all_reduce(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const bool stream = state.range(1) != 0, in_place = state.range(2) != 0;
  const auto a = huge(bytes), b = huge(bytes), c = huge(bytes), d = huge(bytes);
  std::byte* const inputs[] = {a.get(), b.get()};
  std::byte* const outputs[] = {in_place ? a.get() : c.get(), in_place ? b.get() : d.get()};
  Pair pair([&](int rank) {
    const std::size_t half = bytes / 2, at = static_cast<std::size_t>(rank) * half;
    const Source sources[] = {{.at = inputs[0] + at}, {.at = inputs[1] + at}};
    std::byte* const destinations[] = {outputs[rank] + at, outputs[1 - rank] + at};
    reduce_pass({.sources = sources,
                 .destinations = destinations,
                 .count = half / sizeof(float),
                 .type = DataType::float32,
                 .loop = stream ? Loop::nontemporal : Loop::plain});
  });
  for (auto _ : state) pair.once();
  state.counters["algbw"] =
      benchmark::Counter(static_cast<double>(bytes), benchmark::Counter::kIsIterationInvariantRate);
}

/// The same number of bytes read and written, by libc.
void both_memcpy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto a = huge(bytes), b = huge(bytes), c = huge(bytes), d = huge(bytes);
  Pair pair([&](int rank) { std::memcpy(rank ? d.get() : c.get(), rank ? b.get() : a.get(), bytes); });
  for (auto _ : state) pair.once();
  state.counters["algbw"] =
      benchmark::Counter(static_cast<double>(bytes), benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(flag_round_trip)->UseRealTime();
BENCHMARK(both_memcpy)->RangeMultiplier(16)->Range(1 << 10, 256 << 20)->UseRealTime();
BENCHMARK(fused_all_reduce)
    ->ArgNames({"bytes", "stream", "in_place"})
    ->ArgsProduct({benchmark::CreateRange(1 << 10, 256 << 20, 16), {0}, {0, 1}})
    ->ArgsProduct({{4 << 20, 16 << 20, 64 << 20, 256 << 20}, {1}, {0, 1}})
    ->UseRealTime();

}  // namespace
}  // namespace tutti
