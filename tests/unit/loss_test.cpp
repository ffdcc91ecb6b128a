// The words of a loss, and when a rank of this host counts as stopped.
#include "comm/loss.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "base/enumeration.h"

namespace tutti {
namespace {

TEST(Loss, OfEachKindHasWordsOfItsOwn) {
  std::set<std::string> all;
  for (std::uint64_t number = 0; const auto kind = enumerator<LossKind>(number); ++number) {
    const Loss loss{.kind = *kind, .ns = 1'500'000'000, .detail = "no route"};
    EXPECT_FALSE(loss.why().empty());
    EXPECT_TRUE(all.insert(loss.why()).second) << loss.why();
    const Error error = loss.error("rank 2/4", 2);
    EXPECT_EQ(error.code, Code::remote);
    EXPECT_EQ(error.peer, 2);
    EXPECT_EQ(error.what, "rank 2/4 lost: " + loss.why());
  }
}

TEST(Loss, ByTheEndOfAConnection) {
  const auto by = [](int number) { return loss_by({.code = Code::system, .what = "receive", .sys_errno = number}); };
  for (const int number : {ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, ENETDOWN}) {
    EXPECT_EQ(by(number).kind, LossKind::unreachable);
    EXPECT_NE(by(number).why().find("receive"), std::string::npos) << by(number).why();
  }
  EXPECT_EQ(by(ECONNRESET).kind, LossKind::connection_reset);
  EXPECT_EQ(by(EPIPE).kind, LossKind::connection_ended);
  EXPECT_EQ(loss_by({.code = Code::remote, .what = "the connection ended"}).kind, LossKind::connection_ended);
  EXPECT_EQ(loss_by({.code = Code::invalid_argument}).kind, LossKind::bad_frame);
}

/// A process that /proc does not show: it is known by its beats alone.
struct Unseen {
  static constexpr std::int64_t limit_ns = 1'000;
  std::optional<Loss> look(std::int64_t passed_ns, bool excused = false) {
    return life.look(process, area.header(), 0, passed_ns, limit_ns, excused);
  }
  void beat() { area.header().beats.fetch_add(1, std::memory_order_relaxed); }

  AreaShape shape{.ranks = 1};
  std::vector<std::byte> bytes = std::vector<std::byte>(RankArea::bytes(shape) + 4096);
  RankArea area = [this] {
    void* at = bytes.data();
    std::size_t room = bytes.size();
    return RankArea(static_cast<std::byte*>(std::align(4096, RankArea::bytes(shape), at, room)), shape);
  }();
  PeerProcess process{SeenProcess{}};
  SignsOfLife life;
};

TEST(SignsOfLife, ARankThatBeatsLives) {
  Unseen rank;
  for (int i = 0; i < 10; ++i) {
    rank.beat();
    EXPECT_FALSE(rank.look(900));
  }
}

TEST(SignsOfLife, SilenceCountsFromTheLastBeatInTimeThatCounts) {
  Unseen rank;
  rank.beat();
  EXPECT_FALSE(rank.look(5'000)) << "it has just beaten";
  EXPECT_FALSE(rank.look(600));
  EXPECT_FALSE(rank.look(0)) << "nobody waits: silence begins anew";
  EXPECT_FALSE(rank.look(600));
  EXPECT_FALSE(rank.look(300, /*excused=*/true)) << "begins anew as well";
  EXPECT_FALSE(rank.look(600));
  const auto loss = rank.look(500);
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->kind, LossKind::no_sign_of_life);
  EXPECT_EQ(loss->ns, 1'100);
}

TEST(SignsOfLife, ARankUnderADebuggerMayBeSilent) {
  Unseen rank;
  rank.area.header().traced.store(1);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(rank.look(900));
}

}  // namespace
}  // namespace tutti
