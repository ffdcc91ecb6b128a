// Two ranks joined by RDMA over the fake devices: credits, posts and errors.
#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <thread>

#include "support/verbs_link.h"

namespace tutti::verbs {
namespace {

using testing::fake_control;
using testing::LinkPair;

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
  EXPECT_EQ(pair.a.link->in().credit_messages(), 0u);
  EXPECT_EQ(pair.b.link->in().credit_messages(), 0u);
}

TEST_F(VerbsLink, ARankThatOnlyReceivesReportsByHalfOfTheRing) {
  LinkPair pair({.slots = 4, .slot_bytes = 4096});
  for (std::uint32_t i = 0; i < 1000; ++i) {
    send(*pair.a.link, i);
    flush(*pair.a.link);
    expect_next(*pair.b.link, i);
    if (HasFailure()) return;
  }
  EXPECT_EQ(pair.b.link->in().credit_messages(), 250u);
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
        const auto slot = random() % 3 != 0 ? *pair.a.link->out().acquire() : std::span<std::byte>();
        if (!slot.empty()) {
          const std::size_t bytes = random() % 5 == 0 ? random() % 5000 : random() % 70;
          std::fill_n(slot.begin(), bytes, static_cast<std::byte>(i));
          ASSERT_TRUE(pair.a.link->out().commit(bytes));
          sent.emplace_back(i++, bytes);
        } else if (random() % 2 == 0) {
          ASSERT_TRUE(pair.a.link->out().flush());
        } else if (!sent.empty()) {
          const auto [value, bytes] = sent.front();
          const auto message = random() % 2 == 0 ? *pair.b.link->in().peek(bytes) : *pair.b.link->in().expect(bytes);
          if (message.data() == nullptr || *pair.b.link->in().arrived(0, bytes) < bytes) continue;
          ASSERT_EQ(message.size(), bytes);
          ASSERT_TRUE(std::ranges::all_of(
              message, [wanted = value](std::byte byte) { return byte == static_cast<std::byte>(wanted); }))
              << "message " << value;
          ASSERT_TRUE(pair.b.link->in().release());
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
      auto message = pair.b.link->in().peek(sizeof i);
      ASSERT_TRUE(message) << message.error().text();
      if (message->data() != nullptr) break;
      std::vector<PollItem> items;
      pair.b.link->in().poll_set(items);
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
    (void)pair.a.link->out().flush();
    const Error error = ends(*pair.a.link);
    EXPECT_EQ(error.code, Code::remote) << error.text();
    EXPECT_EQ(error.peer, 1);
    for (const std::string& part :
         {std::string("rank 1"), std::string("fake0 port 1"), "status " + std::to_string(status) + ")"})
      EXPECT_NE(error.what.find(part), std::string::npos) << error.text();
    EXPECT_FALSE(pair.a.link->out().acquire());
    EXPECT_FALSE(pair.a.link->out().flush());
    EXPECT_FALSE(pair.a.link->in().peek(1));
  }
}

/// The receiver has the first piece of three when its own device fails: the others never come.
TEST_F(VerbsLink, AFailureInTheMidstOfAMessageIsAnError) {
  constexpr std::size_t bytes = 40'000;
  for (const bool lands : {false, true}) {
    LinkPair pair({.slots = 2, .slot_bytes = bytes});
    fault(pair.a.link->iwarp() ? "status:3:12" : "status:2:12");  // the second piece; iWARP has two requests for each
    send(*pair.a.link, 1, bytes);
    (void)pair.a.link->out().flush();
    (void)ends(*pair.a.link);
    std::vector<std::byte> into(bytes);
    const auto ask = [&] { return lands ? pair.b.link->in().land(0, into) : pair.b.link->in().arrived(0, bytes); };
    ASSERT_TRUE(pair.b.link->in().expect(bytes));
    const auto part = ask();
    ASSERT_TRUE(part) << part.error().text();
    ASSERT_GT(*part, 0u);
    ASSERT_LT(*part, bytes);
    fault("poll_cq:1:EIO");
    const auto rest = ask();
    ASSERT_FALSE(rest) << *rest << " bytes";
    EXPECT_EQ(rest.error().sys_errno, EIO) << rest.error().text();
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
  (void)pair.a.link->out().flush();
  const Error error = ends(*pair.a.link);
  EXPECT_NE(error.what.find("rank 1"), std::string::npos) << error.text();
}

}  // namespace
}  // namespace tutti::verbs
