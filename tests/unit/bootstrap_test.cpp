// Ranks meet over real loopback sockets, with every rank and the root in a thread of its own.
#include "bootstrap/bootstrap.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <thread>

namespace tutti {
namespace {

constexpr std::int64_t s = 1'000'000'000;

Blob blob_of(int rank, int round, std::size_t bytes) {
  Blob blob(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    blob[i] = static_cast<std::byte>(rank * 31 + round * 7 + static_cast<int>(i % 251));
  return blob;
}

/// Drives a task as the service thread does, until it ends or the test does.
class Served {
 public:
  explicit Served(std::unique_ptr<Task> task)
      : task_(std::move(task)), thread_([this](std::stop_token stop) { loop(stop); }) {}
  void await_end() { thread_.join(); }

 private:
  void loop(const std::stop_token& stop) {
    System& system = real_system();
    while (!stop.stop_requested()) {
      if (!task_->advance()) break;
      std::vector<PollItem> items;
      const std::int64_t until = task_->poll_set(items);
      // Not longer than it takes to be stopped.
      system.poll(items, std::clamp(until - system.now_ns(), std::int64_t{0}, s / 50));
    }
    task_.reset();
  }
  std::unique_ptr<Task> task_;
  std::jthread thread_;
};

/// Waits for the exchange under way.
Result<void> finish(Bootstrap& bootstrap) {
  System& system = real_system();
  while (true) {
    auto done = bootstrap.advance();
    if (!done) return std::move(done).error();
    if (*done) return {};
    std::vector<PollItem> items;
    const std::int64_t until = bootstrap.poll_set(items);
    system.poll(items, std::max<std::int64_t>(until - system.now_ns(), 0));
  }
}

struct Meeting {
  explicit Meeting(BootstrapLimits limits_in = {}) : limits(limits_in) {
    auto made = fresh_secret();
    auto opened = BootstrapRoot::open(real_system(), {.host = "127.0.0.1"}, *made, limits);
    EXPECT_TRUE(opened) << opened.error().text();
    id = {.root = (*opened)->address(), .secret = *made};
    root = std::make_unique<Served>(*std::move(opened));
  }
  BootstrapLimits limits;
  UniqueId id;
  std::unique_ptr<Served> root;
};

void join_all(const Meeting& meeting, int ranks, int rounds, std::size_t bytes) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      Bootstrap bootstrap(real_system(), meeting.id, {.rank = rank, .ranks = ranks}, meeting.limits);
      for (int round = 0; round < rounds; ++round) {
        bootstrap.exchange(blob_of(rank, round, bytes + static_cast<std::size_t>(rank)));
        const auto done = finish(bootstrap);
        ASSERT_TRUE(done) << done.error().text();
        ASSERT_EQ(bootstrap.gathered().size(), static_cast<std::size_t>(ranks));
        for (int other = 0; other < ranks; ++other)
          EXPECT_EQ(bootstrap.gathered()[static_cast<std::size_t>(other)],
                    blob_of(other, round, bytes + static_cast<std::size_t>(other)));
      }
    });
}

TEST(Bootstrap, EveryRankGetsEveryBlob) {
  for (const int ranks : {1, 2, 3, 8}) {
    Meeting meeting;
    join_all(meeting, ranks, 3, 100);
    meeting.root->await_end();
  }
}

TEST(Bootstrap, LargestAndEmptyBlobs) {
  Meeting meeting({.blob_bytes_max = 300'000});
  join_all(meeting, 4, 2, 300'000 - 4);
  meeting.root->await_end();
  Meeting small;
  join_all(small, 4, 2, 0);
  small.root->await_end();
}

/// The ranks `first` to `last` of `ranks`, driven by this thread through one exchange. "", or what went wrong.
std::string run_ranks(const UniqueId& id, const BootstrapLimits& limits, int first, int last, int ranks) {
  std::vector<std::unique_ptr<Bootstrap>> all;
  for (int rank = first; rank <= last; ++rank) {
    all.push_back(std::make_unique<Bootstrap>(real_system(), id, Bootstrap::Who{.rank = rank, .ranks = ranks}, limits));
    all.back()->exchange(blob_of(rank, 0, 10));
  }
  for (bool complete = false; !complete;) {
    complete = true;
    std::vector<PollItem> items;
    std::int64_t until = real_system().now_ns() + s;
    for (auto& one : all) {
      const auto done = one->advance();
      if (!done) return done.error().text();
      complete &= *done;
      if (!*done) until = std::min(until, one->poll_set(items));
    }
    if (!complete) real_system().poll(items, std::max<std::int64_t>(until - real_system().now_ns(), 0));
  }
  for (auto& one : all)
    for (int rank = 0; rank < ranks; ++rank)
      if (one->gathered()[static_cast<std::size_t>(rank)] != blob_of(rank, 0, 10)) return "another blob than was sent";
  return "";
}

TEST(Bootstrap, OneThreadDrivesSeveralRanks) {
  Meeting meeting;
  EXPECT_EQ(run_ranks(meeting.id, meeting.limits, 0, 15, 16), "");
}

/// Threads and processes: eight processes of two threads with sixteen ranks each.
TEST(Bootstrap, ManyRanksTakeFewSocketsAtTheRoot) {
  const auto secret = fresh_secret();
  std::string note;
  auto root = BootstrapRoot::open(real_system(), {.host = "127.0.0.1"}, *secret, {},
                                  {.info = [&note](const std::string& text) { note = text; }});
  ASSERT_TRUE(root) << root.error().text();
  const UniqueId id{.root = (*root)->address(), .secret = *secret};
  std::vector<pid_t> processes;
  for (int process = 0; process < 8; ++process) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid > 0) {
      processes.push_back(pid);
      continue;
    }
    std::array<std::string, 2> wrong;
    {
      std::jthread other([&] { wrong[0] = run_ranks(id, {}, process * 32, process * 32 + 15, 256); });
      wrong[1] = run_ranks(id, {}, process * 32 + 16, process * 32 + 31, 256);
    }
    for (const auto& text : wrong)
      if (!text.empty()) std::fprintf(stderr, "%s\n", text.c_str());
    ::_exit(wrong[0].empty() && wrong[1].empty() ? 0 : 1);
  }
  Served(*std::move(root)).await_end();
  for (const pid_t pid : processes) {
    int status = -1;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  int ranks = 0, depth = 0, widest = 0, sockets = 0;
  EXPECT_EQ(std::sscanf(note.c_str(),
                        "init: %d ranks met in a tree of depth %d, at most %d below each; the root had at most %d",
                        &ranks, &depth, &widest, &sockets),
            4)
      << note;
  EXPECT_EQ(ranks, 256);
  EXPECT_GE(depth, 2) << "more than a star";
  EXPECT_LT(sockets, 256) << "fewer than one for each rank";
}

/// A connection that says something to the root, or nothing.
Socket call(const Meeting& meeting, const std::string& words) {
  auto socket = real_system().connect(meeting.id.root);
  if (!socket) return {};
  PollItem item{.handle = socket->handle(), .want_write = true};
  real_system().poll({&item, 1}, 10 * s);
  (void)real_system().send(*socket, std::as_bytes(std::span(words)));
  return *std::move(socket);
}

TEST(Bootstrap, StartsAmongGarbageScannersAndSlowCallers) {
  Meeting meeting;
  std::vector<Socket> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(call(meeting, i % 2 == 0 ? "" : "tt"));
  std::vector<std::jthread> strangers;
  for (unsigned seed = 1; seed <= 3; ++seed)
    strangers.emplace_back([&meeting, seed](std::stop_token stop) {
      std::mt19937 random(seed);
      for (int i = 0; i < 300 && !stop.stop_requested(); ++i) {
        std::string words(random() % 300, '\0');
        for (char& c : words) c = static_cast<char>(random());
        if (i % 3 == 0) words = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        if (i % 3 == 1) words = "ttihello" + words;
        (void)call(meeting, words);
      }
    });
  join_all(meeting, 4, 3, 1000);
}

TEST(Bootstrap, ARootMayBeLate) {
  // A port that was free a moment ago, on a loopback address of this process alone.
  const std::string own =
      "127." + std::to_string(::getpid() / 256 % 256) + "." + std::to_string(::getpid() % 256) + ".9";
  const SocketAddress at = *real_system().address(*real_system().listen({.host = own}));
  const auto secret = fresh_secret();
  Bootstrap early(real_system(), {.root = at, .secret = *secret}, {.rank = 0, .ranks = 1}, {});
  early.exchange(blob_of(0, 0, 5));
  std::vector<PollItem> items;
  do {
    ASSERT_TRUE(early.advance());
    items.clear();
    const std::int64_t until = early.poll_set(items);
    real_system().poll(items, std::max<std::int64_t>(until - real_system().now_ns(), 0));
  } while (!items.empty());  // until it was refused and waits to try again
  auto opened = BootstrapRoot::open(real_system(), at, *secret, {});
  ASSERT_TRUE(opened) << opened.error().text();
  Served root(*std::move(opened));
  const auto done = finish(early);
  EXPECT_TRUE(done) << done.error().text();
}

TEST(Bootstrap, AnotherSecretIsToldApartAtOnce) {
  Meeting meeting;
  UniqueId other = meeting.id;
  other.secret[0] ^= std::byte{1};
  Bootstrap stranger(real_system(), other, {.rank = 0, .ranks = 2}, meeting.limits);
  stranger.exchange({});
  const auto done = finish(stranger);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::invalid_usage);
  EXPECT_NE(done.error().what.find("another unique id"), std::string::npos) << done.error().text();
}

/// Each rank's error text, from ranks that claim to be `claimed` of `ranks`.
std::vector<std::string> errors_of(const Meeting& meeting, const std::vector<int>& claimed, int ranks) {
  std::vector<std::string> texts(claimed.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < claimed.size(); ++i)
    threads.emplace_back([&, i] {
      Bootstrap one(real_system(), meeting.id,
                    {.rank = claimed[i], .ranks = ranks, .process = "pid " + std::to_string(i)}, meeting.limits);
      one.exchange({});
      const auto done = finish(one);
      texts[i] = done ? "" : done.error().text();
    });
  threads.clear();
  return texts;
}

TEST(Bootstrap, MissingRanksAreNamed) {
  Meeting meeting({.init_ms = 1'000});
  for (const auto& text : errors_of(meeting, {0, 2}, 4)) {
    EXPECT_NE(text.find("missing 1 (never seen)"), std::string::npos) << text;
    EXPECT_NE(text.find("3 (never seen)"), std::string::npos) << text;
  }
}

TEST(Bootstrap, TwoOfOneRankAreNamedToAll) {
  Meeting meeting;
  for (const auto& text : errors_of(meeting, {0, 1, 1}, 3))
    EXPECT_NE(text.find("rank 1 is claimed by two processes: pid "), std::string::npos) << text;
}

TEST(Bootstrap, ARankThatLeavesIsNamedToThoseWhoWait) {
  Meeting meeting;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      Bootstrap one(real_system(), meeting.id, {.rank = rank, .ranks = 3}, meeting.limits);
      one.exchange(blob_of(rank, 0, 5));
      ASSERT_TRUE(finish(one));
      if (rank == 1) return;
      one.exchange(blob_of(rank, 1, 5));
      const auto done = finish(one);
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, Code::remote);
      EXPECT_EQ(done.error().peer, 1) << done.error().text();
      EXPECT_NE(done.error().what.find("it left"), std::string::npos) << done.error().text();
      EXPECT_EQ(done.error().text(), one.advance().error().text()) << "the same for ever";
    });
  threads.clear();
}

/// Between exchanges too, where nobody has spoken yet; whether they hang below the root or below another rank.
TEST(Bootstrap, TroubleBetweenExchangesIsToldToAllWhoLook) {
  Meeting meeting({.fan_out = 2});
  constexpr int ranks = 5;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      Bootstrap one(real_system(), meeting.id, {.rank = rank, .ranks = ranks}, meeting.limits);
      one.exchange(blob_of(rank, 0, 5));
      ASSERT_TRUE(finish(one));
      if (rank == 3) one.fail({.code = Code::timeout, .what = "rank 3 could not join: no way", .peer = 1});
      Result<void> well = one.look();
      for (; well; well = one.look()) real_system().yield();
      EXPECT_EQ(well.error().code, Code::timeout) << well.error().text();
      EXPECT_EQ(well.error().what, "rank 3 could not join: no way");
      EXPECT_EQ(one.advance().error().text(), well.error().text());
    });
  threads.clear();
}

TEST(Bootstrap, ABadAddressIsRefusedAtOnce) {
  Bootstrap one(real_system(), {.root = {.host = "nowhere.example", .port = 1}, .secret = {}}, {.rank = 0, .ranks = 1},
                {});
  one.exchange({});
  EXPECT_EQ(finish(one).error().code, Code::invalid_argument);
}

}  // namespace
}  // namespace tutti
