// Messages that are written into memory of their receiver's caller, over the fake devices: where they go, when the peer
// can write there, and what it must not be able to do.
#include <algorithm>
#include <random>
#include <vector>

#include "support/verbs_link.h"

namespace tutti::verbs {
namespace {

using testing::LinkPair;

class VerbsInvite : public VerbsLink {
 protected:
  static constexpr std::size_t block_bytes = 70'000;

  std::byte* memory() {
    if (memory_ == nullptr) memory_ = *segments_.allocate(1 << 21, true);
    return memory_;
  }
  std::span<std::byte> block(std::size_t index) {
    return std::span(memory(), 1 << 21).subspan(index * block_bytes, block_bytes);
  }
  /// Receives the next message into `into`; it must hold `value` throughout.
  static void expect_landed(Link& link, std::span<std::byte> into, std::uint32_t value, std::size_t bytes) {
    ASSERT_TRUE(comes([&] { return (*link.in().expect(bytes)).data() != nullptr; }));
    ASSERT_TRUE(comes([&] {
      auto here = link.in().land(0, into);
      EXPECT_TRUE(here) << here.error().text();
      return !here || *here == into.size();
    }));
    for (std::size_t i = 4; i < into.size(); ++i) ASSERT_EQ(into[i], static_cast<std::byte>(value)) << i;
    ASSERT_TRUE(link.in().release());
  }

  SegmentTable segments_;

 private:
  std::byte* memory_ = nullptr;
};

TEST_F(VerbsInvite, AnInvitedMessageIsWrittenInPlace) {
  LinkPair pair({.slots = 2, .slot_bytes = 100'000}, {.inline_bytes = 64}, &segments_);
  ASSERT_EQ(pair.b.link->in().invite(0, block(0)), Invited::yes);
  ASSERT_EQ(pair.b.link->in().invite(1, block(1).first(50'001)), Invited::yes);
  EXPECT_EQ(pair.b.link->in().invite(1, block(2)), Invited::no) << "twice";
  EXPECT_EQ(pair.b.link->in().invite(4, block(2)), Invited::later) << "beyond the ring";
  std::byte ordinary[1000];
  EXPECT_EQ(pair.b.link->in().invite(2, ordinary), Invited::no) << "it may be unmapped at any time";
  send(*pair.a.link, 3, block_bytes);
  send(*pair.a.link, 4, 50'064);  // with what pads it
  send(*pair.a.link, 5, 60'000);
  expect_landed(*pair.b.link, block(0), 3, block_bytes);
  expect_landed(*pair.b.link, block(1).first(50'001), 4, 50'064);
  EXPECT_EQ(block(1)[50'001], std::byte{0});
  expect_landed(*pair.b.link, block(3).first(60'000), 5, 60'000);
  EXPECT_EQ(pair.a.link->out().direct_messages(), 2u);
  EXPECT_TRUE(comes([&] { return pair.b.link->in().closed(); }));
}

TEST_F(VerbsInvite, InvitationsComeEarlyLateOrNever) {
  for (const int queue_pairs : {1, 3})
    for (const char* const seed : {"0", "7"}) {
      ::setenv("FAKE_VERBS_SEED", seed, 1);
      LinkPair pair({.slots = 2, .slot_bytes = 100'000, .queue_pairs = queue_pairs}, {.inline_bytes = 64}, &segments_);
      Link &a = *pair.a.link, &b = *pair.b.link;
      std::mt19937 random(static_cast<unsigned>(queue_pairs));
      constexpr std::uint64_t count = 300;
      std::uint64_t sent = 0, taken = 0, invited = 0, back = 0, back_taken = 0;
      std::vector<bool> was_invited(count);
      bool open = false;
      while (taken < count) {
        ASSERT_FALSE(HasFailure());
        switch (random() % 5) {
          case 0: {  // as far ahead as it likes, leaving some out
            invited = std::max(invited + random() % 2, taken + (open ? 1 : 0));
            if (invited >= count || invited > taken + 6) break;
            const auto into = block(invited % 8);
            std::ranges::fill(into, std::byte{0xee});
            was_invited[invited] = b.in().invite(invited - taken, into) == Invited::yes;
            invited += was_invited[invited] ? 1 : 0;
            break;
          }
          case 1:
            if (sent < count && !(*a.out().acquire()).empty())
              send(a, static_cast<std::uint32_t>(sent++ % 200), block_bytes);
            break;
          case 2:
            if (!(*b.out().acquire()).empty()) send(b, static_cast<std::uint32_t>(back++ % 100), 3000);
            ASSERT_TRUE(b.out().flush());
            break;
          case 3:
            if (back_taken < back) expect_next(a, static_cast<std::uint32_t>(back_taken++ % 100), 3000);
            break;
          default:
            if (taken == sent) break;
            open = true;
            expect_landed(b, block(taken % 8), static_cast<std::uint32_t>(taken % 200), block_bytes);
            open = false;
            ++taken;
        }
        ASSERT_TRUE(a.out().flush());
      }
      EXPECT_TRUE(comes([&] { return b.in().closed(); }));
      EXPECT_GT(a.out().direct_messages(), 20u);
      EXPECT_LE(a.out().direct_messages(), static_cast<std::uint64_t>(std::ranges::count(was_invited, true)));
      EXPECT_EQ(b.out().direct_messages(), 0u);
    }
}

TEST_F(VerbsInvite, WithoutWindowsNothingIsInvited) {
  ::setenv("FAKE_VERBS_WINDOWS", "0", 1);
  {
    LinkPair pair({.slots = 2, .slot_bytes = 100'000}, {.inline_bytes = 64}, &segments_);
    EXPECT_EQ(pair.b.link->in().invite(0, block(0)), Invited::no);
  }
  ::unsetenv("FAKE_VERBS_WINDOWS");
  LinkPair pair({.slots = 2, .slot_bytes = 100'000}, {.inline_bytes = 64}, &segments_);
  fault("alloc_mw:1:ENOMEM");
  EXPECT_EQ(pair.b.link->in().invite(0, block(0)), Invited::no);
  EXPECT_EQ(pair.b.link->in().invite(1, block(1)), Invited::no) << "it is asked for once";
  send(*pair.a.link, 9, block_bytes);
  expect_landed(*pair.b.link, block(0), 9, block_bytes);
  EXPECT_EQ(pair.a.link->out().direct_messages(), 0u);
}

TEST_F(VerbsInvite, WindowsEndWithTheLinkOrItsStop) {
  const std::uint64_t before = live().windows;
  {
    LinkPair pair({.slots = 2, .slot_bytes = 100'000}, {.inline_bytes = 64}, &segments_);
    ASSERT_EQ(pair.b.link->in().invite(0, block(0)), Invited::yes);
    EXPECT_EQ(live().windows, before + 1);
    pair.b.link->stop();
    EXPECT_EQ(live().windows, before);
    EXPECT_EQ(pair.b.link->in().invite(1, block(1)), Invited::no);
    EXPECT_TRUE(pair.b.link->in().closed());
    send(*pair.a.link, 9, block_bytes);
    (void)pair.a.link->out().flush();
    EXPECT_NE(ends(*pair.a.link).what.find("failed"), std::string::npos);
    EXPECT_EQ(block(0)[0], std::byte{0}) << "nothing is written after the stop";
  }
  {
    LinkPair pair({.slots = 2, .slot_bytes = 100'000}, {.inline_bytes = 64}, &segments_);
    ASSERT_EQ(pair.b.link->in().invite(0, block(0)), Invited::yes);
  }
  EXPECT_EQ(live().windows, before);
}

TEST_F(VerbsInvite, AMessageThatIsHereCanBeTakenAfterAFailure) {
  LinkPair pair({.slots = 2, .slot_bytes = 100'000}, {.inline_bytes = 64}, &segments_);
  ASSERT_EQ(pair.b.link->in().invite(0, block(0)), Invited::yes);
  send(*pair.a.link, 3, block_bytes);
  flush(*pair.a.link);
  ASSERT_TRUE(comes([&] { return *pair.b.link->in().arrived(0, block_bytes) == block_bytes; }));
  pair.b.link->fail({.code = Code::remote, .what = "the connection breaks"});
  expect_landed(*pair.b.link, block(0), 3, block_bytes);
  EXPECT_TRUE(pair.b.link->in().closed()) << "there are no windows any more";
}

// ---- When memory can be written ----

/// Completions of one queue pair.
struct Done final : CompletionSink {
  std::vector<Completion> all;
  void complete(const Completion& completion) override { all.push_back(completion); }
  void fail(const Error&) override {}
};

/// Two queue pairs that are connected with each other, and a window at the second one.
struct WindowPair {
  struct End {
    std::shared_ptr<Endpoint> endpoint;
    Done done;
    std::unique_ptr<QueuePair> queue;
  };
  End a, b;

  WindowPair(const std::shared_ptr<const Library>& library, const SegmentTable& segments) {
    for (End* end : {&a, &b}) {
      end->endpoint = testing::open_endpoint(library, &segments);
      auto queue = QueuePair::create(end->endpoint, {.inline_bytes = 64}, *end->endpoint->attach(&end->done), 0);
      EXPECT_TRUE(queue);
      end->queue = *std::move(queue);
    }
    const auto port = [](const End& end) {
      const Port& of = end.endpoint->port;
      return PortAddress{.link_layer = of.link_layer, .lid = of.lid, .mtu = of.mtu, .gid = of.gid};
    };
    EXPECT_TRUE(a.queue->connect(b.queue->address(), port(b)));
    EXPECT_TRUE(b.queue->connect(a.queue->address(), port(a)));
  }
  ~WindowPair() {
    for (End* end : {&a, &b}) end->endpoint->detach(0);
  }

  /// What a write of `a` into b's memory ends with.
  Status write(std::byte* to, std::size_t bytes, std::uint32_t key) {
    static std::byte text[64] = {std::byte{1}, std::byte{2}};
    const Sge from{
        .addr = reinterpret_cast<std::uint64_t>(text), .length = static_cast<std::uint32_t>(bytes), .lkey = 0};
    a.done.all.clear();
    a.queue->add({.memory = std::span(&from, 1),
                  .remote_address = reinterpret_cast<std::uint64_t>(to),
                  .rkey = key,
                  .immediate = 0,
                  .is_inline = true});
    a.queue->add({.memory = {}, .remote_address = reinterpret_cast<std::uint64_t>(to), .rkey = key, .immediate = 0});
    EXPECT_TRUE(a.queue->post());
    EXPECT_TRUE(VerbsLink::comes([&] { return a.endpoint->poll(), !a.done.all.empty(); }));
    if (a.done.all.empty()) return Status::general;
    return a.done.all.front().status;
  }
};

TEST_F(VerbsInvite, MemoryIsWritableOnlyWhileItsWindowIsOpen) {
  const std::span<std::byte> invited = block(0).first(32);
  for (const char* const what : {"open", "not yet", "closed", "reopened, by the old key", "too far", "before it"}) {
    const std::string_view is = what;
    WindowPair pair(library_, segments_);
    auto window = MemoryWindow::make(pair.b.endpoint);
    ASSERT_TRUE(window);
    std::ranges::fill(invited, std::byte{0});
    Mr& mr = *pair.b.endpoint->registrations()->find(invited);
    std::uint32_t key = is == "not yet" ? 1u << 31 | 1 : window->open(*pair.b.queue, mr, invited);
    if (is == "closed" || is == "reopened, by the old key") window->close();
    ASSERT_TRUE(pair.b.queue->post());
    const bool closes = is == "closed" || is == "reopened, by the old key";
    ASSERT_TRUE(!closes || comes([&] {
      pair.b.endpoint->poll();
      for (const Completion& one : std::exchange(pair.b.done.all, {}))
        pair.b.queue->complete(WorkWord{static_cast<std::uint32_t>(one.wr_id)});
      return window->is_closed();
    }));
    if (is == "reopened, by the old key") {
      EXPECT_NE(window->open(*pair.b.queue, mr, invited), key);
      ASSERT_TRUE(pair.b.queue->post());
    }
    std::byte* to = invited.data();
    if (is == "too far") to += 1;
    if (is == "before it") to = block(1).data() - 1;
    const Status status = pair.write(to, 32, key);
    EXPECT_EQ(status, is == "open" ? Status::success : Status::remote_access_error) << what;
    EXPECT_EQ(invited[1], is == "open" ? std::byte{2} : std::byte{0}) << what;
  }
}

TEST_F(VerbsInvite, AWindowIsForOneQueuePairOnly) {
  WindowPair one(library_, segments_), other(library_, segments_);
  auto window = MemoryWindow::make(one.b.endpoint);
  ASSERT_TRUE(window);
  const auto key = window->open(*one.b.queue, *one.b.endpoint->registrations()->find(block(0)), block(0));
  ASSERT_TRUE(one.b.queue->post());
  EXPECT_EQ(other.write(block(0).data(), 10, key), Status::remote_access_error);
  EXPECT_EQ(one.write(block(0).data(), 10, key), Status::success);
}

// ---- What a peer must not be able to do ----

TEST_F(VerbsInvite, ADirectMessageThatWasNotInvitedEndsTheLink) {
  for (const bool invited : {false, true}) {
    LinkPair pair({.slots = 4, .slot_bytes = 100'000}, {.inline_bytes = 64}, &segments_);
    ASSERT_TRUE(!invited || pair.a.link->in().invite(0, block(0).first(100)) == Invited::yes);
    Completion completion{};
    completion.wr_id = std::uint64_t{1} << 31;
    completion.byte_len = 101;
    completion.immediate = __builtin_bswap32(Immediate{.direct = true}.pack());
    completion.wc_flags = with_immediate;
    pair.a.link->complete(completion);
    const auto message = pair.a.link->in().peek(101);
    ASSERT_FALSE(message) << (invited ? "longer than the memory" : "no invitation");
    EXPECT_NE(message.error().what.find("cannot be"), std::string::npos) << message.error().text();
  }
}

TEST_F(VerbsInvite, AnInvitationThatCannotBeEndsTheLink) {
  const auto come = [](Link& link, std::uint32_t message) {
    Completion completion{};
    completion.wr_id = std::uint64_t{1} << 31;
    completion.immediate = __builtin_bswap32(Immediate{.credit_only = true, .packed = true, .message = message}.pack());
    completion.wc_flags = with_immediate;
    link.complete(completion);
  };
  LinkPair pair({.slots = 4, .slot_bytes = 100'000}, {.inline_bytes = 64}, &segments_);
  come(*pair.a.link, Immediate::messages - 1);
  EXPECT_TRUE(pair.a.link->in().peek(10)) << "for a message that has left: too late";
  come(*pair.a.link, 8);
  EXPECT_FALSE(pair.a.link->in().peek(10)) << "beyond the ring";
  LinkPair other({.slots = 4, .slot_bytes = 100'000}, {.inline_bytes = 64}, &segments_);
  come(*other.a.link, 0);
  EXPECT_FALSE(other.a.link->in().peek(10)) << "for no bytes";
}

TEST_F(VerbsInvite, AMessageIsReceivedWhereItWasInvitedTo) {
  LinkPair pair({.slots = 2, .slot_bytes = 100'000}, {.inline_bytes = 64}, &segments_);
  ASSERT_EQ(pair.b.link->in().invite(0, block(0)), Invited::yes);
  send(*pair.a.link, 3, block_bytes);
  flush(*pair.a.link);
  ASSERT_TRUE(comes([&] { return *pair.b.link->in().arrived(0, block_bytes) == block_bytes; }));
  const auto elsewhere = pair.b.link->in().land(0, block(1));
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error().code, Code::internal);
}

}  // namespace
}  // namespace tutti::verbs
