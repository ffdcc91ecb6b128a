// Frames come as they were sent, however the network cuts them; what is out of bounds ends the connection.
#include "net/wire.h"

#include <gtest/gtest.h>

#include "support/seeds.h"
#include "support/sim_system.h"

namespace tutti {
namespace {

constexpr std::int64_t s = 1'000'000'000;

struct Pair {
  explicit Pair(SimSystem& system)
      : listener(*system.listen({.host = "10.0.0.1", .port = 9})),
        left(system, *system.connect(*system.address(listener))),
        right(system, Socket()) {
    PollItem item{.handle = listener.handle(), .want_read = true};
    system.poll({&item, 1}, s);
    right = Wire(system, *system.accept(listener));
  }
  Socket listener;
  Wire left, right;
};

Bytes body(std::size_t bytes) {
  Bytes made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(i * 5);
  return made;
}

/// Lets time pass until the right end has a frame or an error.
Result<std::optional<Frame>> next_frame(SimSystem& system, Pair& pair, std::size_t bytes_max) {
  while (true) {
    (void)pair.left.flush();
    auto frame = pair.right.take_frame(bytes_max);
    if (!frame || *frame) return frame;
    std::array items{pair.left.interest(), pair.right.interest()};
    system.poll(items, s);
  }
}

TEST(Wire, FramesSurviveAnyCut) {
  for (const std::uint64_t seed : seeds(50)) {
    SimSystem system({.seed = seed, .buffer_bytes = 1'000});
    Pair pair(system);
    const std::array sizes{std::size_t{0}, std::size_t{1}, std::size_t{5'000}, std::size_t{0}, std::size_t{12}};
    for (const std::size_t size : sizes) pair.left.queue(frame(FrameKind::contribute, body(size)));
    for (const std::size_t size : sizes) {
      const auto got = next_frame(system, pair, 5'000);
      ASSERT_TRUE(got) << got.error().text();
      EXPECT_EQ((*got)->kind, FrameKind::contribute);
      EXPECT_EQ((*got)->body, body(size));
    }
  }
}

TEST(Wire, AFrameOutOfBoundsIsAnErrorBeforeItIsRead) {
  for (const std::uint64_t length : {std::uint64_t{101}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    SimSystem system({});
    Pair pair(system);
    ByteWriter header;
    header.number(length);
    header.number(static_cast<std::uint32_t>(FrameKind::join));
    pair.left.queue(header.bytes());
    const auto got = next_frame(system, pair, 100);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, Code::remote);
    EXPECT_NE(got.error().what.find("at most 100 expected"), std::string::npos) << got.error().what;
  }
}

TEST(Wire, AnEndInMidFrameIsAnError) {
  SimSystem system({});
  Pair pair(system);
  Bytes cut = *frame(FrameKind::join, body(50));
  cut.pop_back();
  pair.left.queue(cut);
  for (auto sent = pair.left.flush(); sent && !*sent; sent = pair.left.flush()) system.yield();
  pair.left = Wire(system, Socket());
  Result<std::optional<Frame>> got = std::optional<Frame>{};
  while (got && !*got) {
    got = pair.right.take_frame(100);
    system.yield();
  }
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::remote);
}

TEST(Wire, DrainSeesTheEnd) {
  SimSystem system({});
  Pair pair(system);
  pair.left.queue(body(10'000));
  for (auto sent = pair.left.flush(); sent && !*sent; sent = pair.left.flush()) {
    EXPECT_TRUE(pair.right.drain());
    system.yield();
  }
  pair.left = Wire(system, Socket());
  while (pair.right.drain()) system.yield();
}

}  // namespace
}  // namespace tutti
