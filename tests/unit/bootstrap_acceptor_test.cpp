// The door of the start, met by ranks that are quick, slow or silent in their greeting.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "bootstrap/bootstrap_messages.h"
#include "bootstrap/shared_listener.h"
#include "net/handshake.h"
#include "net/wire.h"

namespace tutti {
namespace {

constexpr std::int64_t s = 1'000'000'000;

/// The real one; says before each send that it is about to be made, and after each challenge that it has left.
class PromptSystem final : public System {
 public:
  std::function<void()> sending = {};
  std::function<void()> challenged = {};

  std::int64_t now_ns() override { return real_.now_ns(); }
  void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) override {
    real_.wait(word, expected, timeout_ns);
  }
  void wake(std::atomic<std::uint32_t>& word) override { real_.wake(word); }
  void yield() override { real_.yield(); }
  void poll(std::span<PollItem> items, std::int64_t timeout_ns) override { real_.poll(items, timeout_ns); }
  Result<Socket> listen(const SocketAddress& at) override { return real_.listen(at); }
  Result<SocketAddress> address(const Socket& socket) override { return real_.address(socket); }
  Result<SocketAddress> peer_address(const Socket& socket) override { return real_.peer_address(socket); }
  Result<Socket> accept(Socket& listener) override { return real_.accept(listener); }
  Result<Socket> connect(const SocketAddress& to) override { return real_.connect(to); }
  Result<Moved> send(Socket& socket, std::span<const std::byte> bytes) override {
    if (sending) sending();
    auto moved = real_.send(socket, bytes);
    if (bytes.size() == handshake::challenge_bytes && challenged) challenged();
    return moved;
  }
  Result<Moved> receive(Socket& socket, std::span<std::byte> bytes) override { return real_.receive(socket, bytes); }
  void close(int handle) override { real_.close(handle); }

 private:
  System& real_ = real_system();
};

/// A root, driven by the test, and what it warns of.
struct Door {
  explicit Door(BootstrapLimits limits = {}) {
    auto made = fresh_secret();
    auto opened = BootstrapRoot::open(system, {.host = "127.0.0.1"}, *made, limits,
                                      {.warn = [this](const std::string& line) { warned += line + "\n"; }});
    EXPECT_TRUE(opened) << opened.error().text();
    id = {.root = (*opened)->address(), .secret = *made};
    root = *std::move(opened);
  }
  PromptSystem system;
  std::string warned;
  UniqueId id;
  std::unique_ptr<BootstrapRoot> root;
};

/// A rank by hand, which has said hello.
struct Caller {
  Caller(const UniqueId& id, int rank)
      : side(*handshake::RankSide::begin(rank, id.secret)), wire(real_system(), *real_system().connect(id.root)) {
    wire.queue(side.hello());
    await([this] { return *wire.flush(); });
  }
  static void await(const std::function<bool()>& done) {
    const std::int64_t limit_ns = real_system().now_ns() + 60 * s;
    while (!done()) {
      ASSERT_LT(real_system().now_ns(), limit_ns);
      std::this_thread::yield();
    }
  }
  void prove(const Secret& secret) {
    std::optional<Bytes> challenge;
    await([&] { return (challenge = *wire.take(handshake::challenge_bytes)).has_value(); });
    wire.queue(*side.prove(secret, *challenge));
  }
  handshake::RankSide side;
  Wire wire;
};

/// Until the rank is let in and has both answers of an exchange; or the root has ended.
std::string drive(Door& door, Bootstrap& rank) {
  const std::int64_t limit_ns = real_system().now_ns() + 60 * s;
  bool serving = true;
  while (real_system().now_ns() < limit_ns) {
    serving = serving && door.root->advance();
    auto done = rank.advance();
    if (!done) return done.error().text();
    if (*done) return "";
    std::this_thread::yield();
  }
  return "no answer";
}

TEST(Acceptor, ARankThatProvesItselfAtOnceIsLetIn) {
  Door door;
  Caller quick(door.id, 0);
  door.system.challenged = [&] {
    quick.prove(door.id.secret);
    quick.wire.queue(frame(FrameKind::join, bootstrap::write_join({.rank = 0, .ranks = 1})));
    ASSERT_TRUE(*quick.wire.flush());
  };
  std::optional<Frame> answer;
  Caller::await([&] {
    EXPECT_TRUE(door.root->advance());
    auto taken = quick.wire.take_frame(bootstrap::notice_bytes_max);
    EXPECT_TRUE(taken) << taken.error().text();
    if (taken) answer = *std::move(taken);
    return !taken || answer;
  });
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->kind, FrameKind::welcome);
}

/// Its thread may go on before the root's does, and rank 2, which has not called yet, can hear of the failure here
/// alone.
TEST(Acceptor, AProcessThatEndsOnceItsRankKnowsOfTheFailureIsAwaitedByOthers) {
  Door door;
  Bootstrap here(door.system, door.id, {.rank = 0, .ranks = 3}, {});
  here.exchange({});
  Caller::await([&] {
    EXPECT_TRUE(door.root->advance());
    return !here.advance() || here.placed();
  });
  EXPECT_TRUE(door.root->advance());
  EXPECT_FALSE(door.root->awaited()) << "nobody else has called";
  Caller lost(door.id, 1);
  int sent = 0;
  door.system.challenged = [&] {  // all that rank 1 ever sends, so that one advance reads it
    lost.prove(door.id.secret);
    lost.wire.queue(frame(FrameKind::join, bootstrap::write_join({.rank = 1, .ranks = 3})));
    ASSERT_TRUE(*lost.wire.flush());
    lost.wire = Wire(real_system(), Socket());
    door.system.sending = [&] {
      ++sent;
      EXPECT_TRUE(door.root->awaited());
    };
  };
  Caller::await([&] {
    EXPECT_TRUE(door.root->advance());
    return sent > 0;
  });
  door.system.sending = nullptr;
  const auto told = here.advance();
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().peer, 1) << told.error().text();
  EXPECT_TRUE(door.root->awaited());
}

/// An address that answers too late is given up for another one, and no stranger for that.
TEST(Acceptor, WhoGreetsWellAndComesAgainIsNotCounted) {
  Door door;
  {
    Caller impatient(door.id, 0);
    Caller::await([&] {
      EXPECT_TRUE(door.root->advance());
      return impatient.wire.take(handshake::challenge_bytes)->has_value();
    });
  }
  Bootstrap rank(door.system, door.id, {.rank = 0, .ranks = 1}, {});
  rank.exchange({});
  EXPECT_EQ(drive(door, rank), "");
  for (int turn = 0; turn < 100; ++turn) (void)door.root->advance();
  EXPECT_EQ(door.warned, "");
}

/// Neither is a rank of a large start whose greeting took so long that another one got its place at the door.
TEST(Acceptor, WhoIsTooSlowInACrowdIsNotCounted) {
  constexpr int crowd_size = 64;
  Door door;
  std::vector<std::unique_ptr<Caller>> crowd;
  for (int i = 0; i < crowd_size; ++i) crowd.push_back(std::make_unique<Caller>(door.id, 0));
  for (const auto& slow : crowd)
    Caller::await([&] {
      EXPECT_TRUE(door.root->advance());
      return slow->wire.take(handshake::challenge_bytes)->has_value();
    });
  Bootstrap rank(door.system, door.id, {.rank = 0, .ranks = 1}, {});
  rank.exchange({});
  EXPECT_EQ(drive(door, rank), "");
  for (int turn = 0; turn < 100; ++turn) (void)door.root->advance();
  EXPECT_EQ(door.warned, "");
}

TEST(Acceptor, ARankThatFallsSilentInItsGreetingIsCalledSilent) {
  for (const bool proves : {false, true}) {
    Door door({.init_ms = 500});
    Caller silent(door.id, 1);
    Caller::await([&] {
      EXPECT_TRUE(door.root->advance());
      PollItem item{.handle = silent.wire.socket().handle(), .want_read = true};
      real_system().poll({&item, 1}, 0);
      return item.ready;
    });
    if (proves) {
      silent.prove(door.id.secret);
      ASSERT_TRUE(*silent.wire.flush());
    }
    Bootstrap rank(door.system, door.id, {.rank = 0, .ranks = 2}, {.init_ms = 500});
    rank.exchange({});
    const std::string text = drive(door, rank);
    EXPECT_NE(text.find("missing 1 (127.0.0.1: silent since it greeted)"), std::string::npos) << text;
  }
}

/// Starts of one process, which have one socket to be called at.
struct Doors {
  explicit Doors(int count) {
    auto opened = bootstrap::SharedListener::open(system, {.host = "127.0.0.1"});
    EXPECT_TRUE(opened) << opened.error().text();
    for (int i = 0; i < count; ++i) {
      auto made = fresh_secret();
      roots.push_back(*BootstrapRoot::open(system, *opened, *made, {},
                                           {.warn = [this](const std::string& line) { warned += line + "\n"; }}));
      ids.push_back({.root = roots.back()->address(), .secret = *made});
    }
  }
  bool advance() {
    for (auto& root : roots)
      if (root && !root->advance()) root.reset();
    return std::ranges::any_of(roots, [](const auto& root) { return root != nullptr; });
  }
  PromptSystem system;
  std::string warned;
  std::vector<UniqueId> ids;
  std::vector<std::unique_ptr<BootstrapRoot>> roots;
};

TEST(SharedListener, EachRankFindsItsOwnStart) {
  constexpr int starts = 5, ranks = 3;
  Doors doors(starts);
  for (const UniqueId& id : doors.ids) EXPECT_EQ(id.root, doors.ids.front().root);
  std::vector<std::unique_ptr<Bootstrap>> callers;
  for (int rank = 0; rank < ranks; ++rank)
    for (int start = starts - 1; start >= 0; --start) {
      const auto& id = doors.ids[static_cast<std::size_t>(start)];
      callers.push_back(std::make_unique<Bootstrap>(doors.system, id, Bootstrap::Who{.rank = rank, .ranks = ranks},
                                                    BootstrapLimits{}));
      callers.back()->exchange({static_cast<std::byte>(start), static_cast<std::byte>(rank)});
    }
  std::size_t complete = 0;
  Caller::await([&] {
    doors.advance();
    complete = 0;
    for (const auto& caller : callers) {
      const auto done = caller->advance();
      EXPECT_TRUE(done) << done.error().text();
      complete += done && *done ? 1 : 0;
    }
    return complete == callers.size() || testing::Test::HasFailure();
  });
  for (std::size_t i = 0; i < callers.size(); ++i)
    for (int rank = 0; rank < ranks; ++rank) {
      const Blob expected{static_cast<std::byte>(starts - 1 - static_cast<int>(i) % starts),
                          static_cast<std::byte>(rank)};
      EXPECT_EQ(callers[i]->gathered()[static_cast<std::size_t>(rank)], expected);
    }
  callers.clear();
  Caller::await([&] { return !doors.advance(); });
  EXPECT_EQ(doors.warned, "");
}

/// Whose id was used up, or dropped, is told by the next start: at once, and that one goes on.
TEST(SharedListener, ARankOfAStartThatIsOverIsSentAway) {
  Doors doors(2);
  doors.roots[0].reset();
  Bootstrap late(doors.system, doors.ids[0], {.rank = 0, .ranks = 1}, {});
  late.exchange({});
  Bootstrap rank(doors.system, doors.ids[1], {.rank = 0, .ranks = 1}, {});
  std::string text;
  Caller::await([&] {
    doors.advance();
    const auto done = late.advance();
    if (!done) text = done.error().text();
    return !done;
  });
  EXPECT_NE(text.find("the process at this address has another unique id"), std::string::npos) << text;
  rank.exchange({});
  Caller::await([&] {
    doors.advance();
    const auto done = rank.advance();
    EXPECT_TRUE(done) << done.error().text();
    return !done || *done;
  });
}

}  // namespace
}  // namespace tutti
