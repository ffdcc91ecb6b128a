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
  std::uint64_t scalars[sources_max];         ///< bits of the type
  std::uint8_t scaled[sources_max];
};

/// How a pass combines its sources.
struct Combination {
  ReduceOp op = ReduceOp::sum;
  int sources = 1;
  int destinations = 1;
  int divisor = 1;      ///< of an average, at its end
  bool scales = false;  ///< at least one source is scaled
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

/// Stores packs, `apart` bytes apart, to all destinations.
template <int Bytes, int Unroll, Block B>
TUTTI_DEVICE void put(B& b, const Operands& o, int destinations, std::size_t offset, std::size_t apart,
                      const Pack<Bytes> (&packs)[Unroll]) {
  TUTTI_ROLL
  for (int d = 0; d < destinations; ++d) {
    std::byte* const to = o.destinations[d];
    if (to == nullptr) continue;
    TUTTI_UNROLL
    for (int u = 0; u < Unroll; ++u)
      b.template store<Bytes>(to + offset + static_cast<std::size_t>(u) * apart, packs[u]);
  }
}

template <int Bytes, int Unroll, Block B>
TUTTI_DEVICE void get(B& b, const std::byte* from, std::size_t offset, std::size_t apart, Pack<Bytes> (&to)[Unroll]) {
  TUTTI_UNROLL
  for (int u = 0; u < Unroll; ++u) to[u] = b.template load<Bytes>(from + offset + static_cast<std::size_t>(u) * apart);
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

/// Copies packs [first, end) of `Bytes` bytes, the first of all at `base`; threads take turns with `Unroll` packs each.
/// Returns where it stopped: fewer than that are left.
template <int Bytes, int Unroll, Block B>
TUTTI_DEVICE std::size_t copy_packs(B& b, const Operands& o, const Combination& how, std::size_t base,
                                    std::size_t first, std::size_t end) {
  const auto threads = static_cast<std::size_t>(b.threads());
  const std::byte* const source = o.sources[0];
  Pack<Bytes> held[Unroll];
  TUTTI_ROLL
  for (; first + (Unroll == 1 ? 1 : threads * Unroll) <= end; first += threads * Unroll) {
    const std::size_t pack = first + static_cast<std::size_t>(b.thread());
    if (Unroll == 1 && pack >= end) break;
    get<Bytes, Unroll>(b, source, base + pack * Bytes, threads * Bytes, held);
    put<Bytes, Unroll>(b, o, how.destinations, base + pack * Bytes, threads * Bytes, held);
  }
  return first;
}

template <Block B>
TUTTI_DEVICE void copy_pass(B& b, const Operands& o, const Combination& how, std::size_t bytes) {
  const std::size_t differ = disagreement(b, o, how);
  const std::size_t width = differ == 0 ? 16 : differ % 4 == 0 ? 4 : 1;
  const Edges edges = edges_of(o.sources[0], width, bytes);
  if (width == 16) {
    const std::size_t rest = copy_packs<16, 4>(b, o, how, edges.head, 0, edges.packs);
    copy_packs<16, 1>(b, o, how, edges.head, rest, edges.packs);
  } else if (width == 4) {
    copy_packs<4, 1>(b, o, how, edges.head, 0, edges.packs);
  }
  if (width == 1) {
    copy_packs<1, 1>(b, o, how, 0, 0, bytes);
  } else {
    // Fewer elements than two packs have: those before the first pack and after the last.
    const auto at = static_cast<std::size_t>(b.thread());
    const std::size_t ends = edges.head + (bytes - edges.tail);
    for (std::size_t i = at; i < ends; i += static_cast<std::size_t>(b.threads())) {
      const std::size_t offset = i < edges.head ? i : i - edges.head + edges.tail;
      Pack<1> held[1];
      get<1, 1>(b, o.sources[0], offset, 0, held);
      put<1, 1>(b, o, how.destinations, offset, 0, held);
    }
  }
}

/// An operator known at compile time.
template <class Op, bool Divides>
struct StaticOperator {
  static constexpr bool scales = false;
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

/// Combines packs at `offset`, `apart` bytes apart, of all sources, as reduce_scalar of ops.h does. Loads the next
/// source while combining the current one.
template <class T, int Bytes, int Unroll, class Operator, Block B>
TUTTI_DEVICE void reduce_packs(B& b, const Operands& o, const Combination& how, const Operator& op, std::size_t offset,
                               std::size_t apart) {
  using E = Elements<T, Bytes>;
  Accumulate<T> result[Unroll][E::size]{};
  Pack<Bytes> held[Unroll]{}, next[Unroll]{};
  get<Bytes, Unroll>(b, o.sources[0], offset, apart, held);
  TUTTI_ROLL
  for (int source = 0; source < how.sources; ++source) {
    if (source + 1 < how.sources) get<Bytes, Unroll>(b, o.sources[source + 1], offset, apart, next);
    TUTTI_UNROLL
    for (int u = 0; u < Unroll; ++u) {
      auto elements = bits_of<E>(held[u]);
      Accumulate<T> operand[E::size];
      if (Operator::scales && o.scaled[source] != 0) {
        TUTTI_UNROLL
        for (int i = 0; i < E::size; ++i) elements.at[i] = scale(elements.at[i], bits_of<T>(o.scalars[source]));
      }
      TUTTI_UNROLL
      for (int i = 0; i < E::size; ++i) operand[i] = widen(elements.at[i]);
      if (source == 0) {
        TUTTI_UNROLL
        for (int i = 0; i < E::size; ++i) result[u][i] = operand[i];
      } else {
        op.combine(result[u], operand);
      }
      held[u] = next[u];
    }
  }
  TUTTI_UNROLL
  for (int u = 0; u < Unroll; ++u) {
    op.finish(result[u]);
    E rounded{};
    TUTTI_UNROLL
    for (int i = 0; i < E::size; ++i) rounded.at[i] = narrow<T>(result[u][i]);
    held[u] = bits_of<Pack<Bytes>>(rounded);
  }
  put<Bytes, Unroll>(b, o, how.destinations, offset, apart, held);
}

/// The accumulators of one thread stay in registers: at most 32 of them.
template <class T>
inline constexpr int unroll_of = sizeof(T) == 1 ? (is_small_float<T> ? 2 : 1) : 4;

/// Rounds in which every thread takes unroll_of<T> packs. Returns the number of packs processed.
template <class T, class Operator, Block B>
TUTTI_DEVICE std::size_t reduce_rounds(B& b, const Operands& o, const Combination& how, const Operator& op,
                                       const Edges& edges) {
  const auto threads = static_cast<std::size_t>(b.threads());
  const std::size_t round = threads * unroll_of<T>;
  std::size_t first = 0;
  TUTTI_ROLL
  for (; first + round <= edges.packs; first += round)
    reduce_packs<T, 16, unroll_of<T>>(b, o, how, op, edges.head + (first + static_cast<std::size_t>(b.thread())) * 16,
                                      threads * 16);
  return first;
}

/// Sums and averages, the usual operators of large calls, are compiled separately; all others, and the remaining
/// elements at the end, select the operator at run time.
template <class T, Block B>
TUTTI_DEVICE void reduce_pass(B& b, const Operands& o, const Combination& how, std::size_t count) {
  const std::size_t bytes = count * sizeof(T);
  const auto threads = static_cast<std::size_t>(b.threads());
  const auto thread = static_cast<std::size_t>(b.thread());
  Edges edges{bytes, 0, bytes};
  if (disagreement(b, o, how) == 0) edges = edges_of(o.sources[0], 16, bytes);
  const AnyOperator any{how.op, how.divisor};
  std::size_t done = 0;
  if (!how.scales && (how.op == ReduceOp::sum || how.op == ReduceOp::avg || how.op == ReduceOp::pre_mul_sum)) {
    if (how.divisor == 1)
      done = reduce_rounds<T>(b, o, how, StaticOperator<Sum, false>{}, edges);
    else
      done = reduce_rounds<T>(b, o, how, StaticOperator<Sum, true>{how.divisor}, edges);
  }
  TUTTI_ROLL
  for (std::size_t pack = done + thread; pack < edges.packs; pack += threads)
    reduce_packs<T, 16, 1>(b, o, how, any, edges.head + pack * 16, 0);
  const std::size_t ends = edges.head + (bytes - edges.tail);
  TUTTI_ROLL
  for (std::size_t at = thread * sizeof(T); at < ends; at += threads * sizeof(T))
    reduce_packs<T, static_cast<int>(sizeof(T)), 1>(b, o, how, any, at < edges.head ? at : at - edges.head + edges.tail,
                                                    0);
}

/// A pass over `count` elements. A single source that is neither scaled nor divided is copied.
template <class T, Block B>
TUTTI_DEVICE void run_pass(B& b, const Operands& o, const Combination& how, std::size_t count) {
  if constexpr (B::fault == Fault::wrong_bound)
    if (count > 1) --count;
  if (how.sources == 1 && how.divisor == 1 && !how.scales)
    copy_pass(b, o, how, count * sizeof(T));
  else
    reduce_pass<T>(b, o, how, count);
}

}  // namespace tutti::device
