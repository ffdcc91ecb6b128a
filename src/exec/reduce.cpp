#include "exec/reduce.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/limits.h"
#include "exec/kernel.h"
#include "exec/targets.h"
#include "hwy/cache_control.h"
#include "hwy/detect_targets.h"
#include "kernels/ops.h"

namespace tutti {
namespace {

/// Limit for one kernel call whose destinations must be reordered. Reductions to more destinations use no nontemporal
/// stores.
constexpr std::size_t destinations_max = 64;

Target best_target() {
  static const Target best = targets().back();
  return best;
}

Kernel find_kernel(Target target, DataType type, ReduceOp op, bool weighted) {
  switch (group_of(type)) {
    case TypeGroup::integer: return integer_kernel(target, type, op);
    case TypeGroup::floating: return float_kernel(target, type, op, weighted);
    case TypeGroup::small: return small_float_kernel(target, type, op, weighted);
    case TypeGroup::complex: return complex_kernel(type);
  }
  return nullptr;
}

/// The operator of the kernel to use: an average that does not divide and a scaled sum that does not scale are sums.
ReduceOp plain_op(const Pass& pass) {
  if (pass.op == ReduceOp::avg) return pass.divisor == 1 && !pass.weighted ? ReduceOp::sum : ReduceOp::avg;
  if (pass.op != ReduceOp::pre_mul_sum) return pass.op;
  const bool scales = std::ranges::any_of(pass.sources, [](const Source& source) { return source.scaled; });
  return scales ? ReduceOp::pre_mul_sum : ReduceOp::sum;
}

/// Elements before the first whole cache line of `to`; `count` if no element starts at a cache line.
std::size_t elements_to_line(const std::byte* to, std::size_t size, std::size_t count) {
  const std::size_t bytes = -reinterpret_cast<std::uintptr_t>(to) % limits::line_bytes;
  return bytes % size == 0 ? std::min(count, bytes / size) : count;
}

/// Passes of more bytes prefetch their destinations; shorter passes end before prefetching helps.
constexpr std::size_t prefetch_bytes_min = 8 * 1024;

/// Some processors' prefetchers work page by page, so reading several pages in turn keeps more loads under way. At most
/// twelve in all, as many as common first-level caches have ways: cache lines at equal offsets in their pages share a
/// set.
std::size_t pages_in_turn(const KernelArgs& args) {
  constexpr std::size_t pages_max = 12;
  return std::max<std::size_t>(1, pages_max / (args.sources_count + args.destinations_count));
}

bool is_source(const KernelArgs& args, const std::byte* destination) {
  const std::span sources(args.sources, args.sources_count);
  return std::ranges::any_of(sources, [destination](const Source& source) { return source.at == destination; });
}

/// Uses nontemporal stores for destinations with equal alignment, except for a destination that is also a source: its
/// cache lines are in the cache already, and nontemporal stores take longer (11.0 ms against 14.7 for two sources and
/// destinations of 64 MiB).
void run_nontemporal(Kernel kernel, KernelArgs args, std::size_t size) {
  std::byte* ordered[destinations_max];
  Source sources[limits::sources_max];
  std::ranges::copy_n(args.sources, static_cast<std::ptrdiff_t>(args.sources_count), sources);
  std::ranges::copy_n(args.destinations, static_cast<std::ptrdiff_t>(args.destinations_count), ordered);
  const std::span<std::byte*> destinations(ordered, args.destinations_count);
  const auto fresh = [&args](const std::byte* to) { return !is_source(args, to); };
  const auto first = std::ranges::find_if(destinations, fresh);
  if (first == destinations.end()) return kernel(args);

  const std::size_t head = elements_to_line(*first, size, args.count);
  const auto place = reinterpret_cast<std::uintptr_t>(*first) % limits::line_bytes;
  const auto rest = std::ranges::partition(destinations, [&](const std::byte* to) {
    return fresh(to) && reinterpret_cast<std::uintptr_t>(to) % limits::line_bytes == place;
  });
  const std::size_t total = args.count;
  args.sources = sources;
  args.destinations = ordered;
  args.count = head;
  kernel(args);
  for (Source& source : std::span(sources, args.sources_count)) source.at += head * size;
  for (std::byte*& to : destinations) to += head * size;
  args.count = total - head;
  args.streamed_count = args.destinations_count - rest.size();
  kernel(args);
  hwy::FlushStream();
}

void run(Kernel kernel, KernelArgs args, std::size_t size, Loop loop) {
  const std::span destinations(args.destinations, args.destinations_count);
  if (takes_pages_in_turn(loop)) args.pages = pages_in_turn(args);
  if (is_nontemporal(loop) && destinations.size() <= destinations_max) return run_nontemporal(kernel, args, size);
  // In place, reading the sources loads the cache lines of the destinations.
  args.prefetch = args.count * size > prefetch_bytes_min &&
                  std::ranges::none_of(destinations, [&args](const std::byte* to) { return is_source(args, to); });
  kernel(args);
}

}  // namespace

std::span<const Target> targets() {
  static constexpr Target built[] = {
    Target::portable,
#if HWY_TARGETS & HWY_AVX2
    Target::avx2,
#endif
#if HWY_TARGETS & HWY_AVX3
    Target::avx512,
#endif
  };
  std::size_t usable = 1;
#if HWY_ARCH_X86
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("aes") &&
                    __builtin_cpu_supports("pclmul");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd");
  usable = avx512 ? std::size(built) : avx2 ? std::min<std::size_t>(2, std::size(built)) : 1;
#endif
  return std::span(built).first(usable);
}

namespace {

/// Sums of complex numbers are those of their parts.
Pass of_parts(const Pass& pass) {
  Pass parts = pass;
  parts.type = pass.type == DataType::complex64 ? DataType::float32 : DataType::float64;
  parts.count = 2 * pass.count;
  return parts;
}

bool sums_parts(const Pass& pass) {
  return group_of(pass.type) == TypeGroup::complex && pass.op != ReduceOp::prod && pass.op != ReduceOp::user;
}

/// In pieces, through memory of its own: the function changes one of its operands, and no source may be changed.
void reduce_by_user(const Pass& pass) {
  constexpr std::size_t piece_bytes = 16 * 1024;
  alignas(limits::line_bytes) std::byte left[piece_bytes];
  alignas(limits::line_bytes) std::byte right[piece_bytes];
  const std::size_t size = size_of(pass.type);
  for (std::size_t done = 0; done < pass.count;) {
    const std::size_t count = std::min(pass.count - done, piece_bytes / size);
    const std::size_t at = done * size, bytes = count * size;
    std::byte* in = left;
    std::byte* inout = right;
    std::memcpy(inout, pass.sources[0].at + at, bytes);
    for (const Source& source : pass.sources.subspan(1)) {
      std::swap(in, inout);
      std::memcpy(inout, source.at + at, bytes);
      pass.user.combine(in, inout, count, static_cast<unsigned>(number_of(pass.type)), pass.user.context);
    }
    for (std::byte* const to : pass.destinations) std::memcpy(to + at, inout, bytes);
    done += count;
  }
}

}  // namespace

void reduce_pass_on(Target target, const Pass& pass) {
  if (sums_parts(pass)) return reduce_pass_on(target, of_parts(pass));
  if (pass.op == ReduceOp::user && pass.sources.size() > 1) return reduce_by_user(pass);
  assert(!pass.sources.empty() && pass.sources.size() <= limits::sources_max && pass.divisor >= 1);
  const ReduceOp op = plain_op(pass);
  if (pass.sources.size() == 1 && op != ReduceOp::avg && op != ReduceOp::pre_mul_sum)
    return copy_pass_on(target, pass.sources[0].at, pass.destinations, pass.count * size_of(pass.type), pass.loop);
  run(find_kernel(target, pass.type, op, pass.weighted),
      {.sources = pass.sources.data(),
       .sources_count = pass.sources.size(),
       .destinations = pass.destinations.data(),
       .destinations_count = pass.destinations.size(),
       .count = pass.count,
       .divisor = pass.divisor,
       .halvings = pass.halvings},
      size_of(pass.type), pass.loop);
}

void copy_pass_on(Target target, const std::byte* source, std::span<std::byte* const> destinations, std::size_t bytes,
                  Loop loop) {
  if (bytes == 0) return;
  if (destinations.size() == 1 && loop == Loop::plain) {
    if (destinations[0] != source) std::memcpy(destinations[0], source, bytes);
    return;
  }
  // A copy is a sum of one operand.
  const Kernel kernel = integer_kernel(target, DataType::uint8, ReduceOp::sum);
  const Source only{.at = source, .scaled = false, .scalar = 0};
  std::byte* kept[destinations_max];
  for (; !destinations.empty(); destinations = destinations.subspan(std::min(destinations.size(), destinations_max))) {
    const auto batch = destinations.first(std::min(destinations.size(), destinations_max));
    const auto end = std::ranges::copy_if(batch, kept, [source](const std::byte* to) { return to != source; }).out;
    const KernelArgs args{.sources = &only,
                          .sources_count = 1,
                          .destinations = kept,
                          .destinations_count = static_cast<std::size_t>(end - kept),
                          .count = bytes};
    if (args.destinations_count > 0) run(kernel, args, 1, loop);
  }
}

void reduce_pass(const Pass& pass) {
  reduce_pass_on(best_target(), pass);
}

SmallPass::SmallPass(const Pass& pass) : pass_(pass) {
  if (sums_parts(pass)) [[unlikely]]
    pass_ = of_parts(pass);
  assert(pass.loop == Loop::plain && pass.op != ReduceOp::pre_mul_sum && !pass.weighted);
  const ReduceOp op = plain_op(pass_);
  if (op == ReduceOp::user) return;
  if (pass.sources.size() > 1 || op == ReduceOp::avg)
    kernel_ = find_kernel(best_target(), pass_.type, op, /*weighted=*/false);
}

void SmallPass::run() const {
  if (kernel_ == nullptr) return reduce_pass(pass_);
  kernel_({.sources = pass_.sources.data(),
           .sources_count = pass_.sources.size(),
           .destinations = pass_.destinations.data(),
           .destinations_count = pass_.destinations.size(),
           .count = pass_.count,
           .divisor = pass_.divisor});
}

namespace {

template <class T>
std::uint64_t weight_bits_of(int halvings) {
  const Accumulate<T> factor = weight<T>(halvings);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &factor, sizeof factor);
  return bits;
}

}  // namespace

std::uint64_t weight_bits(DataType type, int halvings) {
  switch (type) {
// clang-format off
#define TUTTI_FLOATING(group, enumerator, number, bytes, storage) case DataType::enumerator: return weight_bits_of<storage>(halvings);
#define TUTTI_SMALL TUTTI_FLOATING
#define TUTTI_COMPLEX(group, enumerator, number, bytes, storage) case DataType::enumerator: return weight_bits_of<decltype(storage::re)>(halvings);
#define TUTTI_INTEGER(group, enumerator, number, bytes, storage) case DataType::enumerator: break;
#include "plan/types.inc"
    // clang-format on
  }
  return 0;
}

void copy_pass(const std::byte* source, std::span<std::byte* const> destinations, std::size_t bytes, Loop loop) {
  copy_pass_on(best_target(), source, destinations, bytes, loop);
}

}  // namespace tutti
