// Counts beyond what 31 and 32 bits can say: every element arrives.
#include <fstream>
#include <limits>

#include "support/call.h"
#include "support/launch_ranks.h"
#include "support/reference_reduce.h"

namespace tutti::testing {
namespace {

constexpr std::size_t gib = std::size_t{1} << 30;
constexpr std::size_t beyond_31_bits = (std::size_t{1} << 31) + 17;
constexpr std::size_t beyond_32_bits = (std::size_t{1} << 32) + 17;

/// Of one byte each, between two ranks.
struct Huge {
  const char* name;
  Kind kind;
  std::size_t count;
  InPlace in_place;
  std::size_t total_bytes;  ///< of the buffers of both ranks
};

constexpr std::array huge_calls = {
    Huge{"AllReduce", Kind::all_reduce, beyond_31_bits, InPlace::none, 4 * beyond_31_bits},
    Huge{"AllReduceInPlace", Kind::all_reduce, beyond_32_bits, InPlace::all, 2 * beyond_32_bits},
    Huge{"AllGather", Kind::all_gather, beyond_31_bits, InPlace::all, 4 * beyond_31_bits},  // 2^32 received
    Huge{"Broadcast", Kind::broadcast, beyond_32_bits, InPlace::all, 2 * beyond_32_bits},
    Huge{"ReduceScatter", Kind::reduce_scatter, beyond_31_bits, InPlace::all, 4 * beyond_31_bits},
};

struct Way {
  const char* transport;
  Mix memory;
};
constexpr std::array ways = {Way{"mapped", Mix::mapped}, Way{"cma", Mix::heap}, Way{"slots", Mix::heap}};

std::size_t available_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string name;
  std::size_t kib = 0;
  while (meminfo >> name >> kib) {
    if (name == "MemAvailable:") return kib * 1024;
    meminfo.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

class HugeMemory : public ::testing::Test {
 protected:
  static constexpr std::chrono::seconds limit{1800};

  /// Says why not; "" if there is.
  static std::string no_room_for(std::size_t bytes) {
    const std::size_t needed = bytes + gib;
    const std::size_t there = available_bytes();
    if (there >= needed) return {};
    return "needs " + std::to_string(needed >> 20) + " MiB of memory, " + std::to_string(there >> 20) +
           " are available";
  }
};

class HugeCounts : public HugeMemory, public ::testing::WithParamInterface<std::tuple<Huge, Way>> {};

void PrintTo(const Huge& huge, std::ostream* out) {
  *out << huge.name;
}
void PrintTo(const Way& way, std::ostream* out) {
  *out << way.transport;
}

INSTANTIATE_TEST_SUITE_P(Calls, HugeCounts,
                         ::testing::Combine(::testing::ValuesIn(huge_calls), ::testing::ValuesIn(ways)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "_" + std::get<1>(test.param).transport;
                         });

TEST_P(HugeCounts, EveryElementArrives) {
  const Huge& huge = std::get<0>(GetParam());
  const Way& way = std::get<1>(GetParam());
  if (const auto reason = no_room_for(huge.total_bytes); !reason.empty()) GTEST_SKIP() << reason;
  const Call call{.kind = huge.kind,
                  .type = tuttiUint8,
                  .values = reduces(huge.kind) ? Values::exact : Values::bits,
                  .count = huge.count,
                  .root = 1,
                  .in_place = huge.in_place,
                  .memory = way.memory,
                  .seed = 31};
  launch_ranks({.ranks = 2, .environment = {std::string("TUTTI_TRANSPORT=") + way.transport}, .limit = limit},
               [&](Seat& seat) {
                 const auto comm = seat.init_one();
                 ASSERT_NE(comm, nullptr);
                 EXPECT_EQ(run_call(call, seat.here(), seat.ranks(), {comm}), "");
                 const char* algorithm = "";
                 const char* transport = "";
                 EXPECT_TRUE(ok(tuttiCommLastAlgorithm(comm, &algorithm, &transport)));
                 EXPECT_STREQ(transport, way.transport);
                 EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
               });
}

class HugeMessages : public HugeMemory, public ::testing::WithParamInterface<Memory> {};
INSTANTIATE_TEST_SUITE_P(Memories, HugeMessages, ::testing::Values(Memory::mapped, Memory::heap),
                         [](const auto& test) { return test.param == Memory::mapped ? "mapped" : "heap"; });

TEST_P(HugeMessages, EveryElementArrives) {
  constexpr std::size_t count = beyond_32_bits;
  if (const auto reason = no_room_for(2 * count); !reason.empty()) GTEST_SKIP() << reason;
  launch_ranks({.ranks = 2, .limit = limit}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const Inputs inputs{.type = tuttiUint8, .values = Values::bits, .seed = 32};
    Buffer buffer(GetParam(), count);
    if (seat.rank() == 0) {
      write_inputs(inputs, 0, buffer.data(), 0, count);
      EXPECT_TRUE(ok(tuttiSend(buffer.data(), count, tuttiUint8, 1, comm, nullptr)));
    } else {
      EXPECT_TRUE(ok(tuttiRecv(buffer.data(), count, tuttiUint8, 0, comm, nullptr)));
    }
    EXPECT_EQ(check_copied(inputs, 0, buffer.data(), 0, count), "");
    EXPECT_TRUE(buffer.guards_intact());
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
