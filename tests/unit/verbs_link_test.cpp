// Two ranks joined by RDMA over the fake devices: credits, posts, offers, errors, and what a peer must not be able to
// do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <thread>

#include "support/verbs_links.h"

namespace tutti::verbs {
namespace {

using testing::fake_control;
using testing::LinkPair;

constexpr std::int64_t patience_ns = 60'000'000'000;

class VerbsLink : public ::testing::Test {
 protected:
  VerbsLink() {
    ::setenv("FAKE_VERBS_SEED", "0", 1);
    library_ = testing::fake_verbs();
    fake_control<void()>(*library_, "fake_verbs_reset")();
  }

  void fault(const char* text) const {
    ASSERT_EQ(fake_control<int(const char*)>(*library_, "fake_verbs_fault")(text), 0) << text;
  }
  FakeVerbsCounters counters() const {
    FakeVerbsCounters all{};
    fake_control<void(FakeVerbsCounters*)>(*library_, "fake_verbs_counters")(&all);
    return all;
  }
  FakeVerbsLive live() const {
    FakeVerbsLive all{};
    fake_control<void(FakeVerbsLive*)>(*library_, "fake_verbs_live")(&all);
    return all;
  }

  template <class Condition>
  static bool comes(Condition condition) {
    for (const std::int64_t end = real_system().now_ns() + patience_ns; real_system().now_ns() < end;) {
      if (condition()) return true;
      std::this_thread::yield();
    }
    return false;
  }
  /// Sends one message that begins with `value`, once there is a slot.
  static void send(Link& link, std::uint32_t value, std::size_t bytes = sizeof(std::uint32_t)) {
    std::span<std::byte> slot;
    ASSERT_TRUE(comes([&] {
      auto got = link.acquire();
      EXPECT_TRUE(got) << got.error().text();
      if (got) slot = *got;
      return !got || !slot.empty();
    }));
    if (slot.empty()) return;
    std::fill_n(slot.begin(), bytes, static_cast<std::byte>(value));
    if (bytes >= sizeof value) std::memcpy(slot.data(), &value, sizeof value);
    ASSERT_TRUE(link.commit(bytes));
  }
  static void flush(Link& link) {
    ASSERT_TRUE(comes([&] {
      auto all = link.flush();
      EXPECT_TRUE(all) << all.error().text();
      return !all || *all;
    }));
  }
  static void expect_next(Link& link, std::uint32_t value, std::size_t bytes = sizeof(std::uint32_t)) {
    std::span<const std::byte> message;
    ASSERT_TRUE(comes([&] {
      auto got = link.peek(bytes);
      EXPECT_TRUE(got) << got.error().text();
      if (got) message = *got;
      return !got || message.data() != nullptr;
    }));
    ASSERT_EQ(message.size(), bytes);
    std::uint32_t found = 0;
    std::memcpy(&found, message.data(), sizeof found);
    EXPECT_EQ(found, value);
    for (std::size_t i = sizeof value; i < bytes; ++i) ASSERT_EQ(message[i], static_cast<std::byte>(value)) << i;
    ASSERT_TRUE(link.release());
  }
  /// The error that the link comes to.
  static Error ends(Link& link) {
    Error error;
    EXPECT_TRUE(comes([&] {
      auto got = link.peek(1);
      if (!got) error = got.error();
      return !got;
    }));
    return error;
  }

  std::shared_ptr<const Library> library_;
};

TEST_F(VerbsLink, CreditsTravelWithTheMessagesOfTheOtherDirection) {
  LinkPair pair({.slots = 4, .slot_bytes = 4096});
  for (std::uint32_t i = 0; i < 5000; ++i) {
    send(*pair.a.link, i);
    flush(*pair.a.link);
    expect_next(*pair.b.link, i);
    send(*pair.b.link, i + 1);
    flush(*pair.b.link);
    expect_next(*pair.a.link, i + 1);
    if (HasFailure()) return;
  }
  EXPECT_EQ(pair.a.link->credit_messages(), 0u);
  EXPECT_EQ(pair.b.link->credit_messages(), 0u);
}

TEST_F(VerbsLink, ARankThatOnlyReceivesReportsByHalfOfTheRing) {
  LinkPair pair({.slots = 4, .slot_bytes = 4096});
  for (std::uint32_t i = 0; i < 1000; ++i) {
    send(*pair.a.link, i);
    flush(*pair.a.link);
    expect_next(*pair.b.link, i);
    if (HasFailure()) return;
  }
  EXPECT_EQ(pair.b.link->credit_messages(), 250u);
}

TEST_F(VerbsLink, ThePlansSlotsAreThereWhateverIsNotYetReported) {
  constexpr int slots = 3;
  for (std::uint32_t released = 0; released < 12; ++released) {
    LinkPair pair({.slots = slots, .slot_bytes = 4096});
    for (std::uint32_t i = 0; i < released; ++i) {
      send(*pair.a.link, i);
      flush(*pair.a.link);
      expect_next(*pair.b.link, i);
    }
    // The receiver does nothing any more.
    for (std::uint32_t i = 0; i < slots; ++i) send(*pair.a.link, i);
    flush(*pair.a.link);
    if (HasFailure()) return;
  }
}

TEST_F(VerbsLink, SmallMessagesOfAFlushAreOneRequest) {
  LinkPair pair({.slots = 4, .slot_bytes = 4096});
  const auto before = counters();
  for (std::uint32_t i = 0; i < 3; ++i) send(*pair.a.link, i, 20);
  flush(*pair.a.link);
  const auto after = counters();
  EXPECT_EQ(after.posts - before.posts, 1u);
  const std::uint64_t requests = pair.a.link->iwarp() ? 2 : 1;  // with that of the header
  EXPECT_EQ(after.requests - before.requests, requests);
  EXPECT_EQ(after.requests_inline - before.requests_inline, requests);
  for (std::uint32_t i = 0; i < 3; ++i) expect_next(*pair.b.link, i, 20);
}

/// All lengths, in any company, taken at any time: a message that shares a slot must outlast the others' release.
TEST_F(VerbsLink, SmallAndLongMessagesMixInAnyWay) {
  for (const char* const seed : {"0", "3"})
    for (const int slots : {1, 2, 3, 4, 8}) {
      ::setenv("FAKE_VERBS_SEED", seed, 1);
      LinkPair pair({.slots = slots, .slot_bytes = 5000, .queue_pairs = slots});
      std::mt19937 random(static_cast<unsigned>(slots));
      std::deque<std::pair<std::uint32_t, std::size_t>> sent;
      const std::int64_t end = real_system().now_ns() + patience_ns;
      for (std::uint32_t i = 0; i < 2000;) {
        ASSERT_LT(real_system().now_ns(), end)
            << "stuck at message " << i << ", " << sent.size() << " under way, " << slots << " slots, seed " << seed;
        const auto slot = random() % 3 != 0 ? *pair.a.link->acquire() : std::span<std::byte>();
        if (!slot.empty()) {
          const std::size_t bytes = random() % 5 == 0 ? random() % 5000 : random() % 70;
          std::fill_n(slot.begin(), bytes, static_cast<std::byte>(i));
          ASSERT_TRUE(pair.a.link->commit(bytes));
          sent.emplace_back(i++, bytes);
        } else if (random() % 2 == 0) {
          ASSERT_TRUE(pair.a.link->flush());
        } else if (!sent.empty()) {
          const auto [value, bytes] = sent.front();
          const auto message = random() % 2 == 0 ? *pair.b.link->peek(bytes) : *pair.b.link->expect(bytes);
          if (message.data() == nullptr || *pair.b.link->arrived(0, bytes) < bytes) continue;
          ASSERT_EQ(message.size(), bytes);
          ASSERT_TRUE(std::ranges::all_of(
              message, [wanted = value](std::byte byte) { return byte == static_cast<std::byte>(wanted); }))
              << "message " << value;
          ASSERT_TRUE(pair.b.link->release());
          sent.pop_front();
        }
      }
    }
}

TEST_F(VerbsLink, PiecesOfLongMessagesMayOvertakeEachOther) {
  ::setenv("FAKE_VERBS_SEED", "11", 1);
  for (const int queue_pairs : {1, 3, 8}) {
    constexpr std::size_t bytes = 100'000;
    LinkPair pair({.slots = 2, .slot_bytes = bytes, .queue_pairs = queue_pairs});
    for (std::uint32_t i = 0; i < 60; ++i) {
      const std::size_t length = bytes - 1500 * i;
      send(*pair.a.link, i, length);
      flush(*pair.a.link);
      expect_next(*pair.b.link, i, length);
      if (HasFailure()) return;
    }
  }
}

TEST_F(VerbsLink, AShortLastPieceFreesTheMemoryOfTheOthers) {
  LinkPair pair({.slots = 2, .slot_bytes = 40'000});
  for (std::uint32_t i = 0; i < 50; ++i) {
    send(*pair.a.link, i, 16'384 + i);
    flush(*pair.a.link);
    expect_next(*pair.b.link, i, 16'384 + i);
    if (HasFailure()) return;
  }
}

TEST_F(VerbsLink, ASleeperIsWokenByEachMessage) {
  LinkPair pair({.slots = 4, .slot_bytes = 4096});
  constexpr std::uint32_t count = 300;
  std::thread sender([&] {
    for (std::uint32_t i = 0; i < count && !HasFailure(); ++i) {
      send(*pair.a.link, i);
      flush(*pair.a.link);
      expect_next(*pair.a.link, i);
    }
  });
  for (std::uint32_t i = 0; i < count && !HasFailure(); ++i) {
    for (;;) {
      auto message = pair.b.link->peek(sizeof i);
      ASSERT_TRUE(message) << message.error().text();
      if (message->data() != nullptr) break;
      std::vector<PollItem> items;
      pair.b.link->poll_set_to_receive(items);
      const std::int64_t began = real_system().now_ns();
      real_system().poll(items, patience_ns);
      ASSERT_LT(real_system().now_ns() - began, patience_ns) << "nothing woke it";
    }
    expect_next(*pair.b.link, i);
    send(*pair.b.link, i);
    flush(*pair.b.link);
  }
  sender.join();
}

TEST_F(VerbsLink, APostThatIsPartlyAcceptedGoesOn) {
  LinkPair pair({.slots = 4, .slot_bytes = 4096});
  for (std::uint32_t round = 0; round < 4; ++round) {
    send(*pair.a.link, 90, 2000);  // asks for a completion, so that there is something to wait for
    flush(*pair.a.link);
    fault(pair.a.link->iwarp() ? "post_send:2:ENOMEM" : "post_send:3:ENOMEM");  // there, between data and header
    for (std::uint32_t i = 0; i < 3; ++i) send(*pair.a.link, i);
    flush(*pair.a.link);
    expect_next(*pair.b.link, 90, 2000);
    for (std::uint32_t i = 0; i < 3; ++i) expect_next(*pair.b.link, i);
    if (HasFailure()) return;
  }
}

TEST_F(VerbsLink, EveryStatusIsAnErrorThatNamesDevicePortStatusAndPeer) {
  for (int status = 1; status <= 21; ++status) {
    if (status == static_cast<int>(Status::flushed)) continue;  // only ever follows another
    LinkPair pair({.slots = 4, .slot_bytes = 4096});
    fault(("status:1:" + std::to_string(status)).c_str());
    send(*pair.a.link, 1, 3000);
    (void)pair.a.link->flush();
    const Error error = ends(*pair.a.link);
    EXPECT_EQ(error.code, Code::remote) << error.text();
    EXPECT_EQ(error.peer, 1);
    for (const std::string& part :
         {std::string("rank 1"), std::string("fake0 port 1"), "status " + std::to_string(status) + ")"})
      EXPECT_NE(error.what.find(part), std::string::npos) << error.text();
    EXPECT_FALSE(pair.a.link->acquire());
    EXPECT_FALSE(pair.a.link->flush());
    EXPECT_FALSE(pair.a.link->peek(1));
  }
}

TEST_F(VerbsLink, FailingCallsOfTheDriverAreErrors) {
  for (const char* const at : {"alloc_pd:1:ENOMEM", "create_comp_channel:1:EMFILE", "create_cq:1:ENOMEM"}) {
    fault(at);
    const auto ports = list_ports(library_, {.verbs_library = TUTTI_FAKE_VERBS});
    const auto endpoint = Endpoint::open(ports->ports.front(), 4, 100);
    ASSERT_FALSE(endpoint) << at;
    EXPECT_EQ(endpoint.error().code, Code::system);
    EXPECT_NE(endpoint.error().sys_errno, 0) << endpoint.error().text();
  }
  for (const char* const at : {"reg_mr:1:ENOMEM", "reg_mr:2:ENOMEM", "create_qp:1:ENOMEM,create_qp:2:ENOMEM",
                               "modify_qp:1:EINVAL", "post_recv:1:ENOMEM"}) {
    const auto endpoint = testing::open_endpoint(library_);
    fault(at);
    const auto link = Link::make(endpoint, {.slots = 2, .slot_bytes = 4096}, {.inline_bytes = 64}, 1, "rank 1");
    ASSERT_FALSE(link) << at;
    EXPECT_EQ(link.error().code, Code::system);
    fake_control<void()>(*library_, "fake_verbs_reset")();
  }
  EXPECT_EQ(live().registered_bytes, 0u);
  EXPECT_EQ(live().queue_pairs, 0u);
  EXPECT_EQ(live().completion_queues, 0u);
  EXPECT_EQ(live().domains, 0u);
}

TEST_F(VerbsLink, APeerThatIsGoneIsAnError) {
  LinkPair pair({.slots = 4, .slot_bytes = 4096});
  pair.b.link.reset();
  send(*pair.a.link, 1, 3000);
  (void)pair.a.link->flush();
  const Error error = ends(*pair.a.link);
  EXPECT_NE(error.what.find("rank 1"), std::string::npos) << error.text();
}

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
      ASSERT_TRUE(comes([&] { return !(slot = *pair.a.link->acquire()).empty(); }));
      const std::span block(memory + 1000 * round, 20'000);
      ASSERT_TRUE(comes([&] { return pair.a.link->keep(block); }));
      std::ranges::fill(block, static_cast<std::byte>(round));
      EXPECT_FALSE(pair.a.link->offer(0, ordinary)) << "it may be unmapped at any time";
      ASSERT_TRUE(pair.a.link->offer(30'000, block));
      std::fill_n(slot.begin(), 30'000, std::byte{1});
      std::fill_n(slot.begin() + 30'000, 20'000, std::byte{99});  // not what is sent
      std::fill_n(slot.begin() + 50'000, 10'000, std::byte{2});
      ASSERT_TRUE(pair.a.link->commit(60'000));
      ASSERT_TRUE(comes([&] { return pair.a.link->keep(block); }));
      std::ranges::fill(block, std::byte{77});  // the device has read it
      std::span<const std::byte> message;
      ASSERT_TRUE(comes([&] { return (message = *pair.b.link->peek(60'000)).data() != nullptr; }));
      const auto holds = [&](std::size_t from, std::size_t to, std::uint32_t value) {
        return std::all_of(message.begin() + static_cast<std::ptrdiff_t>(from),
                           message.begin() + static_cast<std::ptrdiff_t>(to),
                           [&](std::byte byte) { return byte == static_cast<std::byte>(value); });
      };
      EXPECT_TRUE(holds(0, 30'000, 1) && holds(30'000, 50'000, round) && holds(50'000, 60'000, 2)) << round;
      ASSERT_TRUE(pair.b.link->release());
      if (HasFailure()) return;
    }
    flush(*pair.a.link);
    const std::uint64_t with = live().registered_bytes;
    ASSERT_TRUE(segments.free(memory));
    std::byte* const other = *segments.allocate(1 << 20, true);  // often at the same address
    ASSERT_FALSE((*pair.a.link->acquire()).empty());
    ASSERT_TRUE(pair.a.link->offer(0, {other, 10'000}));
    EXPECT_EQ(live().registered_bytes, with) << "the old pages are no longer held";
    ASSERT_TRUE(segments.free(other));
  }
}

TEST_F(VerbsLink, AChangeBeforeTheMessageLeavesIsCopiedFirst) {
  SegmentTable segments;
  std::byte* const memory = *segments.allocate(1 << 16, true);
  LinkPair pair({.slots = 2, .slot_bytes = 50'000}, {.inline_bytes = 64}, &segments);
  ASSERT_FALSE((*pair.a.link->acquire()).empty());
  std::fill_n(memory, 20'000, std::byte{7});
  ASSERT_TRUE(pair.a.link->offer(0, {memory, 20'000}));
  ASSERT_TRUE(pair.a.link->keep({memory + 500, 10}));
  std::fill_n(memory, 20'000, std::byte{8});
  ASSERT_TRUE(pair.a.link->commit(20'000));
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
    ASSERT_FALSE((*pair.a.link->acquire()).empty());
    std::fill_n(memory, 20'000, std::byte{7});
    ASSERT_TRUE(pair.a.link->offer(0, {memory, 20'000}));
    ASSERT_TRUE(pair.a.link->commit(20'000));
    ASSERT_TRUE(pair.a.link->flush());
    pair.a.link->stop();
    std::fill_n(memory, 20'000, std::byte{8});
    std::span<const std::byte> message;
    for (const std::int64_t end = real_system().now_ns() + late_ns;
         message.data() == nullptr && real_system().now_ns() < end;)
      if (auto got = pair.b.link->peek(20'000)) message = *got;
    EXPECT_EQ(std::ranges::count(message, std::byte{8}), 0) << "round " << round;
    EXPECT_FALSE(pair.a.link->acquire()) << "nothing leaves a link that was stopped";
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
  (void)(*thief)->flush();
  const Error error = ends(**thief);
  EXPECT_NE(error.what.find("status 10)"), std::string::npos) << error.text();
  EXPECT_EQ((*other.b.link->peek(3000)).data(), nullptr);
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
  (void)(*a)->flush();
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
      {"credits alone for what was not sent", {{.credit_only = true, .credits = 4000}}, 0},
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
    const auto message = pair.a.link->peek(10);
    ASSERT_FALSE(message) << one.name;
    EXPECT_NE(message.error().what.find("cannot be"), std::string::npos) << message.error().text();
  }
}

}  // namespace
}  // namespace tutti::verbs
