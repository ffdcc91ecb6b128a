// Memory between two ranks joined by RDMA over the fake devices: what is sent without a copy, and what a peer must not
// be able to do.
#include <algorithm>
#include <cstring>

#include "support/verbs_link.h"

namespace tutti::verbs {
namespace {

using testing::LinkPair;

// ---- Memory that is sent without a copy ----

TEST_F(VerbsLink, SegmentsAreReadInPlaceAndKeptUntilThen) {
  for (const char* const seed : {"0", "5"}) {
    ::setenv("FAKE_VERBS_SEED", seed, 1);
    SegmentTable segments;
    std::byte* const memory = *segments.allocate(1 << 20, true);
    std::byte ordinary[20'000];
    LinkPair pair({.slots = 2, .slot_bytes = 100'000}, {.inline_bytes = 64}, &segments);
    for (std::uint32_t round = 0; round < 40; ++round) {
      std::span<std::byte> slot;
      ASSERT_TRUE(comes([&] { return !(slot = *pair.a.link->out().acquire()).empty(); }));
      const std::span block(memory + 1000 * round, 20'000);
      ASSERT_TRUE(comes([&] { return pair.a.link->out().keep(block); }));
      std::ranges::fill(block, static_cast<std::byte>(round));
      EXPECT_FALSE(pair.a.link->out().offer(0, ordinary)) << "it may be unmapped at any time";
      ASSERT_TRUE(pair.a.link->out().offer(30'000, block));
      std::fill_n(slot.begin(), 30'000, std::byte{1});
      std::fill_n(slot.begin() + 30'000, 20'000, std::byte{99});  // not what is sent
      std::fill_n(slot.begin() + 50'000, 10'000, std::byte{2});
      ASSERT_TRUE(pair.a.link->out().commit(60'000));
      ASSERT_TRUE(comes([&] { return pair.a.link->out().keep(block); }));
      std::ranges::fill(block, std::byte{77});  // the device has read it
      std::span<const std::byte> message;
      ASSERT_TRUE(comes([&] { return (message = *pair.b.link->in().peek(60'000)).data() != nullptr; }));
      const auto holds = [&](std::size_t from, std::size_t to, std::uint32_t value) {
        return std::all_of(message.begin() + static_cast<std::ptrdiff_t>(from),
                           message.begin() + static_cast<std::ptrdiff_t>(to),
                           [&](std::byte byte) { return byte == static_cast<std::byte>(value); });
      };
      EXPECT_TRUE(holds(0, 30'000, 1) && holds(30'000, 50'000, round) && holds(50'000, 60'000, 2)) << round;
      ASSERT_TRUE(pair.b.link->in().release());
      if (HasFailure()) return;
    }
    flush(*pair.a.link);
    const std::uint64_t with = live().registered_bytes;
    ASSERT_TRUE(segments.free(memory));
    std::byte* const other = *segments.allocate(1 << 20, true);  // often at the same address
    ASSERT_FALSE((*pair.a.link->out().acquire()).empty());
    ASSERT_TRUE(pair.a.link->out().offer(0, {other, 10'000}));
    EXPECT_EQ(live().registered_bytes, with) << "the old pages are no longer held";
    ASSERT_TRUE(segments.free(other));
  }
}

TEST_F(VerbsLink, RegisteredRangesAreUsedUntilTheyAreRemoved) {
  SegmentTable segments;
  const auto ranges = std::make_shared<RegisteredRanges>();
  std::vector<std::byte> memory(60'000, std::byte{7});
  const std::span<const std::byte> block(memory.data() + 100, 20'000);
  LinkPair pair({.slots = 2, .slot_bytes = 100'000}, {.inline_bytes = 64}, &segments, ranges);
  ASSERT_FALSE((*pair.a.link->out().acquire()).empty());
  EXPECT_FALSE(pair.a.link->out().offer(0, block));
  const std::uint64_t before = live().regions;
  const std::uint64_t part = ranges->add({memory.data() + 50, 1000}), whole = ranges->add({memory.data(), 50'000});
  EXPECT_FALSE(pair.a.link->out().offer(0, {memory.data() + 40'000, 20'000})) << "part of it is not registered";
  ASSERT_TRUE(pair.a.link->out().offer(0, block));
  EXPECT_EQ(live().regions, before + 1);
  EXPECT_EQ(pair.b.link->in().invite(0, std::span(memory).subspan(25'000, 20'000)), Invited::yes);
  ASSERT_TRUE(pair.a.link->out().commit(20'000));
  std::span<const std::byte> message;
  ASSERT_TRUE(comes([&] { return (message = *pair.b.link->in().expect(20'000)).data() != nullptr; }));
  const std::span into(memory.data() + 25'000, 20'000);
  ASSERT_TRUE(comes([&] { return *pair.b.link->in().land(0, into) == into.size(); }));
  EXPECT_EQ(std::ranges::count(into, std::byte{7}), 20'000);
  ASSERT_TRUE(pair.b.link->in().release());
  ASSERT_TRUE(comes([&] { return pair.b.link->in().closed(); }));
  flush(*pair.a.link);
  EXPECT_TRUE(ranges->remove(whole));
  EXPECT_FALSE(ranges->remove(whole));
  ASSERT_FALSE((*pair.a.link->out().acquire()).empty());
  EXPECT_FALSE(pair.a.link->out().offer(0, block)) << "it may be unmapped now";
  EXPECT_EQ(live().regions, before + 1) << "of the other end";
  EXPECT_EQ(pair.b.link->in().invite(0, into), Invited::no);
  EXPECT_EQ(live().regions, before);
  EXPECT_TRUE(ranges->remove(part));
}

TEST_F(VerbsLink, AChangeBeforeTheMessageLeavesIsCopiedFirst) {
  SegmentTable segments;
  std::byte* const memory = *segments.allocate(1 << 16, true);
  LinkPair pair({.slots = 2, .slot_bytes = 50'000}, {.inline_bytes = 64}, &segments);
  ASSERT_FALSE((*pair.a.link->out().acquire()).empty());
  std::fill_n(memory, 20'000, std::byte{7});
  ASSERT_TRUE(pair.a.link->out().offer(0, {memory, 20'000}));
  ASSERT_TRUE(pair.a.link->out().keep({memory + 500, 10}));
  std::fill_n(memory, 20'000, std::byte{8});
  ASSERT_TRUE(pair.a.link->out().commit(20'000));
  flush(*pair.a.link);
  expect_next(*pair.b.link, 0x07070707, 20'000);
}

TEST_F(VerbsLink, WhatChangesAfterAStopIsNotSent) {
  ::setenv("FAKE_VERBS_SEED", "5", 1);  // the device reads late
  constexpr std::int64_t late_ns = 10'000'000;
  SegmentTable segments;
  std::byte* const memory = *segments.allocate(1 << 16, true);
  for (int round = 0; round < 20; ++round) {
    LinkPair pair({.slots = 2, .slot_bytes = 50'000}, {.inline_bytes = 64}, &segments);
    ASSERT_FALSE((*pair.a.link->out().acquire()).empty());
    std::fill_n(memory, 20'000, std::byte{7});
    ASSERT_TRUE(pair.a.link->out().offer(0, {memory, 20'000}));
    ASSERT_TRUE(pair.a.link->out().commit(20'000));
    ASSERT_TRUE(pair.a.link->out().flush());
    pair.a.link->stop();
    std::fill_n(memory, 20'000, std::byte{8});
    std::span<const std::byte> message;
    for (const std::int64_t end = real_system().now_ns() + late_ns;
         message.data() == nullptr && real_system().now_ns() < end;)
      if (auto got = pair.b.link->in().peek(20'000)) message = *got;
    EXPECT_EQ(std::ranges::count(message, std::byte{8}), 0) << "round " << round;
    EXPECT_FALSE(pair.a.link->out().acquire()) << "nothing leaves a link that was stopped";
  }
}

// ---- What a peer must not be able to do ----

TEST_F(VerbsLink, AKeyOfAnotherCommunicatorIsRefused) {
  LinkPair own({.slots = 4, .slot_bytes = 4096}), other({.slots = 4, .slot_bytes = 4096});
  const auto endpoint = own.a.endpoint;
  auto thief = Link::make(endpoint, {.slots = 4, .slot_bytes = 4096}, {}, 1, "rank 1");
  auto victim = Link::make(own.b.endpoint, {.slots = 4, .slot_bytes = 4096}, {}, 0, "rank 0");
  ASSERT_TRUE(thief && victim);
  LinkAddress forged = (*victim)->address();
  forged.ring = other.b.link->address().ring;
  forged.rkey = other.b.link->address().rkey;
  ASSERT_TRUE((*thief)->connect(forged));
  ASSERT_TRUE((*victim)->connect((*thief)->address()));
  send(**thief, 5, 3000);
  (void)(*thief)->out().flush();
  const Error error = ends(**thief);
  EXPECT_NE(error.what.find("status 10)"), std::string::npos) << error.text();
  EXPECT_EQ((*other.b.link->in().peek(3000)).data(), nullptr);
}

TEST_F(VerbsLink, WritesOutsideTheRingAreRefused) {
  LinkPair pair({.slots = 2, .slot_bytes = 4096});
  auto a = Link::make(pair.a.endpoint, {.slots = 2, .slot_bytes = 4096}, {}, 1, "rank 1");
  auto b = Link::make(pair.b.endpoint, {.slots = 2, .slot_bytes = 4096}, {}, 0, "rank 0");
  LinkAddress forged = (*b)->address();
  forged.ring += 4 * 4096 - 100;
  ASSERT_TRUE((*a)->connect(forged));
  ASSERT_TRUE((*b)->connect((*a)->address()));
  send(**a, 5, 3000);
  (void)(*a)->out().flush();
  EXPECT_NE(ends(**a).what.find("status 10)"), std::string::npos);
}

TEST_F(VerbsLink, ImmediatesThatCannotBeEndTheLink) {
  struct Case {
    const char* name;
    std::vector<Immediate> come;
    std::uint32_t bytes;
  };
  const Case cases[] = {
      {"a message beyond the ring", {{.message = 8}}, 10},
      {"a message before the first", {{.message = Immediate::messages - 1}}, 10},
      {"a piece after the last", {{.message = 0, .piece = 2, .last = 1}}, 16384},
      {"a piece twice", {{.message = 0, .piece = 0, .last = 1}, {.message = 0, .piece = 0, .last = 1}}, 16384},
      {"another number of pieces",
       {{.message = 0, .piece = 0, .last = 2}, {.message = 0, .piece = 1, .last = 3}},
       16384},
      {"a piece in the middle that is short", {{.message = 0, .piece = 0, .last = 1}}, 10},
      {"a last piece that is long", {{.message = 0, .piece = 0, .last = 0}}, 16385},
      {"more than a slot", {{.message = 0, .piece = 0, .last = 7}, {.message = 0, .piece = 1, .last = 7}}, 16384},
      {"several messages that are none", {{.packed = true, .message = 3}}, 24},
      {"several messages of which some were before", {{.packed = true, .message = 0}}, 24},
      {"credits for what was not sent", {{.message = 0, .credits = 1}}, 10},
      {"credits alone for what was not sent", {{.credit_only = true, .credits = 2000}}, 0},
  };
  for (const Case& one : cases) {
    LinkPair pair({.slots = 4, .slot_bytes = 20'000});
    for (const Immediate& immediate : one.come) {
      Completion completion{};
      completion.wr_id = std::uint64_t{1} << 31;
      completion.status = Status::success;
      completion.byte_len = one.bytes;
      completion.immediate = __builtin_bswap32(immediate.pack());
      completion.wc_flags = with_immediate;
      pair.a.link->complete(completion);
    }
    const auto message = pair.a.link->in().peek(10);
    ASSERT_FALSE(message) << one.name;
    EXPECT_NE(message.error().what.find("cannot be"), std::string::npos) << message.error().text();
  }
}

}  // namespace
}  // namespace tutti::verbs
