// Every number from a message, an address or shared memory that an enumeration does not have is refused in words. What
// needs ranks is in simulated/communicator_test.cpp and simulated/control_links_test.cpp.
#include <gtest/gtest.h>

#include <concepts>
#include <cstring>
#include <string>
#include <vector>

#include "base/enumeration.h"
#include "bootstrap/bootstrap_messages.h"
#include "call/mismatch.h"
#include "call/packed_signature.h"
#include "call/request.h"
#include "comm/transports/rdma/upgrade.h"
#include "net/greeting.h"
#include "net/wire.h"
#include "plan/amount.h"
#include "plan/types.h"
#include "support/sim_system.h"
#include "transport/fd_wire.h"
#include "transport/rank_area.h"
#include "tutti/types.h"

namespace tutti {
namespace {

constexpr std::int64_t s = 1'000'000'000;

/// All numbers of a byte; of wider ones those around the enumeration and at the ends.
template <std::unsigned_integral Number>
std::vector<Number> numbers() {
  std::vector<Number> all;
  for (unsigned number = 0; number < 256; ++number) all.push_back(static_cast<Number>(number));
  if constexpr (sizeof(Number) > 1)
    for (const std::uint64_t number : {256ull, 257ull, 0x101ull, 0xffffull, 0x1'0001ull, 0x7fff'ffffull, 0x8000'0000ull,
                                       0x8000'0001ull, 0xffff'fffeull, 0xffff'ffffull})
      all.push_back(static_cast<Number>(number));
  return all;
}

template <class Enum>
bool exists(std::uint64_t number) {
  return number >= static_cast<std::uint64_t>(EnumBounds<Enum>::first) &&
         number <= static_cast<std::uint64_t>(EnumBounds<Enum>::last);
}

template <class Enum>
void expect_checked() {
  for (const std::uint32_t number : numbers<std::uint32_t>()) {
    const auto checked = enumerator<Enum>(number);
    ASSERT_EQ(checked.has_value(), exists<Enum>(number)) << number;
    if (checked) {
      EXPECT_EQ(static_cast<std::uint32_t>(*checked), number);
    }
  }
  EXPECT_FALSE(enumerator<Enum>(~std::uint64_t{0}));
  EXPECT_FALSE(enumerator<Enum>(std::uint64_t{1} << 32)) << "only the low half was looked at";
}

TEST(ForeignNumbers, BecomeEnumeratorsOnlyWhereOneExists) {
  expect_checked<Collective>();
  expect_checked<DataType>();
  expect_checked<ReduceOp>();
  expect_checked<Form>();
  expect_checked<FrameKind>();
  expect_checked<Purpose>();
  expect_checked<RankState>();
  expect_checked<FdStatus>();
  expect_checked<Code>();
  expect_checked<RdmaFrame::Kind>();
  expect_checked<verbs::LinkLayer>();
}

/// What programs pass: their numbers have a gap, where NCCL's may grow.
TEST(ForeignNumbers, OfTypesAreThoseOfTheHeader) {
  for (const int number : {-1, device_type_count, 63, int{tuttiNumTypes}, 1'000'000, INT_MIN, INT_MAX})
    EXPECT_FALSE(type_of_number(number)) << number;
  for (int i = 0; i < data_type_count; ++i) EXPECT_TRUE(type_of_number(type_facts[i].number));
}

TEST(ForeignNumbers, AFrameOfAnUnknownKindEndsItsConnection) {
  for (const std::uint32_t number : numbers<std::uint32_t>()) {
    SimSystem system({.seed = 1});
    const SocketAddress at{.host = "10.0.0.1", .port = 4711};
    auto listener = *system.listen(at);
    Wire left(system, *system.connect(at));
    PollItem item{.handle = listener.handle(), .want_read = true};
    system.poll({&item, 1}, s);
    Wire right(system, *system.accept(listener));
    left.queue(frame(static_cast<FrameKind>(number), {}));
    auto got = right.take_frame(100);
    for (; got && !*got; got = right.take_frame(100)) {
      (void)left.flush();
      std::array items{left.interest(), right.interest()};
      system.poll(items, s);
    }
    ASSERT_EQ(bool(got), exists<FrameKind>(number)) << number;
    if (got) continue;
    EXPECT_EQ(got.error().code, Code::remote);
    EXPECT_EQ(got.error().what, fmt::format("a frame of kind {}, which does not exist", number));
  }
}

TEST(ForeignNumbers, AGreetingForAnUnknownPurposeIsNone) {
  for (const std::uint8_t number : numbers<std::uint8_t>()) {
    const Bytes bytes = write_greeting({.communicator = 7, .to = 1, .purpose = static_cast<Purpose>(number)});
    const auto read = read_greeting(bytes);
    ASSERT_EQ(bool(read), exists<Purpose>(number)) << int{number};
    if (!read) {
      EXPECT_EQ(read.error().what, "not a greeting");
    }
  }
}

TEST(ForeignNumbers, AnOfferOfRdmaWithoutAKnownKindOrLinkLayerIsRefused) {
  const Secret secret{};
  for (const std::uint32_t number : numbers<std::uint32_t>()) {
    const RdmaFrame odd_kind{.kind = static_cast<RdmaFrame::Kind>(number)};
    auto read = RdmaFrame::read(*odd_kind.write(secret, "connects"), secret, "connects");
    ASSERT_EQ(bool(read), exists<RdmaFrame::Kind>(number)) << number;
    if (!read) {
      EXPECT_NE(read.error().what.find("unknown kind"), std::string::npos) << read.error().what;
    }
    if (number > 255) continue;
    RdmaFrame odd_layer;
    odd_layer.at.port.link_layer = static_cast<verbs::LinkLayer>(number);
    read = RdmaFrame::read(*odd_layer.write(secret, "connects"), secret, "connects");
    ASSERT_EQ(bool(read), exists<verbs::LinkLayer>(number)) << number;
    if (!read) {
      EXPECT_NE(read.error().what.find("unknown link layer"), std::string::npos) << read.error().what;
    }
  }
}

TEST(ForeignNumbers, AFailureWithoutAKnownCodeIsMalformed) {
  for (const std::uint32_t number : numbers<std::uint32_t>()) {
    const Error read = bootstrap::read_failure(
        bootstrap::write_failure({.code = static_cast<Code>(number), .what = "why", .peer = 3}));
    const bool tells = exists<Code>(number) && static_cast<Code>(number) != Code::success &&
                       static_cast<Code>(number) != Code::in_progress;
    EXPECT_EQ(read.what, tells ? "why" : "malformed failure message") << number;
    EXPECT_EQ(read.code, tells ? static_cast<Code>(number) : Code::remote);
  }
}

/// Of a peer's call, for the report of a mismatch.
TEST(ForeignNumbers, AnUnknownCallIsReportedByItsNumbers) {
  for (const std::uint8_t number : numbers<std::uint8_t>()) {
    const auto expect = [](const Signature& call, bool known, const std::string& words) {
      const std::string text = call_text(call);
      EXPECT_EQ(text.find(words) == std::string::npos, known) << text;
    };
    expect({.collective = number}, exists<Collective>(number), fmt::format("call {} ", number));
    expect({.collective = 1, .type = number}, exists<DataType>(number), fmt::format("type {} ", number));
    expect({.collective = 1, .op = number}, exists<ReduceOp>(number), fmt::format("op {} ", number));
    expect({.collective = 1, .form = number}, exists<Form>(number), fmt::format("form {}", number));
  }
  for (const std::uint32_t number : numbers<std::uint32_t>())
    EXPECT_EQ(amount(80, number).find("80 bytes of a type") == std::string::npos, exists<DataType>(number));
}

/// From a kernel of another process, whose fields have room for more than exists.
TEST(ForeignNumbers, APackedCallIsReportedWhateverItsBits) {
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 13; ++bits)
    EXPECT_FALSE(call_text(PackedSignature::unpack(bits).signature).empty());
}

TEST(ForeignNumbers, AStateInSharedMemoryThatDoesNotExistCountsAsDamage) {
  AreaHeader header{};
  for (const std::uint32_t number : numbers<std::uint32_t>()) {
    std::memcpy(static_cast<void*>(&header.state), &number, sizeof number);
    const RankState expected = exists<RankState>(number) ? static_cast<RankState>(number) : RankState::damaged;
    EXPECT_EQ(header.state_now(), expected) << number;
  }
}

}  // namespace
}  // namespace tutti
