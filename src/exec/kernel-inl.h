// The loops of a reduction pass, for one target: they combine the sources in registers and store the result to every
// destination.
#if defined(TUTTI_KERNEL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNEL_INL_H
#undef TUTTI_KERNEL_INL_H
#else
#define TUTTI_KERNEL_INL_H
#endif

#include <algorithm>
#include <array>
#include <cstring>

#include "base/limits.h"
#include "base/prefetch.h"
#include "exec/codec-inl.h"
#include "exec/kernel.h"
#include "kernels/ops.h"

HWY_BEFORE_NAMESPACE();
namespace tutti {
namespace HWY_NAMESPACE {

/// plain: combines the sources as they are; divides: then divides, of inputs alone; scales: a pre-multiplied sum;
/// weighted: of an average of floats, see kernels/ops.h.
enum class Scaling { plain, divides, scales, weighted };

/// The work of a kernel, except for the number of operands.
template <class Type, class Operator, Scaling its_scaling>
struct Work {
  using T = Type;
  using Op = Operator;
  static constexpr Scaling scaling = its_scaling;
};

#if HWY_TARGET == HWY_SCALAR

/// The scalar definition itself.
template <class W>
void kernel(const KernelArgs& args) {
  using T = typename W::T;
  for (std::size_t at = 0; at < args.count * sizeof(T); at += sizeof(T)) {
    const auto load = [&args, at](int i) {
      const Source& source = args.sources[i];
      T value, factor;
      std::memcpy(&value, source.at + at, sizeof value);
      std::memcpy(&factor, &source.scalar, sizeof factor);
      return W::scaling == Scaling::scales && source.scaled ? scale(value, factor) : value;
    };
    const int sources = static_cast<int>(args.sources_count);
    T result;
    if constexpr (W::scaling == Scaling::weighted) {
      const auto weight_of = [&args](int i) {
        Accumulate<T> factor;
        std::memcpy(&factor, &args.sources[i].scalar, sizeof factor);
        return factor;
      };
      result = average_scalar(load, weight_of, sources, args.divisor, args.halvings);
    } else {
      result = reduce_scalar<typename W::Op>(load, sources, args.divisor);
    }
    for (std::size_t t = 0; t < args.destinations_count; ++t)
      std::memcpy(args.destinations[t] + at, &result, sizeof result);
  }
}

#else

/// Distance by which destinations are prefetched. Never past their end, where another thread may be writing.
constexpr std::size_t prefetch_bytes = 512;

/// The functor `Op` of kernels/ops.h on vectors of accumulate types.
template <class Op, class D, class V>
HWY_INLINE V combine(D d, V a, V b) {
  using A = hn::TFromD<D>;
  if constexpr (std::is_same_v<Op, Sum>) {
    return hn::Add(a, b);
  } else if constexpr (std::is_same_v<Op, Prod>) {
    if constexpr (sizeof(A) > 1) {
      return hn::Mul(a, b);
    } else {  // the low byte of a 16-bit product depends on the low bytes alone
      const hn::Repartition<std::uint16_t, D> wide;
      const auto even = hn::Mul(hn::BitCast(wide, a), hn::BitCast(wide, b));
      const auto odd = hn::Mul(hn::ShiftRight<8>(hn::BitCast(wide, a)), hn::ShiftRight<8>(hn::BitCast(wide, b)));
      return hn::BitCast(d, hn::Or(hn::And(even, hn::Set(wide, 0xff)), hn::ShiftLeft<8>(odd)));
    }
  } else if constexpr (std::is_same_v<Op, BitAnd>) {
    return hn::And(a, b);
  } else if constexpr (std::is_same_v<Op, BitOr>) {
    return hn::Or(a, b);
  } else if constexpr (std::is_same_v<Op, BitXor>) {
    return hn::Xor(a, b);
  } else if constexpr (std::is_same_v<Op, LogicalAnd>) {
    const auto is_false =
        hn::Or(hn::VecFromMask(d, hn::Eq(a, hn::Zero(d))), hn::VecFromMask(d, hn::Eq(b, hn::Zero(d))));
    return hn::AndNot(is_false, hn::Set(d, 1));
  } else if constexpr (std::is_same_v<Op, LogicalOr>) {
    return hn::AndNot(hn::VecFromMask(d, hn::Eq(hn::Or(a, b), hn::Zero(d))), hn::Set(d, 1));
  } else if constexpr (std::is_same_v<Op, LogicalXor>) {
    const auto differ = hn::Xor(hn::VecFromMask(d, hn::Eq(a, hn::Zero(d))), hn::VecFromMask(d, hn::Eq(b, hn::Zero(d))));
    return hn::And(differ, hn::Set(d, 1));
  } else if constexpr (std::is_integral_v<A>) {
    return std::is_same_v<Op, Max> ? hn::Max(a, b) : hn::Min(a, b);
  } else {
    // Equal values differ at most in the sign of zero. Unordered values contain a NaN.
    const auto picked = hn::IfThenElse(std::is_same_v<Op, Max> ? hn::Lt(a, b) : hn::Lt(b, a), b, a);
    const auto equal = std::is_same_v<Op, Max> ? hn::And(a, b) : hn::Or(a, b);
    const auto ordered = hn::IfThenElse(hn::Eq(a, b), equal, picked);
    return hn::IfThenElse(hn::IsNaN(b), b, ordered);
  }
}

/// divide() of kernels/ops.h.
template <class D, class V>
HWY_INLINE V divide_lanes(D d, V v, int divisor) {
  using A = hn::TFromD<D>;
  if constexpr (std::is_floating_point_v<A>) {
    return hn::Div(v, hn::Set(d, static_cast<A>(divisor)));
  } else {
    HWY_ALIGN A lanes[hn::MaxLanes(D())];
    hn::Store(v, d, lanes);
    for (A& lane : lanes) lane = divide(lane, divisor);
    return hn::Load(d, lanes);
  }
}

/// Vector i of a source, `at` bytes from its beginning on; if Partial, only its first `some` elements.
template <class W, bool Partial>
HWY_INLINE typename Codec<typename W::T>::V load_vector(const Source& source, std::size_t at, int i, std::size_t some) {
  using C = Codec<typename W::T>;
  using Lane = hn::TFromD<typename C::Packed>;
  const typename C::Packed packed;
  const Lane* from = reinterpret_cast<const Lane*>(source.at + at) + static_cast<std::size_t>(i) * hn::Lanes(packed);
  if constexpr (Partial)
    return C::decode(load_some(packed, from, some));
  else
    return C::decode(hn::LoadU(packed, from));
}

template <class W>
HWY_INLINE hn::TFromD<typename Codec<typename W::T>::D> weight_of(const Source& source) {
  hn::TFromD<typename Codec<typename W::T>::D> weight = 1;
  if constexpr (W::scaling == Scaling::weighted) std::memcpy(&weight, &source.scalar, sizeof weight);
  return weight;
}

/// within_range() of kernels/ops.h.
template <class T, class D, class V>
HWY_INLINE V within_range_lanes(D d, V value, hn::TFromD<D> scale) {
  if constexpr (is_small_float<T>) {
    const auto limit = hn::Set(d, float_of(T::Format::largest) * scale);
    const auto exceeds = hn::And(hn::Gt(hn::Abs(value), limit), hn::IsFinite(value));
    return hn::IfThenElse(exceeds, hn::CopySign(limit, value), value);
  } else {
    return value;
  }
}

/// The end of an average, of vector i of the sums.
template <class W, class V>
HWY_INLINE V finish(const KernelArgs& args, V sum) {
  using T = typename W::T;
  const typename Codec<T>::D d;
  using A = hn::TFromD<decltype(d)>;
  if constexpr (W::scaling == Scaling::weighted) {
    const bool last = args.divisor != 1;
    sum = last ? divide_lanes(d, sum, args.divisor) : hn::Mul(sum, hn::Set(d, power_of_two<A>(-args.halvings)));
    return within_range_lanes<T>(d, sum, A{1});
  } else {
    return divide_lanes(d, sum, args.divisor);
  }
}

/// As finish(), where some sum is infinite.
template <class W, bool Partial, class V>
HWY_NOINLINE V average_again(const KernelArgs& args, std::size_t at, int i, std::size_t some, V sum) {
  using T = typename W::T;
  const typename Codec<T>::D d;
  using A = hn::TFromD<decltype(d)>;
  const A half = half_for<T>(args.divisor, args.halvings);
  const A left = args.divisor == 1 ? power_of_two<A>(-extra_halvings<T>) : static_cast<A>(args.divisor) * half;
  const auto halved = [&](const Source& source) HWY_ATTR {
    return hn::Mul(load_vector<W, Partial>(source, at, i, some), hn::Set(d, weight_of<W>(source) * half));
  };
  V again = halved(args.sources[0]);
  for (std::size_t s = 1; s < args.sources_count; ++s) again = hn::Add(again, halved(args.sources[s]));
  again = hn::Div(within_range_lanes<T>(d, again, left), hn::Set(d, left));
  return hn::IfThenElse(hn::IsFinite(sum), finish<W>(args, sum), again);
}

template <class W>
inline constexpr bool ends_average = W::scaling == Scaling::weighted || W::scaling == Scaling::divides;

/// What becomes of vector i of the sums.
template <class W, bool Partial, class V>
HWY_INLINE V ended(const KernelArgs& args, std::size_t at, int i, std::size_t some, V sum, bool again) {
  if constexpr (ends_average<W>) {
    if constexpr (sum_can_overflow<typename W::T>)
      if (again) [[unlikely]]
        return average_again<W, Partial>(args, at, i, some, sum);
    return finish<W>(args, sum);
  } else {
    return sum;
  }
}

/// Processes `Vectors` vectors from byte `at` of every operand on; if Partial, only the first `some` elements of one
/// vector.
template <class W, int Vectors, bool Partial>
HWY_INLINE void step(const KernelArgs& args, std::size_t at, std::size_t some) {
  using C = Codec<typename W::T>;
  using Lane = hn::TFromD<typename C::Packed>;
  const typename C::D d;
  const typename C::Packed packed;
  const auto load = [=](const Source& source, int i) HWY_ATTR {
    auto value = load_vector<W, Partial>(source, at, i, some);
    if (W::scaling == Scaling::scales && source.scaled) {
      Lane factor;
      std::memcpy(&factor, &source.scalar, sizeof factor);
      value = C::decode(C::encode(combine<Prod>(d, value, C::decode(hn::Set(packed, factor)))));
    }
    if constexpr (W::scaling == Scaling::weighted) value = hn::Mul(value, hn::Set(d, weight_of<W>(source)));
    return value;
  };

  typename C::V result[Vectors];
#pragma GCC unroll 4
  for (int i = 0; i < Vectors; ++i) result[i] = load(args.sources[0], i);
  for (std::size_t s = 1; s < args.sources_count; ++s) {
#pragma GCC unroll 4
    for (int i = 0; i < Vectors; ++i) result[i] = combine<typename W::Op>(d, result[i], load(args.sources[s], i));
  }
  hn::Vec<typename C::Packed> out[Vectors];
  bool again = false;
  if constexpr (ends_average<W> && sum_can_overflow<typename W::T>) {
    auto finite = hn::IsFinite(result[0]);
#pragma GCC unroll 4
    for (int i = 1; i < Vectors; ++i) finite = hn::And(finite, hn::IsFinite(result[i]));
    again = !hn::AllTrue(d, finite);
  }
#pragma GCC unroll 4
  for (int i = 0; i < Vectors; ++i) out[i] = C::encode(ended<W, Partial>(args, at, i, some, result[i], again));
  std::size_t t = 0;
  if constexpr (!Partial &&
                hn::MaxLanes(typename C::Packed()) * sizeof(Lane) >= 16) {  // narrower vectors have no such store
    for (; t < args.streamed_count; ++t) {
      Lane* to = reinterpret_cast<Lane*>(args.destinations[t] + at);
#pragma GCC unroll 4
      for (int i = 0; i < Vectors; ++i)
        hn::Stream(out[i], packed, to + static_cast<std::size_t>(i) * hn::Lanes(packed));
    }
  }
  for (; t < args.destinations_count; ++t) {
    Lane* to = reinterpret_cast<Lane*>(args.destinations[t] + at);
#pragma GCC unroll 4
    for (int i = 0; i < Vectors; ++i) {
      if (Partial)
        store_some(out[i], packed, to, some);
      else
        hn::StoreU(out[i], packed, to + static_cast<std::size_t>(i) * hn::Lanes(packed));
    }
  }
}

template <class W>
void kernel(const KernelArgs& args) {
  constexpr int unroll = 4;
  const std::size_t vector = hn::Lanes(typename Codec<typename W::T>::Packed()) * sizeof(typename W::T);
  const std::size_t block = unroll * vector;
  const std::size_t bytes = args.count * sizeof(typename W::T);
  std::size_t at = 0;
  if (args.pages > 1) {
    constexpr std::size_t page_bytes = 4096;
    for (; at + args.pages * page_bytes <= bytes; at += args.pages * page_bytes)
      for (std::size_t line = 0; line < page_bytes; line += block)
        for (std::size_t page = 0; page < args.pages; ++page)
          step<W, unroll, false>(args, at + page * page_bytes + line, 0);
  }
  for (; args.prefetch && at + block + prefetch_bytes <= bytes; at += block) {
    for (std::size_t t = args.streamed_count; t < args.destinations_count; ++t)
      for (std::size_t line = 0; line < block; line += limits::line_bytes)
        prefetch_to_write(args.destinations[t] + at + prefetch_bytes + line);
    step<W, unroll, false>(args, at, 0);
  }
  for (; at + block <= bytes; at += block) step<W, unroll, false>(args, at, 0);
  for (; at + vector <= bytes; at += vector) step<W, 1, false>(args, at, 0);
  if (at < bytes) step<W, 1, true>(args, at, (bytes - at) / sizeof(typename W::T));
}

#endif

/// Kernels of one type, in the order of ReduceOp.
template <class T>
inline constexpr std::array<Kernel, device_op_count> kernels_of = {
    &kernel<Work<T, Sum, Scaling::plain>>,   &kernel<Work<T, Prod, Scaling::plain>>,
    &kernel<Work<T, Max, Scaling::plain>>,   &kernel<Work<T, Min, Scaling::plain>>,
    &kernel<Work<T, Sum, Scaling::divides>>, &kernel<Work<T, Sum, Scaling::scales>>};

/// Of a float; a weighted pass is a sum.
template <class T>
constexpr Kernel float_kernel_of(ReduceOp op, bool weighted) {
  return weighted ? &kernel<Work<T, Sum, Scaling::weighted>> : kernels_of<T>[static_cast<std::size_t>(op)];
}

/// Of an unsigned type, in the order of ReduceOp from bit_and on.
template <class T>
inline constexpr std::array<Kernel, 6> bit_kernels_of = {
    &kernel<Work<T, BitAnd, Scaling::plain>>,    &kernel<Work<T, BitOr, Scaling::plain>>,
    &kernel<Work<T, BitXor, Scaling::plain>>,    &kernel<Work<T, LogicalAnd, Scaling::plain>>,
    &kernel<Work<T, LogicalOr, Scaling::plain>>, &kernel<Work<T, LogicalXor, Scaling::plain>>};

}  // namespace HWY_NAMESPACE
}  // namespace tutti
HWY_AFTER_NAMESPACE();
#endif
