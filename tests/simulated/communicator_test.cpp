// Whole communicators on a seeded clock and network: all ranks in one thread, advanced in random order.
#include "comm/communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "collective/mailbox.h"
#include "collective/point_to_point.h"
#include "comm/peer_failure.h"
#include "init/join.h"
#include "init/open_root.h"
#include "submit/batch.h"
#include "support/folder.h"
#include "support/share.h"
#include "support/sim_system.h"

namespace tutti {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

std::uint64_t base_seed() {
  const char* const given = std::getenv("TUTTI_TEST_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

Config plain_config() {
  auto config = Config::load({}, [](const std::string&) { return Error{.code = Code::system}; });
  EXPECT_TRUE(config);
  return *std::move(config);
}

/// One process that is all ranks, and the order in which they get to run.
class World {
 public:
  World(std::uint64_t seed, int ranks_of_world, std::unique_ptr<Tune> tune = std::make_unique<Tune>())
      : system({.seed = seed}),
        process(system, plain_config(), Service::Mode::manual, std::move(tune)),
        random(seed),
        ranks(ranks_of_world) {}

  /// Advances operations in random order until all have ended or `limit_ns` of virtual time passed. By operation: done,
  /// or the error it met; nothing if it never ended.
  std::vector<std::optional<Result<void>>> run(const std::vector<Operation*>& operations, std::int64_t limit_ns) {
    std::vector<std::optional<Result<void>>> ended(operations.size());
    const std::int64_t deadline = system.now_ns() + limit_ns;
    std::size_t left = operations.size();
    while (left > 0 && system.now_ns() < deadline) {
      const std::size_t i = std::uniform_int_distribution<std::size_t>(0, operations.size())(random);
      if (i == operations.size()) {
        process.service.turn();
        system.yield();
        continue;
      }
      if (ended[i]) continue;
      auto progress = operations[i]->advance();
      if (progress && *progress != Progress::done) {
        if (auto looked = operations[i]->poll_peers(); !looked) process.log.warn("sim", "{}", looked.error().text());
        continue;
      }
      ended[i] = progress ? Result<void>() : Result<void>(std::move(progress).error());
      --left;
    }
    return ended;
  }

  std::vector<std::shared_ptr<Communicator>> start() {
    auto id = open_root(process);
    EXPECT_TRUE(id);
    std::vector<std::unique_ptr<Join>> joins;
    std::vector<Operation*> operations;
    for (Rank rank = 0; rank < ranks; ++rank) {
      joins.push_back(
          std::make_unique<Join>(process, JoinOptions{.rank = rank, .ranks = ranks, .id = *id, .name = {}}));
      operations.push_back(joins.back().get());
    }
    std::vector<std::shared_ptr<Communicator>> made;
    for (const auto& ended : run(operations, 120 * second_ns)) {
      EXPECT_TRUE(ended && *ended) << (ended ? ended->error().text() : "never ended");
      if (!ended || !*ended) return {};
    }
    for (auto& join : joins) made.push_back(join->take());
    return made;
  }

  void stop(std::vector<std::shared_ptr<Communicator>>& made) {
    std::ranges::shuffle(made, random);
    for (auto& communicator : made) {
      process.service.remove(communicator->beside_calls().take_watch().get());
      communicator.reset();
      process.service.turn();
    }
  }

  SimSystem system;
  Process process;
  std::mt19937_64 random;
  int ranks;
};

/// Sums of small integers in every element, so that any order gives one result.
void all_reduce_in_any_order(World& world, const std::vector<std::shared_ptr<Communicator>>& made, std::size_t count) {
  std::vector<std::vector<std::int64_t>> in(world.ranks);
  std::vector<std::vector<std::int64_t>> out(world.ranks, std::vector<std::int64_t>(count, -1));
  std::vector<std::int64_t> expected(count);
  for (auto& values : in) {
    values.resize(count);
    for (auto& value : values) value = static_cast<std::int64_t>(world.random() % 1000);
    for (std::size_t i = 0; i < count; ++i) expected[i] += values[i];
  }
  std::vector<std::unique_ptr<Batch>> batches;
  std::vector<Operation*> operations;
  for (Rank rank = 0; rank < world.ranks; ++rank) {
    batches.push_back(std::make_unique<Batch>(made[rank]));
    batches.back()->add(Request{.collective = Collective::all_reduce,
                                .input = reinterpret_cast<const std::byte*>(in[rank].data()),
                                .output = reinterpret_cast<std::byte*>(out[rank].data()),
                                .count = count,
                                .type = DataType::int64});
    batches.back()->enqueue();
    operations.push_back(batches.back().get());
  }
  for (const auto& ended : world.run(operations, 10 * second_ns))
    ASSERT_TRUE(ended && *ended) << (ended ? ended->error().text() : "never ended");
  for (const auto& values : out) ASSERT_EQ(values, expected);
}

/// A day's process, whose machine seems a thousand times slower than it is.
std::unique_ptr<Tune> slow_machine(const std::string& at, std::int64_t now_s, int& measured) {
  const auto slow = [&measured](const cpu_set_t&) {
    ++measured;
    auto numbers = Machine{}.numbers();
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (Machine::names()[i].find("gbps") != std::string::npos) numbers[i] = 1e-3;
    return std::optional(MeasuredNumbers{*Machine::of(numbers)});
  };
  return std::make_unique<Tune>(at, 7,
                                Tune::Measure{.machine = slow,
                                              .hop_us = [](const cpu_set_t&) { return std::optional<double>(); },
                                              .now_s = [now_s] { return now_s; }});
}

TEST(SimulatedCommunicator, HasItsMachineMeasuredAgainByTheNextStart) {
  const Folder folder;
  constexpr std::int64_t day_s = 24 * 3600;
  int measured = 0;
  for (const std::int64_t day : {0, 1, 2, 3}) {
    World world(1, 2, slow_machine(folder.path(), day * day_s, measured));
    auto made = world.start();
    ASSERT_EQ(made.size(), 2U);
    if (made[0]->members().oversubscribed) GTEST_SKIP() << "more ranks than cores: times say nothing";
    // The first day measures, and its numbers are too new; the second contradicts them at its end.
    EXPECT_EQ(measured, day < 2 ? 1 : 2) << "day " << day;
    for (int call = 0; call < 8; ++call) all_reduce_in_any_order(world, made, 40000);
    world.stop(made);
  }
}

TEST(SimulatedCommunicator, WorksInEveryOrderOfEvents) {
  const auto seed_count = static_cast<std::uint64_t>(share_of(30));
  for (std::uint64_t seed = base_seed(); seed < base_seed() + seed_count; ++seed) {
    SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(seed));
    World world(seed, 1 + static_cast<int>(seed % 6));
    auto made = world.start();
    ASSERT_EQ(made.size(), static_cast<std::size_t>(world.ranks));
    for (const std::size_t count : {1, 0, 17, 5000, 3, 40000}) {
      all_reduce_in_any_order(world, made, count);
      if (HasFatalFailure()) return;
    }
    world.stop(made);
  }
}

TEST(SimulatedCommunicator, AnAbortEndsAllRanksWithinASecond) {
  const auto seed_count = static_cast<std::uint64_t>(share_of(30));
  for (std::uint64_t seed = base_seed(); seed < base_seed() + seed_count; ++seed) {
    SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(seed));
    World world(seed, 2 + static_cast<int>(seed % 5));
    auto made = world.start();
    ASSERT_EQ(made.size(), static_cast<std::size_t>(world.ranks));
    const Rank aborting = static_cast<Rank>(world.random() % world.ranks);
    const std::size_t count = seed % 2 == 0 ? 4 : 30000;
    std::vector<std::int64_t> in(count, 1);
    std::vector<std::vector<std::int64_t>> out(world.ranks, std::vector<std::int64_t>(count));
    std::vector<std::unique_ptr<Batch>> batches;
    std::vector<Operation*> operations;
    for (Rank rank = 0; rank < world.ranks; ++rank) {
      if (rank == aborting) continue;  // never calls
      batches.push_back(std::make_unique<Batch>(made[rank]));
      batches.back()->add(Request{.collective = Collective::all_reduce,
                                  .input = reinterpret_cast<const std::byte*>(in.data()),
                                  .output = reinterpret_cast<std::byte*>(out[rank].data()),
                                  .count = count,
                                  .type = DataType::int64});
      batches.back()->enqueue();
      operations.push_back(batches.back().get());
    }
    for (const auto& ended : world.run(operations, second_ns / 100)) ASSERT_FALSE(ended) << "without the last rank?";
    made[aborting]->abort();
    for (const auto& ended : world.run(operations, second_ns)) {
      ASSERT_TRUE(ended) << "still waiting a second after the abort";
      ASSERT_FALSE(*ended);
      EXPECT_EQ(ended->error().code, Code::remote);
      EXPECT_EQ(ended->error().peer, aborting);
    }
    batches.clear();
    world.stop(made);
  }
}

/// The device's part of a communicator, which looks at what others can see while its kernels are told to give up.
class WatchedDevice final : public DeviceSide {
 public:
  explicit WatchedDevice(Communicator& of) : of_(of) {}
  ~WatchedDevice() override { second_.join(); }

  void abort() override {
    EXPECT_FALSE(of_.failed()) << "calls end and release kernels that nothing tells to give up";
    EXPECT_EQ(of_.members().area->area.header().state.load(), RankState::failed)
        << "kernels give up without a cause that peers can read";
    std::atomic<bool> here = false;
    second_ = std::thread([this, &here] {
      here = true;
      of_.fail({.code = Code::timeout, .what = "the second failure"});
      EXPECT_TRUE(aborted_) << "a second failure ends a call before kernels are told to give up";
    });
    while (!here) std::this_thread::yield();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    aborted_ = true;
  }
  bool idle() const override { return true; }
  std::optional<Error> trouble() const override { return std::nullopt; }
  std::optional<Error> cause() const override { return std::nullopt; }
  Result<void> host_call(bool) override { return {}; }
  void count(const Request&) override {}
  void count(const PeerRequest&) override {}
  std::string explain() const override { return {}; }
  void explain_ending(Error&) override {}

 private:
  Communicator& of_;
  std::atomic<bool> aborted_ = false;
  std::thread second_;
};

TEST(SimulatedGpu, IsToldToGiveUpBeforeCallsEnd) {
  World world(base_seed(), 2);
  auto made = world.start();
  ASSERT_EQ(made.size(), 2u);
  made[0]->attach(std::make_unique<WatchedDevice>(*made[0]));
  made[0]->fail({.code = Code::timeout, .what = "the first failure"});
  EXPECT_TRUE(made[0]->failed());
  EXPECT_EQ(made[0]->failure().error().what, "the first failure");
  world.stop(made);
}

/// By the clock that is handed in: a GPU that hangs costs the end of its communicator a second of it.
TEST(SimulatedGpu, IsWaitedForByTheClockHandedIn) {
  World world(base_seed(), 1);
  const std::int64_t begun_ns = world.system.now_ns();
  auto held = std::make_shared<int>();
  const std::weak_ptr<int> seen = held;
  EXPECT_FALSE(world.process.gpus.idle_or_keep([] { return false; }, {std::exchange(held, nullptr)}));
  EXPECT_GE(world.system.now_ns() - begun_ns, second_ns);
  EXPECT_LT(world.system.now_ns() - begun_ns, second_ns + second_ns / 100);
  EXPECT_FALSE(seen.expired()) << "the GPU may still use it";
  auto done = std::make_shared<int>();
  const std::weak_ptr<int> let_go = done;
  EXPECT_TRUE(world.process.gpus.idle_or_keep([] { return true; }, {std::exchange(done, nullptr)}));
  EXPECT_TRUE(let_go.expired());
}

/// As a peer with a fault, or overwritten memory, would leave it.
void put(Channel& channel, Rank to, std::span<const std::byte> bytes) {
  Sender& sender = *channel.senders[static_cast<std::size_t>(to)];
  const auto slot = sender.acquire();
  ASSERT_TRUE(slot && slot->size() >= bytes.size());
  std::ranges::copy(bytes, slot->begin());
  ASSERT_TRUE(sender.commit(bytes.size()));
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// Numbers next to those of an enumeration, and far from them.
constexpr std::uint32_t foreign[] = {100, 255, 256, 0x7fff'ffff, 0x8000'0000, 0xffff'ffff};

TEST(NumbersFromPeers, InTheHeaderOfAMessageAreRefusedUnlessTheyExist) {
  using Header = PointToPoint::Header;
  std::vector<std::pair<Header, std::string>> headers = {
      {{.bytes = 8, .type = data_type_count}, fmt::format("8 bytes of a type {}", data_type_count)}};
  for (const std::uint32_t number : foreign) {
    headers.push_back({{.bytes = 8, .type = number}, fmt::format("8 bytes of a type {}", number)});
    Header carried{.bytes = 8, .type = static_cast<std::uint32_t>(DataType::int64)};
    std::memcpy(static_cast<void*>(&carried.carried.carry), &number, sizeof number);
    headers.push_back({carried, "the header of a message is wrong"});
  }
  for (const auto& [header, words] : headers) {
    World world(base_seed(), 2);
    auto made = world.start();
    ASSERT_EQ(made.size(), 2U);
    put(made[0]->links().channels().point_to_point(), 1, bytes_of(header));
    std::int64_t into = -1;
    Batch batch(made[1]);
    batch.add(PeerRequest{
        .send = false, .data = reinterpret_cast<std::byte*>(&into), .bytes = 8, .type = DataType::int64, .peer = 0});
    batch.enqueue();
    const auto all = world.run({&batch}, 10 * second_ns);
    const auto& ended = all.front();
    ASSERT_TRUE(ended && !*ended) << words;
    EXPECT_NE(ended->error().text().find(words), std::string::npos) << ended->error().text();
    EXPECT_EQ(into, -1);
    world.stop(made);
  }
}

/// As Mailbox has them.
struct TaggedHeader {
  std::uint32_t kind = 1;
  std::uint32_t type = 0;
  std::int32_t tag = 0;
  std::uint64_t bytes = 0;
  std::uint64_t id = 0;
  std::uint32_t carry = 0;
  BufferDescriptor buffer = {};
};

TEST(NumbersFromPeers, InTheHeaderOfATaggedMessageAreRefusedUnlessTheyExist) {
  std::vector<std::pair<TaggedHeader, std::string>> headers = {{{.kind = 0}, "its kind is unknown"},
                                                               {{.kind = 6}, "its kind is unknown"},
                                                               {{.carry = 3}, "its header is wrong"}};
  for (const std::uint32_t number : foreign) {
    headers.push_back({{.kind = number}, "its kind is unknown"});
    headers.push_back({{.type = number}, "its header is wrong"});
    headers.push_back({{.carry = number}, "its header is wrong"});
  }
  for (const auto& [header, words] : headers) {
    World world(base_seed(), 2);
    auto made = world.start();
    ASSERT_EQ(made.size(), 2U);
    put(made[0]->links().channels().messages(), 1, bytes_of(header));
    EXPECT_FALSE(mailbox_of(*made[1]).probe(0, 0));
    ASSERT_TRUE(made[1]->failed()) << words;
    EXPECT_NE(made[1]->failure().error().text().find(words), std::string::npos) << made[1]->failure().error().text();
    EXPECT_EQ(made[1]->failure().error().peer, 0);
    world.stop(made);
  }
}

TEST(LargeMessages, AreReadPieceByPieceFromTheirSendersMemory) {
  World world(base_seed(), 2);
  auto made = world.start();
  ASSERT_EQ(made.size(), 2U);
  std::vector<std::byte> data(2 * limits::pass_bytes + 5), into(data.size());
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 / 3);
  const std::atomic<bool> waits = false;
  PeerWindows windows(world.process, made[1]->members(), waits);
  Fetch fetch{.from = 0,
              .header = {.kind = PacketKind::offer,
                         .bytes = data.size(),
                         .carried = best_carry(*made[0], 1, data.data(), data.size())},
              .message = std::make_shared<Message>()};
  fetch.message->data = into.data();
  MessageCounts counts;
  ASSERT_FALSE(fetch.through_slots());
  for (const auto expected : {Fetch::Read::piece, Fetch::Read::piece, Fetch::Read::last_piece}) {
    const auto read = fetch.read(*made[1], windows, counts);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(*read, expected);
  }
  EXPECT_EQ(counts.moves(), 3U);
  EXPECT_EQ(into, data);
  made[0]->fail({.code = Code::internal, .what = "on purpose"});
  fetch.moved = 0;
  EXPECT_FALSE(fetch.read(*made[1], windows, counts)) << "the data may change now";
  world.stop(made);
}

TEST(NumbersFromPeers, AStateThatDoesNotExistIsAFailureOfItsRank) {
  for (const std::uint32_t number : foreign) {
    World world(base_seed(), 2);
    auto made = world.start();
    ASSERT_EQ(made.size(), 2U);
    auto& state = made[0]->members().area->area.header().state;
    std::memcpy(static_cast<void*>(&state), &number, sizeof number);
    const auto failure = failure_of(*made[1], 0);
    ASSERT_TRUE(failure) << number;
    EXPECT_EQ(failure->peer, 0);
    EXPECT_NE(failure->what.find("overwritten its memory"), std::string::npos) << failure->what;
    state = RankState::open;
    world.stop(made);
  }
}

}  // namespace
}  // namespace tutti
