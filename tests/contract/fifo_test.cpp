// What every fifo must satisfy, whatever carries it: order, content, no waiting inside, slots that come back.
#include "transport/fifo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/connected.h"
#include "support/own_memory.h"
#include "support/shared_areas.h"
#include "support/sim_system.h"
#include "support/verbs_links.h"
#include "transport/shm.h"
#include "transport/socket.h"

namespace tutti {
namespace {

/// Two ends, and whatever they need to live.
struct Fifo {
  std::shared_ptr<void> holder;
  std::shared_ptr<Sender> sender;
  std::shared_ptr<Receiver> receiver;
  int slots = 0;
  bool instant = true;              // what is committed is there at once, and only released slots are free again
  bool reads_to_send = false;       // waits for something to read where its slots are full
  bool threads = true;              // the ends may be driven by one thread each
  std::function<void()> pass_time;  // for what is not instant
};

struct Kind {
  std::string name;
  std::function<Fifo()> make;
};

constexpr std::size_t slot_bytes = 3000;  // no power of two, less than a page

testing::OwnMemory own_memory;

/// May not be read by the receiver of a message.
class RefusedMemory final : public OfferedMemory {
 public:
  std::optional<Offer> describe(int peer, std::span<const std::byte> memory) const override {
    return own_memory.describe(peer, memory);
  }
  bool reads(int) override { return false; }
  Result<OfferedBlock> find(int peer, const Offer& offer) override { return own_memory.find(peer, offer); }
} refused_memory;

Fifo shm(int slots, bool twice_mapped, bool oversubscribed, OfferedMemory* memory = nullptr) {
  const AreaShape shape{.ranks = 3, .channels = 2, .slots = slots, .slot_bytes = slot_bytes};
  auto areas = std::make_shared<testing::SharedAreas>(shape);
  const auto seen = [&](int rank) { return twice_mapped ? areas->mapped_again(rank) : areas->area(rank); };
  Fifo fifo;
  fifo.sender = std::make_unique<ShmSender>(real_system(), areas->area(0), 0, seen(2), 2, 1, oversubscribed, memory);
  fifo.receiver =
      std::make_unique<ShmReceiver>(real_system(), areas->area(2), 2, seen(0), 0, 1, oversubscribed, memory);
  fifo.slots = slots;
  fifo.holder = std::move(areas);
  return fifo;
}

/// Pieces of so little are striped over several sockets.
constexpr std::size_t piece_bytes = 700;

Fifo join(System& system, const std::string& host, int sockets, int slots) {
  auto ends = testing::connected(system, host, sockets);
  Fifo fifo;
  fifo.sender = std::make_unique<SocketSender>(
      std::make_shared<SocketLink>(system, std::move(ends.callers),
                                   SocketLink::Ends{.rank = 0, .peer = 2, .peer_name = "rank 2"}, piece_bytes),
      slots, slot_bytes);
  fifo.receiver = std::make_unique<SocketReceiver>(
      std::make_shared<SocketLink>(system, std::move(ends.callees),
                                   SocketLink::Ends{.rank = 2, .peer = 0, .peer_name = "rank 0"}, piece_bytes),
      slot_bytes);
  fifo.slots = slots;
  fifo.instant = false;
  fifo.pass_time = [&system] { system.yield(); };
  return fifo;
}

Fifo simulated(int sockets, int slots) {
  auto system = std::make_shared<SimSystem>(
      SimOptions{.seed = static_cast<std::uint64_t>(sockets), .delay_ns_max = 20'000, .buffer_bytes = 5000});
  Fifo fifo = join(*system, "10.0.0.2", sockets, slots);
  fifo.holder = std::move(system);
  fifo.threads = false;
  return fifo;
}

/// Over the fake devices; `scrambled`: queue pairs overtake each other.
Fifo rdma(int slots, int queue_pairs, bool scrambled) {
  ::setenv("FAKE_VERBS_SEED", scrambled ? "7" : "0", 1);
  auto links = std::make_shared<testing::LinkPair>(
      verbs::LinkShape{.slots = slots, .slot_bytes = slot_bytes, .queue_pairs = queue_pairs});
  Fifo fifo;
  fifo.sender = {links->a.link, &links->a.link->out()};
  fifo.receiver = {links->b.link, &links->b.link->in()};
  fifo.slots = slots;
  fifo.instant = false;
  fifo.reads_to_send = true;
  fifo.pass_time = [] { std::this_thread::yield(); };
  fifo.holder = std::move(links);
  return fifo;
}

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  for (const int slots : {1, 2, 3, 4}) {
    const std::string count = std::to_string(slots);
    all.push_back({"shm_one_mapping_" + count, [slots] { return shm(slots, false, slots % 2 == 0); }});
    all.push_back({"shm_two_mappings_" + count, [slots] { return shm(slots, true, slots % 2 == 1); }});
    all.push_back({"shm_offers_" + count, [slots] { return shm(slots, true, false, &own_memory); }});
    all.push_back({"shm_refused_offers_" + count, [slots] { return shm(slots, true, false, &refused_memory); }});
  }
  for (const int slots : {1, 3, 4}) {
    const std::string count = std::to_string(slots);
    all.push_back({"rdma_" + count, [slots] { return rdma(slots, 1, false); }});
    all.push_back({"rdma_scrambled_" + count, [slots] { return rdma(slots, slots, true); }});
  }
  for (const int sockets : {1, 2, 3}) {
    const std::string count = std::to_string(sockets);
    all.push_back({"sockets_simulated_" + count, [sockets] { return simulated(sockets, sockets); }});
    all.push_back({"sockets_ipv4_" + count, [sockets] { return join(real_system(), "127.0.0.1", sockets, 4); }});
    if (testing::has_ipv6())
      all.push_back({"sockets_ipv6_" + count, [sockets] { return join(real_system(), "::1", sockets, 1); }});
  }
  return all;
}

class EveryFifo : public ::testing::TestWithParam<Kind> {
 protected:
  EveryFifo() : fifo_(GetParam().make()), sender_(*fifo_.sender), receiver_(*fifo_.receiver) {}

  std::span<std::byte> acquire() {
    auto slot = sender_.acquire();
    EXPECT_TRUE(slot) << slot.error().text();
    return slot ? *slot : std::span<std::byte>();
  }
  void commit(std::size_t bytes) {
    auto sent = sender_.commit(bytes);
    ASSERT_TRUE(sent) << sent.error().text();
  }
  bool flush() {
    auto left = sender_.flush();
    EXPECT_TRUE(left) << left.error().text();
    return !left || *left;
  }
  std::span<const std::byte> peek(std::size_t bytes) {
    auto message = receiver_.peek(bytes);
    EXPECT_TRUE(message) << message.error().text();
    return message ? *message : std::span<const std::byte>();
  }
  /// Both ends in one thread: what was committed is there, or comes as time passes.
  std::span<const std::byte> await(std::size_t bytes) {
    auto message = peek(bytes);
    for (int i = 0; message.data() == nullptr && !fifo_.instant && i < rounds_max; ++i) {
      flush();
      fifo_.pass_time();
      message = peek(bytes);
    }
    return message;
  }
  /// The same of a slot, while the receiver has nothing more to do.
  std::span<std::byte> await_slot() {
    auto slot = acquire();
    for (int i = 0; slot.empty() && !fifo_.instant && i < rounds_max; ++i) {
      fifo_.pass_time();
      slot = acquire();
    }
    return slot;
  }
  bool settled() {
    auto settled = sender_.settled();
    EXPECT_TRUE(settled);
    return settled && *settled != Settled::not_yet;
  }

  static constexpr int rounds_max = 10'000'000;
  Fifo fifo_;
  Sender& sender_;
  Receiver& receiver_;
};

TEST_P(EveryFifo, HasNothingAtFirst) {
  EXPECT_EQ(peek(1).data(), nullptr);
  EXPECT_TRUE(settled());
  EXPECT_TRUE(flush());
  EXPECT_EQ(sender_.slot_bytes(), slot_bytes);
  EXPECT_EQ(acquire().size(), slot_bytes);
}

TEST_P(EveryFifo, GivesTheSameAgainUntilItIsUsed) {
  const auto slot = acquire();
  EXPECT_EQ(acquire().data(), slot.data());
  slot[0] = std::byte{7};
  EXPECT_EQ(peek(1).data(), nullptr) << "not committed yet";
  commit(1);
  const auto message = await(1);
  ASSERT_EQ(message.size(), 1u);
  EXPECT_EQ(message[0], std::byte{7});
  EXPECT_EQ(peek(1).data(), message.data());
  EXPECT_TRUE(!fifo_.instant || !settled());
  ASSERT_TRUE(receiver_.release());
  EXPECT_EQ(peek(1).data(), nullptr);
  EXPECT_TRUE(settled());
}

TEST_P(EveryFifo, CarriesEmptyAndFullMessages) {
  for (const std::size_t bytes : {std::size_t{0}, slot_bytes, std::size_t{0}, std::size_t{1}}) {
    EXPECT_EQ(peek(bytes).data(), nullptr) << "even an empty message comes when it was sent";
    ASSERT_FALSE(await_slot().empty());
    commit(bytes);
    const auto message = await(bytes);
    ASSERT_NE(message.data(), nullptr) << "an empty message is a message";
    EXPECT_EQ(message.size(), bytes);
    ASSERT_TRUE(receiver_.release());
  }
}

TEST_P(EveryFifo, NeverWaitsButSaysThatItIsFull) {
  std::size_t sent = 0;
  const auto length = [](std::size_t message) { return slot_bytes - message % 100; };
  for (; !acquire().empty(); ++sent) commit(length(sent));
  EXPECT_GE(sent, static_cast<std::size_t>(fifo_.slots));
  if (fifo_.instant) {
    EXPECT_EQ(sent, static_cast<std::size_t>(fifo_.slots));
    EXPECT_TRUE(acquire().empty());
    EXPECT_FALSE(settled());
  }
  ASSERT_EQ(await(length(0)).size(), length(0));
  EXPECT_TRUE(!fifo_.instant || acquire().empty()) << "peeked is not released";
  ASSERT_TRUE(receiver_.release());
  EXPECT_TRUE(!fifo_.instant || !acquire().empty());
  for (std::size_t message = 1; message < sent; ++message) {
    ASSERT_EQ(await(length(message)).size(), length(message));
    ASSERT_TRUE(receiver_.release());
  }
  EXPECT_FALSE(await_slot().empty());
  EXPECT_TRUE(settled());
}

TEST_P(EveryFifo, NamesWhatToSleepOn) {
  std::vector<PollItem> items;
  sender_.poll_set(items);
  EXPECT_TRUE(items.empty()) << "nothing waits to be sent";
  if (fifo_.instant) return;
  EXPECT_EQ(peek(slot_bytes).data(), nullptr);
  receiver_.poll_set(items);
  ASSERT_FALSE(items.empty());
  for (const PollItem& item : items) EXPECT_TRUE(item.want_read && !item.want_write);
  while (!acquire().empty()) commit(slot_bytes);
  items.clear();
  sender_.poll_set(items);
  ASSERT_FALSE(items.empty());
  for (const PollItem& item : items)
    EXPECT_TRUE(fifo_.reads_to_send ? item.want_read : item.want_write && !item.want_read);
  ASSERT_NE(await(slot_bytes).data(), nullptr);
  items.clear();
  receiver_.poll_set(items);
  EXPECT_TRUE(items.empty()) << "the message is here";
}

struct Message {
  std::size_t bytes;
  unsigned seed;
  std::byte at(std::size_t i) const { return static_cast<std::byte>(seed + i * 13 + (i >> 8)); }
};

std::vector<Message> random_messages(unsigned seed, int count) {
  std::mt19937 random(seed);
  std::vector<Message> messages;
  for (int i = 0; i < count; ++i) {
    const std::size_t bytes = random() % 4 == 0 ? random() % 16 : random() % (slot_bytes + 1);
    messages.push_back({bytes, static_cast<unsigned>(random())});
  }
  return messages;
}

TEST_P(EveryFifo, KeepsOrderAndContentBetweenThreads) {
  if (!fifo_.threads) GTEST_SKIP() << "driven by one thread";
  const auto messages = random_messages(11, 1500);
  std::thread other([&] {
    for (const Message& expected : messages) {
      std::span<const std::byte> message;
      while ((message = peek(expected.bytes)).data() == nullptr) std::this_thread::yield();
      ASSERT_EQ(message.size(), expected.bytes);
      for (std::size_t i = 0; i < message.size(); ++i) ASSERT_EQ(message[i], expected.at(i));
      ASSERT_TRUE(receiver_.release());
    }
  });
  for (const Message& message : messages) {
    std::span<std::byte> slot;
    while ((slot = acquire()).empty()) std::this_thread::yield();
    for (std::size_t i = 0; i < message.bytes; ++i) slot[i] = message.at(i);
    commit(message.bytes);
  }
  while (!flush()) std::this_thread::yield();
  other.join();
  EXPECT_TRUE(settled());
}

TEST_P(EveryFifo, KeepsOrderUnderAnyInterleaving) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const auto messages = random_messages(seed, 40);
    int idle = 0;
    for (std::size_t sent = 0, taken = 0; taken < messages.size();) {
      ASSERT_LT(++idle, rounds_max) << "nothing comes any more, seed " << seed;
      if (!fifo_.instant && random() % 4 == 0) fifo_.pass_time();
      if (sent < messages.size() && random() % 2 == 0) {
        const auto slot = acquire();
        ASSERT_TRUE(!fifo_.instant || slot.empty() == (sent - taken == static_cast<std::size_t>(fifo_.slots)));
        if (slot.empty()) continue;
        for (std::size_t i = 0; i < messages[sent].bytes; ++i) slot[i] = messages[sent].at(i);
        commit(messages[sent++].bytes);
      } else {
        if (sent == messages.size() || random() % 3 == 0) flush();
        const auto message = peek(messages[taken].bytes);
        ASSERT_FALSE(message.data() != nullptr && sent == taken);
        ASSERT_TRUE(!fifo_.instant || (message.data() == nullptr) == (sent == taken));
        if (message.data() == nullptr) continue;
        ASSERT_EQ(message.size(), messages[taken].bytes) << "seed " << seed;
        for (std::size_t i = 0; i < message.size(); ++i) ASSERT_EQ(message[i], messages[taken].at(i));
        ASSERT_TRUE(receiver_.release());
        ++taken;
      }
      idle = 0;
    }
    ASSERT_TRUE(flush());
  }
}

// ---- The caller's own memory ----

constexpr std::size_t part_bytes = 999, parts_count = 3;

std::byte part_byte(std::size_t message, std::size_t part, std::size_t i) {
  return static_cast<std::byte>(message * 31 + part * 7 + i * 13 + (i >> 8));
}

/// Some parts are filled in, some offered from memory that the next message changes, if it may.
void send_parts(Sender& sender, std::span<std::byte> slot, std::size_t message, std::span<std::byte> memory,
                std::mt19937& random) {
  Offering* const offering = sender.offering();
  for (std::size_t part = 0; part < parts_count; ++part) {
    const auto own = memory.subspan(part * part_bytes, part_bytes),
               filled = slot.subspan(part * part_bytes, part_bytes);
    const bool offers = random() % 3 != 0 && offering != nullptr && offering->keep(own);
    const auto to = offers ? own : filled;
    for (std::size_t i = 0; i < part_bytes; ++i) to[i] = part_byte(message, part, i);
    if (offers && !offering->offer(part * part_bytes, own)) std::ranges::copy(own, filled.begin());
  }
  auto sent = sender.commit(parts_count * part_bytes);
  ASSERT_TRUE(sent) << sent.error().text();
}

/// Takes parts as they come, in the order that `message` says, each in the slot or straight into memory. False: there
/// is more to come.
class PartsTaken {
 public:
  Result<bool> advance(Receiver& receiver, std::size_t message) {
    constexpr std::size_t bytes = parts_count * part_bytes;
    Landing* const landing = receiver.landing();
    if (at_.data() == nullptr) {
      auto opened = landing != nullptr ? landing->expect(bytes) : receiver.peek(bytes);
      if (!opened) return std::move(opened).error();
      at_ = *opened;
      if (at_.data() == nullptr) return false;
    }
    for (; next_ < parts_count; ++next_) {
      const std::size_t part = message % 2 == 0 ? next_ : parts_count - 1 - next_;
      const bool lands = landing != nullptr && (message + part) % 3 != 0;
      const std::span into(memory_.data() + part * part_bytes, part_bytes);
      const std::size_t at = part * part_bytes;
      auto here = Result<std::size_t>(part_bytes);
      if (landing != nullptr) here = lands ? landing->land(at, into) : landing->arrived(at, part_bytes);
      if (!here) return here.error();
      EXPECT_LE(*here, part_bytes);
      Offers* const offers = receiver.offers();
      const auto found = offers == nullptr ? Result<OfferedBlock>(OfferedBlock{}) : offers->offered(at);
      if (!found) return found.error();
      const auto* const offered = &found->at;
      EXPECT_TRUE(offered->empty() || offered->size() == part_bytes);
      const std::byte* const in_message = offered->empty() ? at_.data() + part * part_bytes : offered->data();
      const std::byte* const from = lands ? into.data() : in_message;
      for (std::size_t i = 0; i < *here; ++i)
        EXPECT_EQ(from[i], part_byte(message, part, i)) << "what is said to be here";
      if (*here < part_bytes || ::testing::Test::HasFailure()) return false;
      if (message % 5 == 4) break;  // the rest is of no interest
    }
    next_ = 0;
    at_ = {};
    auto freed = receiver.release();
    if (!freed) return std::move(freed).error();
    return true;
  }

 private:
  std::span<const std::byte> at_;
  std::size_t next_ = 0;
  std::vector<std::byte> memory_ = std::vector<std::byte>(parts_count * part_bytes);
};

TEST_P(EveryFifo, CarriesTheCallersOwnMemory) {
  std::vector<std::byte> memory(parts_count * part_bytes);
  constexpr std::size_t count = 60;
  std::mt19937 random(5);
  PartsTaken receiving;
  std::size_t sent = 0, taken = 0;
  for (int round = 0; taken < count; ++round) {
    ASSERT_LT(round, rounds_max);
    if (!fifo_.instant && random() % 4 == 0) fifo_.pass_time();
    if (const auto slot = sent < count && random() % 2 == 0 ? acquire() : std::span<std::byte>(); !slot.empty())
      send_parts(sender_, slot, sent++, memory, random);
    if (sent == count || random() % 3 == 0) flush();
    auto whole = receiving.advance(receiver_, taken);
    ASSERT_TRUE(whole) << whole.error().text();
    ASSERT_FALSE(HasFailure()) << "message " << taken;
    taken += *whole ? 1 : 0;
    ASSERT_LE(taken, sent);
  }
}

INSTANTIATE_TEST_SUITE_P(Fifo, EveryFifo, ::testing::ValuesIn(kinds()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace tutti
