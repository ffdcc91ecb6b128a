// Operators and types that only the host has: bitwise and logical operators, 16-bit integers, complex numbers,
// operators of the program, and a type per rank. Every access gives what the definition gives.
#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "support/buffer.h"
#include "support/elements.h"
#include "support/random.h"
#include "support/setup.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

constexpr auto bad = tuttiInvalidArgument;

class Operators : public ::testing::TestWithParam<Setup> {
 protected:
  static void run(const std::function<void(Seat&, const std::vector<tuttiComm_t>&)>& body) {
    with_communicators(GetParam(), body);
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, Operators,
                         ::testing::Values(Setup{1, Layout::processes, "auto"}, Setup{2, Layout::processes, "auto"},
                                           Setup{3, Layout::processes, "mapped"}, Setup{4, Layout::processes, "cma"},
                                           Setup{3, Layout::processes, "slots"}, Setup{4, Layout::threads, "auto"},
                                           Setup{6, Layout::pairs, "auto"}, Setup{7, Layout::one_thread, "auto"},
                                           Setup{20, Layout::one_thread, "slots"},
                                           Setup{4, Layout::processes, "socket"}, Setup{3, Layout::processes, "rdma"}),
                         name_of_setup);

/// Without the sign of zeros, which in complex products hangs on the order.
template <class T>
T plain(T x) {
  if constexpr (requires { x.re; })
    return {x.re + 0, x.im + 0};
  else
    return x;
}

enum class What { all_reduce, reduce, reduce_scatter, scan, ex_scan };
constexpr std::array whats = {What::all_reduce, What::reduce, What::reduce_scatter, What::scan, What::ex_scan};

/// How many ranks' inputs, from rank 0 on, are combined in this rank's result; 0: it has none.
int combined(What what, int rank, int ranks, int root) {
  switch (what) {
    case What::reduce: return rank == root ? ranks : 0;
    case What::scan: return rank + 1;
    case What::ex_scan: return rank;
    default: return ranks;
  }
}

/// One reduction of every rank here. `value(rank, i)` is an element of a rank's input; `combine` the operator; `end`
/// what happens to the result.
template <class T, class Value, class Combine, class End>
void expect_reduced(Seat& seat, const std::vector<tuttiComm_t>& comms, What what, Memory memory, std::size_t count,
                    tuttiDataType_t type, const std::function<tuttiRedOp_t(std::size_t)>& op, const Value& value,
                    const Combine& combine, const End& end) {
  const auto ranks = static_cast<std::size_t>(seat.ranks());
  const int root = static_cast<int>(count) % seat.ranks();
  const std::size_t sent = what == What::reduce_scatter ? ranks * count : count;
  std::vector<std::unique_ptr<Buffer>> in, out;
  for (const int rank : seat.here()) {
    in.push_back(std::make_unique<Buffer>(memory, sent * sizeof(T), count % 3));
    out.push_back(std::make_unique<Buffer>(memory, count * sizeof(T)));
    for (std::size_t i = 0; i < sent; ++i) store<T>(in.back()->data(), i, value(rank, i));
  }
  const bool grouped = comms.size() > 1;
  ASSERT_TRUE(!grouped || ok(tuttiGroupStart()));
  for (std::size_t i = 0; i < comms.size(); ++i) {
    const auto* const s = in[i]->data();
    auto* const r = out[i]->data();
    switch (what) {
      case What::all_reduce: ASSERT_TRUE(ok(tuttiAllReduce(s, r, count, type, op(i), comms[i], nullptr))); break;
      case What::reduce: ASSERT_TRUE(ok(tuttiReduce(s, r, count, type, op(i), root, comms[i], nullptr))); break;
      case What::reduce_scatter:
        ASSERT_TRUE(ok(tuttiReduceScatter(s, r, count, type, op(i), comms[i], nullptr)));
        break;
      case What::scan: ASSERT_TRUE(ok(tuttiScan(s, r, count, type, op(i), comms[i], nullptr))); break;
      case What::ex_scan: ASSERT_TRUE(ok(tuttiExScan(s, r, count, type, op(i), comms[i], nullptr))); break;
    }
  }
  ASSERT_TRUE(!grouped || ok(tuttiGroupEnd()));
  for (std::size_t k = 0; k < comms.size(); ++k) {
    const int rank = seat.here()[k];
    for (std::size_t i = 0; i < sent; ++i)
      if (!same_bits(load<T>(in[k]->data(), i), value(rank, i))) FAIL() << "the input was changed at " << i;
    ASSERT_TRUE(in[k]->guards_intact() && out[k]->guards_intact());
    const int of = combined(what, rank, seat.ranks(), root);
    if (of == 0) {
      ASSERT_TRUE(out[k]->poisoned(0, out[k]->bytes()));
      continue;
    }
    const std::size_t first = what == What::reduce_scatter ? static_cast<std::size_t>(rank) * count : 0;
    for (std::size_t i = 0; i < count; ++i) {
      T expected = value(0, first + i);
      for (int other = 1; other < of; ++other) expected = combine(expected, value(other, first + i));
      if (!same_bits(plain(load<T>(out[k]->data(), i)), plain<T>(end(expected))))
        FAIL() << "element " << i << " of " << count << ", rank " << rank << ", type " << name(type) << ", call "
               << static_cast<int>(what);
    }
  }
}

constexpr std::array counts = {std::size_t{1}, std::size_t{5}, std::size_t{700}, std::size_t{9'001}};

/// Every reduction, size and kind of memory, or a share of them.
template <class F>
void for_each_shape(F&& f) {
  int nth = 0;
  for (const What what : whats)
    for (const std::size_t count : counts)
      for (const Memory memory : {Memory::mapped, Memory::heap})
        if (in_share(++nth)) f(what, count, memory);
}

template <class T>
T integer(std::uint64_t seed, int rank, std::size_t i, bool zeros) {
  const std::uint64_t bits = mix(seed, static_cast<std::uint64_t>(rank), i);
  return zeros && bits % 4 < 2 ? T{0} : static_cast<T>(bits >> 8);
}

template <class T, class Op>
void expect_bits(Seat& seat, const std::vector<tuttiComm_t>& comms, tuttiDataType_t type, tuttiRedOp_t op, What what,
                 std::size_t count, Memory memory) {
  const bool logical = op >= tuttiLogicalAnd;
  const auto value = [&](int rank, std::size_t i) { return integer<T>(test_seed() + op, rank, i, logical); };
  expect_reduced<T>(
      seat, comms, what, memory, count, type, [op](std::size_t) { return op; }, value, Op{}, [](T x) { return x; });
}

/// The largest power of two: twice it is infinite, and few multiples of it are rounded.
template <class T>
T large() {
  return from_double<T>(std::ldexp(1.0, std::ilogb(static_cast<double>(widen(largest<T>())))));
}

template <class T>
void expect_averages_of_large(Seat& seat, const std::vector<tuttiComm_t>& comms, tuttiDataType_t type) {
  if (std::log2(seat.ranks()) >= Precision<T>::digits) return;
  for_each_shape([&](What what, std::size_t count, Memory memory) {
    if (what == What::scan || what == What::ex_scan) return;
    expect_reduced<T>(
        seat, comms, what, memory, count, type, [](std::size_t) { return tuttiAvg; },
        [](int, std::size_t) { return large<T>(); }, [](T a, T) { return a; }, [](T x) { return x; });
  });
}

TEST_P(Operators, AveragesAreFiniteWhereSumsAreNot) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    expect_averages_of_large<Float16>(seat, comms, tuttiFloat16);
    expect_averages_of_large<Bfloat16>(seat, comms, tuttiBfloat16);
    expect_averages_of_large<Float8E4m3>(seat, comms, tuttiFloat8e4m3);
    expect_averages_of_large<Float8E5m2>(seat, comms, tuttiFloat8e5m2);
    expect_averages_of_large<float>(seat, comms, tuttiFloat32);
    expect_averages_of_large<double>(seat, comms, tuttiFloat64);
  });
}

/// Rank 0 gets more than the others.
TEST_P(Operators, AveragesWithACountPerRankAreFinite) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    for (const std::size_t each : {std::size_t{3}, std::size_t{5'000}}) {
      std::vector<std::size_t> sent(static_cast<std::size_t>(seat.ranks()), each), at;
      sent[0] *= 2;
      std::size_t all = 0;
      for (const std::size_t block : sent) at.push_back(std::exchange(all, all + block));
      std::vector<std::vector<Float16>> in, out;
      for (const int rank : seat.here()) {
        in.emplace_back(all, large<Float16>());
        out.emplace_back(sent[static_cast<std::size_t>(rank)]);
      }
      ASSERT_TRUE(comms.size() == 1 || ok(tuttiGroupStart()));
      for (std::size_t i = 0; i < comms.size(); ++i)
        ASSERT_TRUE(ok(tuttiReduceScatterV(in[i].data(), sent.data(), at.data(), out[i].data(), out[i].size(),
                                           tuttiFloat16, tuttiAvg, comms[i], nullptr)));
      ASSERT_TRUE(comms.size() == 1 || ok(tuttiGroupEnd()));
      for (const std::vector<Float16>& got : out)
        for (const Float16 value : got) ASSERT_TRUE(same_bits(value, large<Float16>()));
    }
  });
}

TEST_P(Operators, OfBitsAndTruthGiveWhatTheyShould) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    int nth = 0;  // each type and operator with a sixth of the shapes, another one
    const auto with = [&]<class T>(tuttiDataType_t type, T*) {
      for_each_shape([&](What what, std::size_t count, Memory memory) {
        seat.doing(fmt::format("{} x {}", count, name(type)));
        switch ((nth++ + type) % 6) {
          case 0: return expect_bits<T, BitAnd>(seat, comms, type, tuttiBitAnd, what, count, memory);
          case 1: return expect_bits<T, BitOr>(seat, comms, type, tuttiBitOr, what, count, memory);
          case 2: return expect_bits<T, BitXor>(seat, comms, type, tuttiBitXor, what, count, memory);
          case 3: return expect_bits<T, LogicalAnd>(seat, comms, type, tuttiLogicalAnd, what, count, memory);
          case 4: return expect_bits<T, LogicalOr>(seat, comms, type, tuttiLogicalOr, what, count, memory);
          default: return expect_bits<T, LogicalXor>(seat, comms, type, tuttiLogicalXor, what, count, memory);
        }
      });
    };
    for (const auto type :
         {tuttiInt8, tuttiUint8, tuttiInt16, tuttiUint16, tuttiInt32, tuttiUint32, tuttiInt64, tuttiUint64})
      with_type(type, [&]<class T>(T* t) {
        if constexpr (std::is_integral_v<T>) with(type, t);
      });
  });
}

/// Small whole numbers, so that all sums and products are exact in any order.
template <class F>
Complex<F> whole(int rank, std::size_t i, bool product) {
  const std::uint64_t bits = mix(test_seed(), static_cast<std::uint64_t>(rank), i);
  if (!product) return {.re = static_cast<F>(bits % 9) - 4, .im = static_cast<F>(bits / 16 % 9) - 4};
  constexpr std::array<Complex<F>, 5> factors = {{{1, 0}, {0, 1}, {-1, 0}, {0, -1}, {1, 1}}};
  return factors[bits % (rank < 12 ? 5 : 4)];
}

template <class F>
void expect_complex(Seat& seat, const std::vector<tuttiComm_t>& comms, tuttiDataType_t type, What what,
                    std::size_t count, Memory memory) {
  using C = Complex<F>;
  const auto is = [](tuttiRedOp_t op) { return [op](std::size_t) { return op; }; };
  const auto term = [](int rank, std::size_t i) { return whole<F>(rank, i, false); };
  const auto factor = [](int rank, std::size_t i) { return whole<F>(rank, i, true); };
  const auto plus = [](C a, C b) { return C{a.re + b.re, a.im + b.im}; };
  const auto same = [](C x) { return x; };
  const auto ranks = static_cast<F>(seat.ranks());
  expect_reduced<C>(seat, comms, what, memory, count, type, is(tuttiSum), term, plus, same);
  if (what != What::scan && what != What::ex_scan)
    expect_reduced<C>(seat, comms, what, memory, count, type, is(tuttiAvg), term, plus, [ranks](C x) {
      return C{x.re / ranks, x.im / ranks};
    });
  expect_reduced<C>(
      seat, comms, what, memory, count, type, is(tuttiProd), factor,
      [](C a, C b) {
        const std::complex<F> whole = std::complex<F>(a.re, a.im) * std::complex<F>(b.re, b.im);
        return C{whole.real(), whole.imag()};
      },
      same);
}

TEST_P(Operators, OfComplexNumbersGiveWhatTheyShould) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    for_each_shape([&](What what, std::size_t count, Memory memory) {
      expect_complex<float>(seat, comms, tuttiComplex64, what, count, memory);
      expect_complex<double>(seat, comms, tuttiComplex128, what, count, memory);
    });
  });
}

struct Modulus {
  std::uint64_t value;
  std::atomic<std::uint64_t> aligned{1};
};

/// Products in a field, which any order and any grouping leave as they are.
void multiply_modulo(const void* in, void* inout, std::size_t count, tuttiDataType_t type, void* context) {
  auto& modulus = *static_cast<Modulus*>(context);
  const auto* const a = static_cast<const std::uint64_t*>(in);
  auto* const b = static_cast<std::uint64_t*>(inout);
  const auto low = (reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(inout)) % 64;
  if (low != 0 || type != tuttiUint64 || count == 0) modulus.aligned = 0;
  for (std::size_t i = 0; i < count; ++i) b[i] = a[i] * b[i] % modulus.value;
}

TEST_P(Operators, OfTheProgramAreCalledForEveryElement) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    Modulus modulus{.value = 2'147'483'647};
    std::vector<tuttiRedOp_t> ops(comms.size());
    for (std::size_t i = 0; i < comms.size(); ++i)
      ASSERT_TRUE(ok(tuttiRedOpCreate(&ops[i], multiply_modulo, &modulus, tuttiUint64, comms[i])));
    const auto value = [&](int rank, std::size_t i) {
      return 1 + mix(test_seed(), static_cast<std::uint64_t>(rank), i) % (modulus.value - 1);
    };
    for_each_shape([&](What what, std::size_t count, Memory memory) {
      expect_reduced<std::uint64_t>(
          seat, comms, what, memory, count, tuttiUint64, [&](std::size_t i) { return ops[i]; }, value,
          [&](std::uint64_t a, std::uint64_t b) { return a * b % modulus.value; }, [](std::uint64_t x) { return x; });
    });
    EXPECT_EQ(modulus.aligned, 1u) << "operands as promised";
    for (std::size_t i = 0; i < comms.size(); ++i) EXPECT_TRUE(ok(tuttiRedOpDestroy(ops[i], comms[i])));
  });
}

/// Freed while a call on a stream has not begun.
TEST_P(Operators, OfTheProgramServeQueuedCallsAfterTheirEnd) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    if (comms.size() > 1) return;
    Modulus modulus{.value = 101};
    tuttiRedOp_t op = tuttiSum;
    tuttiStream_t stream = nullptr;
    ASSERT_TRUE(ok(tuttiStreamCreate(&stream)));
    std::vector<std::uint64_t> x(1000, 3);
    ASSERT_TRUE(ok(tuttiRedOpCreate(&op, multiply_modulo, &modulus, tuttiUint64, comms[0])));
    ASSERT_TRUE(ok(tuttiAllReduce(x.data(), x.data(), x.size(), tuttiUint64, op, comms[0], stream)));
    EXPECT_TRUE(ok(tuttiRedOpDestroy(op, comms[0])));
    ASSERT_TRUE(ok(tuttiStreamSynchronize(stream)));
    std::uint64_t expected = 1;
    for (int i = 0; i < seat.ranks(); ++i) expected = expected * 3 % 101;
    EXPECT_EQ(x, std::vector<std::uint64_t>(1000, expected));
    EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
  });
}

/// Between each pair of ranks another type and number; what lies between the blocks is left alone.
TEST_P(Operators, ATypePerRankIsBytes) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    const int ranks = seat.ranks();
    const auto n = static_cast<std::size_t>(ranks);
    const auto type_of = [](int from, int to) {
      return type_at(static_cast<std::size_t>((from * 5 + to * 3) % data_type_count));
    };
    const auto bytes_of = [&](tuttiDataType_t type) { return tutti::size_of(internal(type)); };
    const auto count_of = [&](int from, int to) { return mix(test_seed(), 1, from * 64 + to) % 400; };
    struct Side {
      std::vector<std::size_t> counts, at;
      std::vector<tuttiDataType_t> types;
      std::unique_ptr<Buffer> buffer;
    };
    std::vector<std::array<Side, 2>> sides(comms.size());
    const auto byte = [](int from, int to, std::size_t i) { return static_cast<std::byte>(mix(from, to, i) >> 13); };
    for (std::size_t k = 0; k < comms.size(); ++k)
      for (const bool send : {true, false}) {
        Side& side = sides[k][send ? 0 : 1];
        std::size_t end = 0;
        for (int peer = 0; peer < ranks; ++peer) {
          const int me = seat.here()[k], from = send ? me : peer, to = send ? peer : me;
          // The two sides need not agree on the type, only on the bytes.
          const bool whole = (from + to) % 2 == 0;
          const std::size_t bytes = count_of(from, to) * bytes_of(type_of(from, to));
          side.types.push_back(whole && !send ? tuttiUint8 : type_of(from, to));
          side.counts.push_back(bytes / bytes_of(side.types.back()));
          side.at.push_back(end + 3);
          end += bytes + 3;
        }
        side.buffer = std::make_unique<Buffer>(k % 2 == 0 ? Memory::mapped : Memory::heap, end + 3);
        for (int to = 0; send && to < ranks; ++to)
          for (std::size_t i = 0; i < side.counts[to] * bytes_of(side.types[to]); ++i)
            side.buffer->data()[side.at[to] + i] = byte(seat.here()[k], to, i);
      }
    const bool grouped = comms.size() > 1;
    ASSERT_TRUE(!grouped || ok(tuttiGroupStart()));
    for (std::size_t k = 0; k < comms.size(); ++k) {
      const auto& [out, in] = sides[k];
      ASSERT_TRUE(
          ok(tuttiAllToAllW(out.buffer->data(), out.counts.data(), out.at.data(), out.types.data(), in.buffer->data(),
                            in.counts.data(), in.at.data(), in.types.data(), comms[k], nullptr)));
    }
    ASSERT_TRUE(!grouped || ok(tuttiGroupEnd()));
    for (std::size_t k = 0; k < comms.size(); ++k) {
      const Side& in = sides[k][1];
      for (std::size_t from = 0; from < n; ++from) {
        EXPECT_TRUE(in.buffer->poisoned(in.at[from] - 3, 3));
        const std::size_t bytes = in.counts[from] * bytes_of(in.types[from]);
        for (std::size_t i = 0; i < bytes; ++i)
          ASSERT_EQ(in.buffer->data()[in.at[from] + i], byte(static_cast<int>(from), seat.here()[k], i));
      }
      EXPECT_TRUE(in.buffer->guards_intact());
    }
  });
}

TEST(OperatorArguments, AreChecked) {
  launch_ranks({.ranks = 2, .layout = Layout::threads}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    std::array<double, 8> x{};
    const auto call = [&](tuttiDataType_t type, tuttiRedOp_t op) {
      return tuttiAllReduce(x.data(), x.data(), 1, type, op, comm, nullptr);
    };
    for (std::size_t place = 0; place < data_type_count; ++place)
      for (int op = 0; op < tuttiNumOps; ++op) {
        const auto type = type_at(place), t = type;
        const TypeGroup group = group_of(internal(type));
        const bool integers = group == TypeGroup::integer;
        const bool in_order = group != TypeGroup::complex || (op != tuttiMax && op != tuttiMin);
        const auto result = call(t, static_cast<tuttiRedOp_t>(op));
        if (op == 5)
          EXPECT_TRUE(fails(result, bad, "op 5"));
        else if (op > 5 && !integers)
          EXPECT_TRUE(fails(result, bad, "is for integers")) << op << " " << type;
        else if (!in_order)
          EXPECT_TRUE(fails(result, bad, "that have an order")) << op << " " << type;
        else
          EXPECT_TRUE(ok(result)) << op << " " << type;
      }
    tuttiRedOp_t op = tuttiSum;
    const std::array<double, 2> one = {1, 0};
    for (const auto type : {tuttiComplex64, tuttiComplex128})
      EXPECT_TRUE(
          fails(tuttiRedOpCreatePreMulSum(&op, const_cast<double*>(one.data()), type, tuttiScalarHostImmediate, comm),
                bad, "complex"));
    EXPECT_TRUE(fails(tuttiRedOpCreate(nullptr, multiply_modulo, nullptr, tuttiInt8, comm), bad, "op is NULL"));
    EXPECT_TRUE(fails(tuttiRedOpCreate(&op, nullptr, nullptr, tuttiInt8, comm), bad, "function is NULL"));
    EXPECT_TRUE(fails(tuttiRedOpCreate(&op, multiply_modulo, nullptr, tuttiNumTypes, comm), bad,
                      "type " + std::to_string(tuttiNumTypes)));
    EXPECT_TRUE(fails(tuttiRedOpCreate(&op, multiply_modulo, nullptr, tuttiInt8, nullptr), bad, "comm is NULL"));
    ASSERT_TRUE(ok(tuttiRedOpCreate(&op, multiply_modulo, nullptr, tuttiUint64, comm)));
    EXPECT_TRUE(fails(call(tuttiFloat64, op), bad, "made for uint64"));
    EXPECT_TRUE(ok(tuttiRedOpDestroy(op, comm)));
    EXPECT_TRUE(fails(tuttiRedOpDestroy(op, comm), bad, "op"));
    EXPECT_TRUE(fails(call(tuttiUint64, op), bad, "op"));

    const std::array<std::size_t, 2> ones = {1, 1}, many = {1, SIZE_MAX / 8};
    const std::array types = {tuttiInt8, tuttiComplex128}, strange = {tuttiInt8, tuttiNumTypes};
    const auto w = [&](const std::size_t* n, const tuttiDataType_t* t) {
      return tuttiAllToAllW(x.data(), n, nullptr, t, x.data(), ones.data(), nullptr, types.data(), comm, nullptr);
    };
    EXPECT_TRUE(fails(w(nullptr, types.data()), bad, "sendcounts is NULL"));
    EXPECT_TRUE(fails(w(ones.data(), nullptr), bad, "sendtypes is NULL"));
    EXPECT_TRUE(fails(w(ones.data(), strange.data()), bad, "sendtypes[1]: type " + std::to_string(tuttiNumTypes)));
    EXPECT_TRUE(fails(w(many.data(), types.data()), bad, "sendcounts[1]"));
    ASSERT_TRUE(seat.meet());
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
