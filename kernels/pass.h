// One pass over memory by a block of threads: combines sources from left to right and stores the result to all
// destinations.
//
// Threads process packs of 16 bytes in turn, several at a time, so that enough loads are in flight. If the operands'
// addresses differ modulo 16, reductions go element by element, copies by 4 bytes or by one.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "kernels/block.h"
#include "kernels/entries.h"
#include "kernels/ops.h"

namespace tutti::device {

inline constexpr int sources_max = 16;       ///< limits::sources_max
inline constexpr int destinations_max = 64;  ///< of one pass; further ones are copied from the first

/// In shared memory: the addresses that a pass reads and writes, multiples of the element's size.
struct Operands {
  const std::byte* sources[sources_max];
  std::byte* destinations[destinations_max];  ///< null: skipped
  std::uint64_t scalars[sources_max];         ///< bits of the type, or of the weight in a weighted pass
  std::uint8_t scaled[sources_max];
};

/// How a pass combines its sources.
struct Combination {
  ReduceOp op = ReduceOp::sum;
  int sources = 1;
  int destinations = 1;
  int divisor = 1;      ///< of an average, at its end
  bool scales = false;  ///< at least one source is scaled
  bool weighted = false;
  int halvings = 0;  ///< weighted: of the result
};

template <class To, class From>
TUTTI_DEVICE To bits_of(const From& from) {
  static_assert(sizeof(To) <= sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

template <class T, int Bytes>
struct Elements {
  static constexpr int size = Bytes / static_cast<int>(sizeof(T));
  T at[size];
};

/// The packs of one thread in a round: at these offsets, as far as they lie before the end.
struct Round {
  std::size_t offset, apart, end;

  TUTTI_DEVICE std::size_t at(int u) const { return offset + static_cast<std::size_t>(u) * apart; }
  TUTTI_DEVICE bool has(int u) const { return at(u) < end; }
};

/// Stores packs to all destinations.
template <int Bytes, int Unroll, Block B>
TUTTI_DEVICE void put(B& b, const Operands& o, int destinations, const Round& round,
                      const Pack<Bytes> (&packs)[Unroll]) {
  TUTTI_ROLL
  for (int d = 0; d < destinations; ++d) {
    std::byte* const to = o.destinations[d];
    if (to == nullptr) continue;
    TUTTI_UNROLL
    for (int u = 0; u < Unroll; ++u)
      if (round.has(u)) b.template store<Bytes>(to + round.at(u), packs[u]);
  }
}

template <int Bytes, int Unroll, Block B>
TUTTI_DEVICE void get(B& b, const std::byte* from, const Round& round, Pack<Bytes> (&to)[Unroll]) {
  TUTTI_UNROLL
  for (int u = 0; u < Unroll; ++u)
    if (round.has(u)) to[u] = b.template load<Bytes>(from + round.at(u));
}

/// A pass of `bytes` bytes divided for packs of `width`: the packs in the middle, and single elements at both ends.
struct Edges {
  std::size_t head, packs, tail;  ///< bytes before the first pack; number of packs; offset of the rest, in bytes
};

TUTTI_DEVICE Edges edges_of(const std::byte* at, std::size_t width, std::size_t bytes) {
  const std::size_t before = (width - reinterpret_cast<std::size_t>(at) % width) % width;
  const std::size_t head = before < bytes ? before : bytes;
  const std::size_t packs = (bytes - head) / width;
  return {head, packs, head + packs * width};
}

/// The lowest bits in which operands' addresses differ.
template <Block B>
TUTTI_DEVICE std::size_t disagreement(B&, const Operands& o, const Combination& how) {
  const auto bits = [](const std::byte* at) { return reinterpret_cast<std::size_t>(at); };
  std::size_t differ = 0;
  TUTTI_ROLL
  for (int s = 1; s < how.sources; ++s) differ |= bits(o.sources[s]) ^ bits(o.sources[0]);
  TUTTI_ROLL
  for (int d = 0; d < how.destinations; ++d)
    if (o.destinations[d] != nullptr) differ |= bits(o.destinations[d]) ^ bits(o.sources[0]);
  return differ % 16;
}

/// Rounds of a pass over `count` packs of `Bytes` bytes, the first of them at `base`: threads take turns with `Unroll`
/// packs each. `one(round)` handles those of this thread.
template <int Bytes, int Unroll, Block B, class One>
TUTTI_DEVICE void in_rounds(const B& b, std::size_t base, std::size_t count, One one) {
  const std::size_t apart = static_cast<std::size_t>(b.threads()) * Bytes;
  const std::size_t end = base + count * Bytes;
  TUTTI_ROLL
  for (std::size_t at = base + static_cast<std::size_t>(b.thread()) * Bytes; at < end; at += apart * Unroll)
    one(Round{at, apart, end});
}

template <int Bytes, int Unroll, Block B>
TUTTI_DEVICE void copy_packs(B& b, const Operands& o, const Combination& how, std::size_t base, std::size_t count) {
  const std::byte* const source = o.sources[0];
  in_rounds<Bytes, Unroll>(b, base, count, [&](const Round& round) {
    Pack<Bytes> held[Unroll]{};
    get<Bytes, Unroll>(b, source, round, held);
    put<Bytes, Unroll>(b, o, how.destinations, round, held);
  });
}

template <Block B>
TUTTI_DEVICE void copy_pass(B& b, const Operands& o, const Combination& how, std::size_t bytes) {
  const std::size_t differ = disagreement(b, o, how);
  const std::size_t width = differ == 0 ? 16 : differ % 4 == 0 ? 4 : 1;
  const Edges edges = edges_of(o.sources[0], width, bytes);
  if (width == 16) {
    copy_packs<16, 4>(b, o, how, edges.head, edges.packs);
  } else if (width == 4) {
    copy_packs<4, 1>(b, o, how, edges.head, edges.packs);
  } else {
    copy_packs<1, 1>(b, o, how, 0, bytes);
    return;
  }
  // Fewer elements than two packs have: those before the first pack and after the last.
  copy_packs<1, 1>(b, o, how, 0, edges.head);
  copy_packs<1, 1>(b, o, how, edges.tail, bytes - edges.tail);
}

/// An operator known at compile time.
template <class Op, bool Divides>
struct StaticOperator {
  static constexpr bool scales = false;
  static constexpr bool weighted = false;
  static constexpr bool divides = Divides;
  int divisor = 1;

  template <class A, int N>
  TUTTI_DEVICE void combine(A (&result)[N], const A (&operand)[N]) const {
    TUTTI_UNROLL
    for (int i = 0; i < N; ++i) result[i] = Op{}(result[i], operand[i]);
  }
  template <class A, int N>
  TUTTI_DEVICE void finish(A (&result)[N]) const {
    if constexpr (Divides) {
      TUTTI_UNROLL
      for (int i = 0; i < N; ++i) result[i] = divide(result[i], divisor);
    }
  }
};

/// An operator chosen by the call, with all options.
struct AnyOperator {
  static constexpr bool scales = true;
  static constexpr bool weighted = false;
  static constexpr bool divides = true;
  ReduceOp op = ReduceOp::sum;
  int divisor = 1;

  template <class A, int N>
  TUTTI_DEVICE void combine(A (&result)[N], const A (&operand)[N]) const {
    switch (op) {
      case ReduceOp::prod: return StaticOperator<Prod, false>{}.combine(result, operand);
      case ReduceOp::max: return StaticOperator<Max, false>{}.combine(result, operand);
      case ReduceOp::min: return StaticOperator<Min, false>{}.combine(result, operand);
      default: return StaticOperator<Sum, false>{}.combine(result, operand);
    }
  }
  template <class A, int N>
  TUTTI_DEVICE void finish(A (&result)[N]) const {
    if (divisor != 1) StaticOperator<Sum, true>{divisor}.finish(result);
  }
};

/// Of averages with weights.
template <class T>
struct WeightedSum {
  static constexpr bool scales = false;
  static constexpr bool weighted = true;
  static constexpr bool divides = true;
  int divisor = 1;
  int halvings = 0;

  template <class A, int N>
  TUTTI_DEVICE void combine(A (&result)[N], const A (&operand)[N]) const {
    StaticOperator<Sum, false>{}.combine(result, operand);
  }
  template <class A, int N>
  TUTTI_DEVICE void finish(A (&result)[N]) const {
    TUTTI_UNROLL
    for (int i = 0; i < N; ++i) result[i] = finish_average<T>(result[i], divisor, halvings);
  }
};

/// The end of an average where some sum of the pack at `at` is infinite, as in reduce_scalar() and average_scalar().
template <class T, int Bytes, class Operator, Block B>
TUTTI_DEVICE void average_again(B& b, const Operands& o, const Combination& how, const Operator& op, std::size_t at,
                                Accumulate<T> (&result)[Elements<T, Bytes>::size]) {
  using E = Elements<T, Bytes>;
  using A = Accumulate<T>;
  const A half = half_for<T>(how.divisor, how.halvings);
  A again[E::size]{};
  TUTTI_ROLL
  for (int source = 0; source < how.sources; ++source) {
    A factor = half;
    if constexpr (Operator::weighted) factor *= bits_of<A>(o.scalars[source]);
    const auto elements = bits_of<E>(b.template load<Bytes>(o.sources[source] + at));
    TUTTI_UNROLL
    for (int j = 0; j < E::size; ++j) {
      const A halved = widen(elements.at[j]) * factor;
      again[j] = source == 0 ? halved : again[j] + halved;
    }
  }
  bool finite[E::size];
  TUTTI_UNROLL
  for (int j = 0; j < E::size; ++j) finite[j] = is_finite(result[j]);
  op.finish(result);
  TUTTI_UNROLL
  for (int j = 0; j < E::size; ++j)
    if (!finite[j]) result[j] = finish_halved<T>(again[j], how.divisor, half);
}

/// Whether the sum is to be made again.
template <class T, class Operator, int N>
TUTTI_DEVICE bool overflows(const Operator& op, const Accumulate<T> (&result)[N]) {
  if (!Operator::weighted && op.divisor == 1) return false;
  bool finite = true;
  TUTTI_UNROLL
  for (int j = 0; j < N; ++j) finite = finite && is_finite(result[j]);
  return !finite;
}

/// Combines the packs of a round of all sources, as reduce_scalar of ops.h does. Loads up to `Batch` sources before it
/// combines them.
template <class T, int Bytes, int Unroll, int Batch, class Operator, Block B>
TUTTI_DEVICE void reduce_packs(B& b, const Operands& o, const Combination& how, const Operator& op,
                               const Round& round) {
  using E = Elements<T, Bytes>;
  Accumulate<T> result[Unroll][E::size]{};
  Pack<Bytes> held[Batch][Unroll]{};
  TUTTI_ROLL
  for (int first = 0; first < how.sources; first += Batch) {
    TUTTI_UNROLL
    for (int i = 0; i < Batch; ++i)
      if (first + i < how.sources) get<Bytes, Unroll>(b, o.sources[first + i], round, held[i]);
    TUTTI_UNROLL
    for (int i = 0; i < Batch; ++i) {
      const int source = first + i;
      if (source >= how.sources) break;
      TUTTI_UNROLL
      for (int u = 0; u < Unroll; ++u) {
        auto elements = bits_of<E>(held[i][u]);
        Accumulate<T> operand[E::size];
        if (Operator::scales && o.scaled[source] != 0) {
          TUTTI_UNROLL
          for (int j = 0; j < E::size; ++j) elements.at[j] = scale(elements.at[j], bits_of<T>(o.scalars[source]));
        }
        TUTTI_UNROLL
        for (int j = 0; j < E::size; ++j) operand[j] = widen(elements.at[j]);
        if constexpr (Operator::weighted) {
          const auto factor = bits_of<Accumulate<T>>(o.scalars[source]);
          TUTTI_UNROLL
          for (int j = 0; j < E::size; ++j) operand[j] *= factor;
        }
        if (source == 0) {
          TUTTI_UNROLL
          for (int j = 0; j < E::size; ++j) result[u][j] = operand[j];
        } else {
          op.combine(result[u], operand);
        }
      }
    }
  }
  Pack<Bytes> combined[Unroll];
  TUTTI_UNROLL
  for (int u = 0; u < Unroll; ++u) {
    bool again = false;
    if constexpr (Operator::divides && sum_can_overflow<T>) {
      again = overflows<T>(op, result[u]);
      if (again) average_again<T, Bytes>(b, o, how, op, round.at(u), result[u]);
    }
    if (!again) op.finish(result[u]);
    E rounded{};
    TUTTI_UNROLL
    for (int i = 0; i < E::size; ++i) rounded.at[i] = narrow<T>(result[u][i]);
    combined[u] = bits_of<Pack<Bytes>>(rounded);
  }
  put<Bytes, Unroll>(b, o, how.destinations, round, combined);
}

template <class T, int Bytes, int Unroll, int Batch, class Operator, Block B>
TUTTI_DEVICE void reduce_rounds(B& b, const Operands& o, const Combination& how, const Operator& op, std::size_t base,
                                std::size_t packs) {
  in_rounds<Bytes, Unroll>(b, base, packs,
                           [&](const Round& round) { reduce_packs<T, Bytes, Unroll, Batch>(b, o, how, op, round); });
}

/// Each thread loads eight packs at once, fewer of types whose accumulators would not stay in registers.
template <class T, class Operator, Block B>
TUTTI_DEVICE void reduce_fast(B& b, const Operands& o, const Combination& how, const Operator& op, const Edges& edges) {
  if constexpr (sizeof(T) == 1) {
    constexpr int unroll = is_small_float<T> && !Operator::weighted ? 2 : 1;
    reduce_rounds<T, 16, unroll, 2>(b, o, how, op, edges.head, edges.packs);
  } else {
    if constexpr (sizeof(T) > 2)
      if (how.sources == 2) return reduce_rounds<T, 16, 4, 2>(b, o, how, op, edges.head, edges.packs);
    constexpr int batch = is_small_float<T> && Operator::weighted ? 2 : 4;
    reduce_rounds<T, 16, 2, batch>(b, o, how, op, edges.head, edges.packs);
  }
}

/// The elements before and behind the packs.
template <class T, class Operator, Block B>
TUTTI_DEVICE void reduce_ends(B& b, const Operands& o, const Combination& how, const Operator& op, const Edges& edges,
                              std::size_t bytes) {
  constexpr int element = static_cast<int>(sizeof(T));
  const std::size_t ends = edges.head + (bytes - edges.tail);
  in_rounds<element, 1>(b, 0, ends / sizeof(T), [&](const Round& at) {
    const std::size_t offset = at.offset < edges.head ? at.offset : at.offset - edges.head + edges.tail;
    reduce_packs<T, element, 1, 2>(b, o, how, op, Round{offset, 0, offset + 1});
  });
}

/// Sums and averages, the usual operators of large calls, are compiled separately; all others, and the elements before
/// and behind the packs, select the operator at run time.
template <class T, Block B>
TUTTI_DEVICE void reduce_pass(B& b, const Operands& o, const Combination& how, std::size_t count) {
  const std::size_t bytes = count * sizeof(T);
  Edges edges{bytes, 0, bytes};
  if (disagreement(b, o, how) == 0) edges = edges_of(o.sources[0], 16, bytes);
  if constexpr (!std::is_integral_v<T>) {
    if (how.weighted) {
      const WeightedSum<T> sum{how.divisor, how.halvings};
      reduce_fast<T>(b, o, how, sum, edges);
      return reduce_ends<T>(b, o, how, sum, edges, bytes);
    }
  }
  const AnyOperator any{how.op, how.divisor};
  const bool sums = how.op == ReduceOp::sum || how.op == ReduceOp::avg || how.op == ReduceOp::pre_mul_sum;
  if (how.scales || !sums)
    reduce_rounds<T, 16, 1, 2>(b, o, how, any, edges.head, edges.packs);
  else if (how.divisor == 1)
    reduce_fast<T>(b, o, how, StaticOperator<Sum, false>{}, edges);
  else
    reduce_fast<T>(b, o, how, StaticOperator<Sum, true>{how.divisor}, edges);
  reduce_ends<T>(b, o, how, any, edges, bytes);
}

/// A pass over `count` elements. A single source that is neither scaled nor divided is copied.
template <class T, Block B>
TUTTI_DEVICE void run_pass(B& b, const Operands& o, const Combination& how, std::size_t count) {
  if constexpr (B::fault == Fault::wrong_bound)
    if (count > 1) --count;
  if (how.sources == 1 && how.divisor == 1 && !how.scales && !how.weighted)
    copy_pass(b, o, how, count * sizeof(T));
  else
    reduce_pass<T>(b, o, how, count);
}

}  // namespace tutti::device
