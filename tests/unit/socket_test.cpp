// Sockets as a wire: which bytes go where, what a lost connection says, and how few calls to the system there are.
#include "transport/socket.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "support/connected.h"
#include "support/sim_system.h"
#include "transport/socket_tuning.h"

namespace tutti {
namespace {

TEST(Stripes, CoverEveryByteOnceInTheOrderOfEachSocket) {
  for (const std::size_t sockets : {1u, 2u, 3u, 7u})
    for (const std::size_t bytes : {1u, 99u, 100u, 101u, 199u, 200u, 201u, 700u, 1234u}) {
      const Stripes stripes{.bytes = bytes, .sockets = sockets, .piece_bytes = 100};
      std::vector<int> covered(bytes);
      for (std::size_t socket = 0; socket < sockets; ++socket) {
        std::size_t behind = 0;
        for (std::size_t done = 0; done < stripes.share(socket);) {
          const std::size_t at = stripes.position(socket, done), run = stripes.run(socket, done);
          ASSERT_GT(run, 0u);
          ASSERT_GE(at, behind);
          behind = at + run;
          ASSERT_LE(behind, bytes);
          for (std::size_t i = 0; i < run; ++i) {
            ++covered[at + i];
            ASSERT_EQ(stripes.position(socket, done + i), at + i);
          }
          done += run;
        }
      }
      EXPECT_EQ(std::ranges::count(covered, 1), static_cast<std::ptrdiff_t>(bytes)) << bytes << " on " << sockets;
    }
}

TEST(Stripes, ShortMessagesTakeTheFirstSocket) {
  const Stripes stripes{.bytes = 100, .sockets = 3, .piece_bytes = 100};
  EXPECT_EQ(stripes.share(0), 100u);
  EXPECT_EQ(stripes.share(1), 0u);
}

/// Counts the calls that moved something.
class CountingSystem final : public System {
 public:
  std::int64_t now_ns() override { return real_system().now_ns(); }
  void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) override {
    real_system().wait(word, expected, timeout_ns);
  }
  void wake(std::atomic<std::uint32_t>& word) override { real_system().wake(word); }
  void yield() override { real_system().yield(); }
  void poll(std::span<PollItem> items, std::int64_t timeout_ns) override { real_system().poll(items, timeout_ns); }
  Result<Socket> listen(const SocketAddress& at) override { return real_system().listen(at); }
  Result<SocketAddress> address(const Socket& socket) override { return real_system().address(socket); }
  Result<SocketAddress> peer_address(const Socket& socket) override { return real_system().peer_address(socket); }
  Result<Socket> accept(Socket& listener) override { return real_system().accept(listener); }
  Result<Socket> connect(const SocketAddress& to) override { return real_system().connect(to); }
  Result<Moved> send(Socket& socket, std::span<const std::byte> bytes) override {
    return counted(real_system().send(socket, bytes), sends);
  }
  Result<Moved> send_pieces(Socket& socket, std::span<const std::span<const std::byte>> pieces) override {
    return counted(real_system().send_pieces(socket, pieces), sends);
  }
  Result<Moved> receive(Socket& socket, std::span<std::byte> bytes) override {
    return counted(real_system().receive(socket, bytes), receives);
  }
  Result<Moved> receive_two(Socket& socket, std::span<std::byte> first, std::span<std::byte> second) override {
    return counted(real_system().receive_two(socket, first, second), receives);
  }
  void close(int handle) override { real_system().close(handle); }

  int sends = 0;
  int receives = 0;

 private:
  static Result<Moved> counted(Result<Moved> moved, int& count) {
    if (moved && moved->bytes > 0) ++count;
    return moved;
  }
};

/// Both ends of some connections.
class Wire : public ::testing::Test {
 protected:
  void open(System& system, const std::string& host, int sockets = 1) {
    auto ends = testing::connected(system, host, sockets);
    there_ =
        std::make_shared<SocketLink>(system, std::move(ends.callers),
                                     SocketLink::Ends{.rank = 0, .peer = 1, .peer_name = "rank 1/2 (process 7 on b)"});
    here_ =
        std::make_shared<SocketLink>(system, std::move(ends.callees),
                                     SocketLink::Ends{.rank = 1, .peer = 0, .peer_name = "rank 0/2 (process 6 on a)"});
    sender_ = std::make_unique<SocketSender>(there_, 2, 4096);
    receiver_ = std::make_unique<SocketReceiver>(here_, 4096);
  }
  void send(std::size_t bytes) {
    auto slot = sender_->acquire();
    ASSERT_TRUE(slot && !slot->empty());
    std::ranges::fill(slot->first(bytes), std::byte{42});
    ASSERT_TRUE(sender_->commit(bytes));
  }
  /// What peek says once it says something.
  Result<std::span<const std::byte>> await(System& system, std::size_t bytes) {
    while (true) {
      auto message = receiver_->peek(bytes);
      if (!message || message->data() != nullptr) return message;
      system.yield();
    }
  }

  SimSystem sim_{{.seed = 3}};
  CountingSystem counting_;
  std::shared_ptr<SocketLink> there_, here_;
  std::unique_ptr<SocketSender> sender_;
  std::unique_ptr<SocketReceiver> receiver_;
};

TEST_F(Wire, AnEndInTheMidstIsARemoteErrorThatNamesThePeer) {
  open(real_system(), "127.0.0.1");
  send(10);
  ASSERT_TRUE(*sender_->flush());
  sender_.reset();
  there_.reset();
  const auto message = await(real_system(), 11);
  ASSERT_FALSE(message) << "ten bytes are not eleven";
  EXPECT_EQ(message.error().code, Code::remote);
  EXPECT_EQ(message.error().peer, 0);
  EXPECT_NE(message.error().text().find("the connection to rank 0/2 (process 6 on a) was closed"), std::string::npos)
      << message.error().text();
}

TEST_F(Wire, AResetIsARemoteErrorAtBothEnds) {
  open(sim_, "10.0.0.2");
  sim_.reset(there_->socket(0).handle());
  sim_.yield();
  const auto received = await(sim_, 1);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, Code::remote);
  EXPECT_NE(received.error().text().find("was lost"), std::string::npos) << received.error().text();
  send(1);
  const auto sent = sender_->flush();
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Code::remote);
  EXPECT_EQ(sent.error().peer, 1);
}

TEST_F(Wire, AMessageLargerThanASlotIsOurMistake) {
  open(real_system(), "127.0.0.1");
  const auto message = receiver_->peek(4097);
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().code, Code::internal);
}

TEST_F(Wire, SmallMessagesShareACall) {
  open(counting_, "127.0.0.1");
  send(8);
  send(16);
  EXPECT_EQ(counting_.sends, 0) << "they wait for the flush";
  ASSERT_TRUE(*sender_->flush());
  EXPECT_EQ(counting_.sends, 1);
  for (const std::size_t bytes : {8u, 16u}) {
    ASSERT_EQ(await(counting_, bytes)->size(), bytes);
    ASSERT_TRUE(receiver_->release());
  }
  EXPECT_EQ(counting_.receives, 1) << "the first one brings the second along";
}

TEST_F(Wire, BytesOfALargeMessageAreReadWhereTheyBelong) {
  open(counting_, "127.0.0.1");
  send(24);
  send(3000);
  ASSERT_TRUE(*sender_->flush());
  receiver_->read_ahead(false);
  ASSERT_EQ(await(counting_, 24)->size(), 24u);
  ASSERT_TRUE(receiver_->release());
  EXPECT_EQ(counting_.receives, 1);
  ASSERT_NE(receiver_->expect(3000)->data(), nullptr);
  std::vector<std::byte> landed(3000);
  while (*receiver_->land(0, landed) < landed.size()) counting_.yield();
  EXPECT_GE(counting_.receives, 2) << "the first read took bytes of the large message";
  EXPECT_EQ(std::ranges::count(landed, std::byte{42}), 3000);
}

/// As a chain sends a broadcast in parts.
TEST_F(Wire, AMegabyteInPartsLeavesInOneCall) {
  constexpr int parts = 16;
  constexpr std::size_t part = 64 * 1024;
  auto ends = testing::connected(counting_, "127.0.0.1", 1);
  SocketSender sender(std::make_shared<SocketLink>(counting_, std::move(ends.callers),
                                                   SocketLink::Ends{.rank = 0, .peer = 1, .peer_name = "rank 1/2"}),
                      parts, part);
  std::vector<std::byte> memory(parts * part);
  for (int i = 0; i < parts; ++i) {
    ASSERT_NE(sender.acquire()->data(), nullptr);
    ASSERT_TRUE(sender.offer(0, std::span(memory).subspan(static_cast<std::size_t>(i) * part, part)));
    if (i < parts - 1) {
      ASSERT_TRUE(sender.commit(part));
      ASSERT_EQ(counting_.sends, 0) << "part " << i;
    }
  }
  ASSERT_TRUE(sender.commit(part)) << "a megabyte does not wait for the flush";
  EXPECT_EQ(counting_.sends, 1);
}

/// What a sender puts on its sockets, and a receiver that is given it with bytes added or left out.
class Foreign : public ::testing::TestWithParam<int> {
 protected:
  static constexpr std::size_t piece = 700;
  static constexpr std::array<std::size_t, 5> lengths{24, 0, 8, 2900, 16};
  using Stream = std::vector<std::byte>;

  SocketLink::Ends ends(int rank) const { return {.rank = rank, .peer = 1 - rank, .channel = 3, .peer_name = "rank"}; }

  /// By socket.
  std::vector<Stream> sent() const {
    auto pair = testing::connected(real_system(), "127.0.0.1", GetParam());
    SocketSender sender(std::make_shared<SocketLink>(real_system(), std::move(pair.callers), ends(0), piece), 8, 3000);
    for (const std::size_t bytes : lengths) {
      std::ranges::fill(sender.acquire()->first(bytes), std::byte{42});
      EXPECT_TRUE(sender.commit(bytes));
    }
    EXPECT_TRUE(*sender.flush());
    std::vector<Stream> streams;
    for (std::size_t socket = 0; socket < pair.callees.size(); ++socket) {
      std::size_t bytes = 0;
      for (const std::size_t length : lengths)
        bytes += Stripes{std::max<std::size_t>(length, 1), pair.callees.size(), piece}.carried(socket);
      Stream& stream = streams.emplace_back(bytes);
      for (std::size_t have = 0; have < bytes;)
        have += real_system().receive(pair.callees[socket], std::span(stream).subspan(have))->bytes;
    }
    return streams;
  }

  /// How many messages arrive as they were sent before one fails; all of them: no failure.
  std::size_t received(const std::vector<Stream>& streams, bool in_parts) const {
    auto pair = testing::connected(real_system(), "127.0.0.1", GetParam());
    for (std::size_t socket = 0; socket < streams.size(); ++socket)
      EXPECT_EQ(real_system().send(pair.callers[socket], streams[socket])->bytes, streams[socket].size());
    pair.callers.clear();
    SocketReceiver receiver(std::make_shared<SocketLink>(real_system(), std::move(pair.callees), ends(1), piece), 3000);
    for (std::size_t message = 0; message < lengths.size(); ++message) {
      const std::size_t bytes = lengths[message];
      std::vector<std::byte> landed(bytes);
      while (true) {
        bool here = false, failed = false;
        if (in_parts && bytes > 24) {
          auto opened = receiver.expect(bytes);
          failed = !opened;
          if (!failed && opened->data() != nullptr) {
            auto got = receiver.land(0, landed);
            failed = !got;
            here = got && *got == bytes;
          }
        } else {
          auto whole = receiver.peek(bytes);
          failed = !whole;
          here = whole && whole->data() != nullptr;
          if (here) std::ranges::copy(*whole, landed.begin());
        }
        if (failed) return message;
        if (here) break;
        real_system().yield();
      }
      EXPECT_EQ(std::ranges::count(landed, std::byte{42}), static_cast<std::ptrdiff_t>(bytes)) << "message " << message;
      EXPECT_TRUE(receiver.release());
    }
    return lengths.size();
  }

  /// The message whose bytes on `socket` include the one at `at`; the number of messages behind the last one.
  std::size_t message_at(std::size_t socket, std::size_t at) const {
    std::size_t end = 0;
    for (std::size_t message = 0; message < lengths.size(); ++message) {
      const std::size_t bytes = std::max<std::size_t>(lengths[message], 1);
      end += Stripes{bytes, static_cast<std::size_t>(GetParam()), piece}.carried(socket);
      if (at < end) return message;
    }
    return lengths.size();
  }
};

TEST_P(Foreign, BytesAreNoticedInTheMessageTheyShift) {
  const auto streams = sent();
  const std::string_view text = "node:7 tutti WARN";
  for (const bool in_parts : {false, true}) {
    ASSERT_EQ(received(streams, in_parts), lengths.size()) << "nothing foreign";
    for (std::size_t socket = 0; socket < streams.size(); ++socket)
      for (std::size_t at = 0; at <= streams[socket].size(); at += at < 160 ? 1 : 61) {
        auto shifted = streams;
        const auto foreign = std::as_bytes(std::span(text)).first(1 + at % text.size());
        shifted[socket].insert(shifted[socket].begin() + static_cast<std::ptrdiff_t>(at), foreign.begin(),
                               foreign.end());
        ASSERT_EQ(received(shifted, in_parts), message_at(socket, at)) << "socket " << socket << ", at " << at;
      }
  }
}

/// A call leaves the padding of its last message unread; before it returns, the message is read to its end.
TEST_P(Foreign, BytesAreNoticedThoughNobodyAsksForTheEnd) {
  constexpr std::size_t bytes = 2900, wanted = 2500;
  const auto streams = sent();
  for (std::size_t at = 0; at < streams[0].size(); at += 37) {
    const std::size_t first = message_at(0, at);
    if (lengths[first] != bytes) continue;
    auto shifted = streams;
    shifted[0].insert(shifted[0].begin() + static_cast<std::ptrdiff_t>(at), std::byte{'x'});
    auto pair = testing::connected(real_system(), "127.0.0.1", GetParam());
    for (std::size_t socket = 0; socket < shifted.size(); ++socket)
      ASSERT_EQ(real_system().send(pair.callers[socket], shifted[socket])->bytes, shifted[socket].size());
    SocketReceiver receiver(std::make_shared<SocketLink>(real_system(), std::move(pair.callees), ends(1), piece), 3000);
    for (std::size_t message = 0; message < first; ++message) {
      while (receiver.peek(lengths[message])->data() == nullptr) real_system().yield();
      ASSERT_TRUE(receiver.release());
    }
    while (receiver.expect(bytes)->data() == nullptr) real_system().yield();
    std::vector<std::byte> landed(wanted);
    bool failed = false;
    for (std::size_t here = 0; here < wanted && !failed;) {
      const auto got = receiver.land(0, landed);
      failed = !got;
      if (got) here = *got;
    }
    if (!failed) {
      ASSERT_TRUE(receiver.release());
      auto drained = receiver.drained();
      while (drained && !*drained) drained = receiver.drained();
      failed = !drained;
    }
    ASSERT_TRUE(failed) << "at " << at;
  }
}

/// Somebody else has read from the connection.
TEST_P(Foreign, ReadersAreNoticedToo) {
  const auto streams = sent();
  for (std::size_t at = 0; at + 1 < streams[0].size(); at += at < 160 ? 1 : 61) {
    auto shifted = streams;
    shifted[0].erase(shifted[0].begin() + static_cast<std::ptrdiff_t>(at));
    ASSERT_EQ(received(shifted, false), message_at(0, at)) << "at " << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Sockets, Foreign, ::testing::Values(1, 2, 3));

/// A machine with these congestion controls, the first of them its own; the others may be asked for.
class CongestedSystem final : public System {
 public:
  CongestedSystem(std::vector<std::string> known, std::string here, std::string there)
      : known_(std::move(known)), here_(std::move(here)), there_(std::move(there)), current_(known_.front()) {}
  std::int64_t now_ns() override { return 0; }
  void wait(std::atomic<std::uint32_t>&, std::uint32_t, std::int64_t) override {}
  void wake(std::atomic<std::uint32_t>&) override {}
  void yield() override {}
  void poll(std::span<PollItem>, std::int64_t) override {}
  Result<Socket> listen(const SocketAddress&) override { return Socket(); }
  Result<SocketAddress> address(const Socket&) override { return SocketAddress{.host = here_, .port = 1}; }
  Result<SocketAddress> peer_address(const Socket&) override { return SocketAddress{.host = there_, .port = 2}; }
  Result<Socket> accept(Socket&) override { return Socket(); }
  Result<Socket> connect(const SocketAddress&) override { return Socket(); }
  Result<Moved> send(Socket&, std::span<const std::byte>) override { return Moved{}; }
  Result<Moved> receive(Socket&, std::span<std::byte>) override { return Moved{}; }
  void close(int) override {}
  std::string congestion(const Socket&) override { return current_; }
  bool set_congestion(Socket&, const std::string& name) override {
    if (std::ranges::find(known_, name) == known_.end()) return false;
    current_ = name;
    return true;
  }

 private:
  std::vector<std::string> known_;
  std::string here_, there_, current_;
};

TEST(Congestion, IsLeftToTheSystemButNotBbrWithinAMachine) {
  using Known = std::vector<std::string>;
  const auto chosen = [](const Known& known, const char* there, const char* wanted) {
    CongestedSystem system(known, "10.0.0.1", there);
    Socket socket;
    return choose_congestion(system, socket, wanted);
  };
  EXPECT_EQ(chosen({"bbr", "reno", "cubic"}, "10.0.0.1", ""), "cubic");
  EXPECT_EQ(chosen({"bbr", "reno"}, "10.0.0.1", ""), "reno");
  EXPECT_EQ(chosen({"bbr"}, "10.0.0.1", ""), "bbr");
  EXPECT_EQ(chosen({"bbr", "cubic"}, "10.0.0.2", ""), "bbr");
  EXPECT_EQ(chosen({"dctcp", "cubic"}, "10.0.0.1", ""), "dctcp");
  EXPECT_EQ(chosen({"bbr", "cubic"}, "10.0.0.1", "system"), "bbr");
  EXPECT_EQ(chosen({"bbr", "reno"}, "10.0.0.2", "reno"), "reno");
  EXPECT_EQ(chosen({"bbr", "reno"}, "10.0.0.2", "vegas"), "bbr");
}

TEST(Congestion, OfARealSocketCanBeAskedAndSet) {
  auto ends = testing::connected(real_system(), "127.0.0.1", 1);
  const std::string own = real_system().congestion(ends.callers[0]);
  ASSERT_FALSE(own.empty());
  EXPECT_TRUE(real_system().set_congestion(ends.callers[0], own));
  EXPECT_FALSE(real_system().set_congestion(ends.callers[0], "no_such_one"));
  EXPECT_EQ(choose_congestion(real_system(), ends.callers[0], own), own);
}

}  // namespace
}  // namespace tutti
