// Prefix reductions: in the order of ranks, for operators that are not commutative, by every transport and algorithm;
// rank 0 has no result of an exclusive one, and an average is refused.
#include <array>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "support/buffer.h"
#include "support/elements.h"
#include "support/random.h"
#include "support/setup.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

class Prefix : public ::testing::TestWithParam<Setup> {
 protected:
  static void run(const std::function<void(Seat&, const std::vector<tuttiComm_t>&)>& body) {
    with_communicators(GetParam(), body);
  }
};

INSTANTIATE_TEST_SUITE_P(
    Setups, Prefix,
    ::testing::Values(Setup{1, Layout::processes, "auto"}, Setup{2, Layout::processes, "auto"},
                      Setup{5, Layout::processes, "auto"}, Setup{4, Layout::processes, "mapped", "chain"},
                      Setup{3, Layout::processes, "mapped", "one_shot"}, Setup{4, Layout::processes, "cma"},
                      Setup{3, Layout::processes, "slots", "chain"}, Setup{4, Layout::threads, "auto"},
                      Setup{6, Layout::pairs, "slots", "recursive_doubling"}, Setup{20, Layout::one_thread, "auto"},
                      Setup{20, Layout::one_thread, "slots", "one_shot"},
                      Setup{19, Layout::one_thread, "slots", "recursive_doubling"},
                      Setup{4, Layout::processes, "socket"}, Setup{3, Layout::processes, "rdma"}),
    name_of_setup);

constexpr std::uint32_t prime = 251;

/// x → a·x + b modulo a prime, as a number. One after the other: the order matters, the brackets do not.
std::uint32_t then(std::uint32_t first, std::uint32_t second) {
  const std::uint32_t a = (first / prime) * (second / prime) % prime;
  return a * prime + ((second / prime) * (first % prime) + second % prime) % prime;
}

void compose(const void* in, void* inout, std::size_t count, tuttiDataType_t, void*) {
  const auto* const first = static_cast<const std::uint32_t*>(in);
  auto* const second = static_cast<std::uint32_t*>(inout);
  for (std::size_t i = 0; i < count; ++i) second[i] = then(first[i], second[i]);
}

std::uint32_t value(int rank, std::size_t i) {
  return static_cast<std::uint32_t>(mix(test_seed(), static_cast<std::uint64_t>(rank), i) % (prime * prime));
}

struct Case {
  bool exclusive;
  std::size_t count;
  Memory memory;
  bool in_place;
};

/// The buffers of a rank. Those of rank 0 in an exclusive scan are there, and must stay as they are.
struct Part {
  int rank;
  std::unique_ptr<Buffer> in, out;

  Part(const Case& c, int rank_in) : rank(rank_in), in(std::make_unique<Buffer>(c.memory, bytes(c), c.count % 2 * 4)) {
    for (std::size_t i = 0; i < c.count; ++i) store<std::uint32_t>(in->data(), i, value(rank, i));
    if (!c.in_place) out = std::make_unique<Buffer>(c.memory, bytes(c));
  }
  static std::size_t bytes(const Case& c) { return c.count * sizeof(std::uint32_t); }
  std::byte* result() const { return out ? out->data() : in->data(); }

  void expect_right(const Case& c) const {
    const int combined = c.exclusive ? rank : rank + 1;
    ASSERT_TRUE(in->guards_intact() && (!out || out->guards_intact()));
    if (combined == 0 && out) {
      ASSERT_TRUE(out->poisoned(0, out->bytes())) << "rank 0 has no result";
    }
    for (std::size_t i = 0; i < c.count; ++i) {
      if (out || combined == 0) {
        ASSERT_EQ(load<std::uint32_t>(in->data(), i), value(rank, i)) << "the input changed";
      }
      if (combined == 0) continue;
      std::uint32_t expected = value(0, i);
      for (int other = 1; other < combined; ++other) expected = then(expected, value(other, i));
      ASSERT_EQ(load<std::uint32_t>(result(), i), expected)
          << "element " << i << " of " << c.count << ", rank " << rank;
    }
  }
};

void expect_in_order(Seat& seat, const std::vector<tuttiComm_t>& comms, const std::vector<tuttiRedOp_t>& ops,
                     const Case& c) {
  std::vector<Part> parts;
  for (const int rank : seat.here()) parts.emplace_back(c, rank);
  const bool grouped = parts.size() > 1;
  ASSERT_TRUE(!grouped || ok(tuttiGroupStart()));
  for (std::size_t i = 0; i < parts.size(); ++i)
    ASSERT_TRUE(ok((c.exclusive ? tuttiExScan : tuttiScan)(parts[i].in->data(), parts[i].result(), c.count, tuttiUint32,
                                                           ops[i], comms[i], nullptr)));
  ASSERT_TRUE(!grouped || ok(tuttiGroupEnd()));
  for (const Part& part : parts) part.expect_right(c);
}

TEST_P(Prefix, IsInTheOrderOfRanks) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    std::vector<tuttiRedOp_t> ops(comms.size());
    for (std::size_t i = 0; i < comms.size(); ++i)
      ASSERT_TRUE(ok(tuttiRedOpCreate(&ops[i], compose, nullptr, tuttiUint32, comms[i])));
    int nth = 0;
    for (const std::size_t count : {0, 1, 3, 100, 1'001, 20'011, 100'003})
      for (const Memory memory : {Memory::mapped, Memory::heap})
        for (const bool exclusive : {false, true})
          for (const bool in_place : {false, true}) {
            if (!in_share(nth++)) continue;
            const Case c{.exclusive = exclusive, .count = count, .memory = memory, .in_place = in_place};
            seat.doing(fmt::format("{} x {}{}", exclusive ? "ex_scan" : "scan", count, in_place ? " in place" : ""));
            // Twice: small calls go without a plan from the second on.
            for (int time = 0; time < 2; ++time) expect_in_order(seat, comms, ops, c);
            if (::testing::Test::HasFailure()) return;
          }
    for (std::size_t i = 0; i < comms.size(); ++i) EXPECT_TRUE(ok(tuttiRedOpDestroy(ops[i], comms[i])));
  });
}

TEST_P(Prefix, HasNoAverage) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    float x = 1, y = 2;
    for (const auto comm : comms)
      for (const auto prefix : {tuttiScan, tuttiExScan}) {
        EXPECT_TRUE(fails(prefix(&x, &y, 1, tuttiFloat32, tuttiAvg, comm, nullptr), tuttiInvalidArgument,
                          "tuttiAvg is not an operator of a prefix reduction"));
        ASSERT_TRUE(ok(tuttiGroupStart()));
        EXPECT_TRUE(fails(prefix(&x, &y, 1, tuttiFloat32, tuttiAvg, comm, nullptr), tuttiInvalidArgument, "tuttiAvg"));
        EXPECT_EQ(tuttiGroupEnd(), tuttiInvalidArgument) << "nothing of the group is started";
      }
    EXPECT_EQ(y, 2);
    expect_in_order(seat, comms, std::vector<tuttiRedOp_t>(comms.size(), tuttiMax), {});
  });
}

TEST_P(Prefix, IsExplained) {
  run([](Seat&, const std::vector<tuttiComm_t>& comms) {
    for (const char* name : {"scan", "ex_scan", "ExScan"}) {
      std::array<char, 1 << 14> text{};
      ASSERT_TRUE(ok(tuttiCommExplain(comms[0], name, 100'000, tuttiFloat32, text.data(), text.size(), nullptr)));
      EXPECT_NE(std::strstr(text.data(), "used: "), nullptr) << text.data();
    }
  });
}

}  // namespace
}  // namespace tutti::testing
