// What is different between two ranks whose devices have no immediates: connections by rdma_cm, and memory that a
// completion does not free.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "support/verbs_links.h"

namespace tutti::verbs {
namespace {

constexpr std::int64_t patience_ns = 60'000'000'000;

class VerbsIwarp : public ::testing::Test {
 protected:
  VerbsIwarp() {
    const char* const before = std::getenv("FAKE_VERBS_LINK");
    before_ = before == nullptr ? "" : before;
    ::setenv("FAKE_VERBS_LINK", "iwarp", 1);
    ::setenv("FAKE_VERBS_SEED", "0", 1);
  }
  ~VerbsIwarp() override { ::setenv("FAKE_VERBS_LINK", before_.c_str(), 1); }

  static std::shared_ptr<Link> make_link() {
    auto link = Link::make(testing::open_endpoint(testing::fake_verbs()), {.slots = 2, .slot_bytes = 4096},
                           {.inline_bytes = 64}, 1, "the peer");
    EXPECT_TRUE(link) << link.error().text();
    return *link;
  }
  /// Whether a connection comes to be; else there is an error at one end.
  static bool join(Link& listens, Link& calls) {
    for (const std::int64_t end = real_system().now_ns() + patience_ns; real_system().now_ns() < end;) {
      const auto one = listens.joined(), other = calls.joined();
      if (!one || !other) return false;
      if (*one && *other) return true;
      std::this_thread::yield();
    }
    ADD_FAILURE() << "neither a connection nor an error";
    return false;
  }

 private:
  std::string before_;
};

TEST_F(VerbsIwarp, WhoLacksTheTokenIsRefusedAndThePeerStillComes) {
  const auto listens = make_link(), stranger = make_link(), peer = make_link();
  CmToken token{}, guess{};
  token.fill(std::byte{7});
  guess = token;
  guess.back() = std::byte{8};
  ASSERT_TRUE(listens->connect(peer->address()));
  ASSERT_TRUE(peer->connect(listens->address()));
  const auto at = listens->listen(token);
  ASSERT_TRUE(at) << at.error().text();
  ASSERT_TRUE(stranger->call(*at, guess));
  EXPECT_FALSE(join(*listens, *stranger));
  ASSERT_TRUE(peer->call(*at, token));
  EXPECT_TRUE(join(*listens, *peer));
  // Nobody else is let in afterwards, token or not: nobody listens any more.
  const auto late = make_link();
  ASSERT_TRUE(late->call(*at, token));
  EXPECT_FALSE(join(*listens, *late));
}

TEST_F(VerbsIwarp, TheEndThatListensSendsOnceItHasHeardOfTheOther) {
  const auto listens = make_link(), calls = make_link();
  ASSERT_TRUE(listens->connect(calls->address()));
  ASSERT_TRUE(calls->connect(listens->address()));
  const auto at = listens->listen({});
  ASSERT_TRUE(at && calls->call(*at, {}));
  ASSERT_TRUE(join(*listens, *calls));
  const auto slot = listens->out().acquire();
  ASSERT_TRUE(slot && !slot->empty());
  std::memset(slot->data(), 5, 2000);
  ASSERT_TRUE(listens->out().commit(2000));
  const auto held = listens->out().flush();
  ASSERT_TRUE(held) << held.error().text();
  EXPECT_FALSE(*held);
  EXPECT_EQ(calls->in().peek(2000)->data(), nullptr);
  ASSERT_TRUE(calls->probe());
  for (bool all = false; !all;) {
    const auto flushed = listens->out().flush();
    ASSERT_TRUE(flushed) << flushed.error().text();
    all = *flushed;
  }
  const auto message = calls->in().peek(2000);
  ASSERT_TRUE(message) << message.error().text();
  ASSERT_EQ(message->size(), 2000u);
  EXPECT_EQ((*message)[1999], std::byte{5});
}

TEST_F(VerbsIwarp, ASlotIsFreeWhenThePeerSaysSo) {
  testing::LinkPair pair({.slots = 2, .slot_bytes = 4096});
  const std::byte* first = nullptr;
  for (int i = 0; i < 4; ++i) {
    const auto slot = pair.a.link->out().acquire();
    ASSERT_TRUE(slot && !slot->empty()) << i;
    if (i == 0) first = slot->data();
    EXPECT_TRUE(i == 0 || slot->data() != first);
    ASSERT_TRUE(pair.a.link->out().commit(3000));
    ASSERT_TRUE(pair.a.link->out().flush());
  }
  for (int look = 0; look < 100; ++look) {
    const auto slot = pair.a.link->out().acquire();
    ASSERT_TRUE(slot && slot->empty());
  }
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(pair.b.link->in().peek(3000)->size(), 3000u);
    ASSERT_TRUE(pair.b.link->in().release());
  }
  std::span<std::byte> slot;
  for (int look = 0; look < 1000 && slot.empty(); ++look) slot = *pair.a.link->out().acquire();
  EXPECT_EQ(slot.data(), first);
}

TEST_F(VerbsIwarp, APeerOnAnotherKindOfFabricIsRefused) {
  const auto iwarp = make_link();
  ::setenv("FAKE_VERBS_LINK", "ethernet", 1);
  const auto roce = make_link();
  EXPECT_FALSE(iwarp->connect(roce->address()));
  EXPECT_FALSE(roce->connect(iwarp->address()));
}

}  // namespace
}  // namespace tutti::verbs
