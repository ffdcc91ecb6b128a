// The speed of one pass on one core, by type, operands and size. Bytes per second count all bytes read and written.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "exec/reduce.h"

namespace tutti {
namespace {

/// Page aligned, with huge pages if the system provides them, touched.
class Buffers {
 public:
  Buffers(std::size_t how_many, std::size_t bytes) {
    for (std::size_t i = 0; i < how_many; ++i) {
      auto* at = static_cast<std::byte*>(std::aligned_alloc(2 << 20, (bytes + (2 << 20) - 1) >> 21 << 21));
      std::memset(at, 0, bytes);
      memory_.emplace_back(at, &std::free);
    }
  }
  std::byte* at(std::size_t i) { return memory_[i].get(); }

 private:
  std::vector<std::unique_ptr<std::byte, decltype(&std::free)>> memory_;
};

struct Work {
  DataType type;
  ReduceOp op;
};

void reduce(benchmark::State& state, Work work) {
  const auto m = static_cast<std::size_t>(state.range(0)), k = static_cast<std::size_t>(state.range(1));
  const auto bytes = static_cast<std::size_t>(state.range(2));
  Buffers buffers(m + k, bytes);
  std::vector<Source> sources;
  std::vector<std::byte*> destinations;
  for (std::size_t i = 0; i < m; ++i) sources.push_back({.at = buffers.at(i), .scaled = true, .scalar = 1});
  for (std::size_t i = 0; i < k; ++i) destinations.push_back(buffers.at(m + i));
  const Pass pass{.sources = sources,
                  .destinations = destinations,
                  .count = bytes / size_of(work.type),
                  .type = work.type,
                  .op = work.op,
                  .divisor = work.op == ReduceOp::avg ? 2 : 1,
                  .loop = static_cast<Loop>(state.range(3))};
  for (auto _ : state) {
    reduce_pass(pass);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>((m + k) * bytes));
}

void copy(benchmark::State& state) {
  const auto k = static_cast<std::size_t>(state.range(0));
  const auto bytes = static_cast<std::size_t>(state.range(1));
  Buffers buffers(1 + k, bytes);
  std::vector<std::byte*> destinations;
  for (std::size_t i = 0; i < k; ++i) destinations.push_back(buffers.at(1 + i));
  for (auto _ : state) {
    copy_pass(buffers.at(0), destinations, bytes, static_cast<Loop>(state.range(2)));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>((1 + k) * bytes));
}

/// The reference.
void memcpy_of_libc(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Buffers buffers(2, bytes);
  for (auto _ : state) {
    std::memcpy(buffers.at(1), buffers.at(0), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * bytes));
}

constexpr std::int64_t small = 8, cached = 16 << 10, middle = 1 << 20, large = 64 << 20;

void operands(benchmark::internal::Benchmark* b) {
  b->ArgNames({"m", "k", "bytes", "loop"});
  for (const std::int64_t bytes : {small, cached, middle}) {
    b->Args({2, 1, bytes, 0})->Args({2, 2, bytes, 0})->Args({4, 4, bytes, 0})->Args({8, 1, bytes, 0});
  }
  for (int loop = 0; loop < loop_count; ++loop) b->Args({2, 1, large, loop})->Args({2, 2, large, loop});
}
void one_shape(benchmark::internal::Benchmark* b) {
  b->ArgNames({"m", "k", "bytes", "loop"})->Args({2, 1, cached, 0})->Args({2, 2, middle, 0});
}

BENCHMARK_CAPTURE(reduce, float32_sum, Work{DataType::float32, ReduceOp::sum})->Apply(operands);
BENCHMARK_CAPTURE(reduce, bfloat16_sum, Work{DataType::bfloat16, ReduceOp::sum})->Apply(operands);
BENCHMARK_CAPTURE(reduce, float32_avg, Work{DataType::float32, ReduceOp::avg})->Apply(one_shape);
BENCHMARK_CAPTURE(reduce, float32_max, Work{DataType::float32, ReduceOp::max})->Apply(one_shape);
BENCHMARK_CAPTURE(reduce, float32_scaled, Work{DataType::float32, ReduceOp::pre_mul_sum})->Apply(one_shape);
BENCHMARK_CAPTURE(reduce, float64_sum, Work{DataType::float64, ReduceOp::sum})->Apply(one_shape);
BENCHMARK_CAPTURE(reduce, float16_sum, Work{DataType::float16, ReduceOp::sum})->Apply(one_shape);
BENCHMARK_CAPTURE(reduce, bfloat16_avg, Work{DataType::bfloat16, ReduceOp::avg})->Apply(one_shape);
BENCHMARK_CAPTURE(reduce, float8_e4m3_sum, Work{DataType::float8_e4m3, ReduceOp::sum})->Apply(one_shape);
BENCHMARK_CAPTURE(reduce, float8_e5m2_sum, Work{DataType::float8_e5m2, ReduceOp::sum})->Apply(one_shape);
BENCHMARK_CAPTURE(reduce, int8_sum, Work{DataType::int8, ReduceOp::sum})->Apply(one_shape);
BENCHMARK_CAPTURE(reduce, int8_prod, Work{DataType::int8, ReduceOp::prod})->Apply(one_shape);
BENCHMARK_CAPTURE(reduce, int32_sum, Work{DataType::int32, ReduceOp::sum})->Apply(one_shape);
BENCHMARK_CAPTURE(reduce, int32_avg, Work{DataType::int32, ReduceOp::avg})->Apply(one_shape);
BENCHMARK_CAPTURE(reduce, int64_prod, Work{DataType::int64, ReduceOp::prod})->Apply(one_shape);
BENCHMARK(copy)
    ->ArgNames({"k", "bytes", "loop"})
    ->ArgsProduct({{1, 3}, {cached, middle}, {0}})
    ->ArgsProduct({{1, 3}, {large}, {0, 1, 2, 3}});
BENCHMARK(memcpy_of_libc)->Arg(small)->Arg(cached)->Arg(middle)->Arg(large);

}  // namespace
}  // namespace tutti
