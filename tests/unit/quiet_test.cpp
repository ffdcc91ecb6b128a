// What is given back to the driver waits until nothing is under way that waits for other ranks.
#include "cuda/quiet.h"

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tutti::cuda {
namespace {

TEST(Quiet, GivesBackAtOnceWhereNothingIsUnderWay) {
  Quiet quiet;
  const Quiet::Watch watch(quiet, [] { return true; });
  bool given = false;
  quiet.give_back([&] { given = true; });
  EXPECT_TRUE(given);
}

TEST(Quiet, WaitsForWorkThatIsUnderWay) {
  Quiet quiet;
  bool idle = false;
  std::optional<Quiet::Watch> watch(std::in_place, quiet, [&] { return idle; });
  int given = 0;
  quiet.give_back([&] { ++given; });
  quiet.try_all();
  EXPECT_EQ(given, 0);
  idle = true;
  quiet.try_all();
  quiet.try_all();
  EXPECT_EQ(given, 1);
  idle = false;
  quiet.give_back([&] { ++given; });
  EXPECT_EQ(given, 1);
  watch.reset();  // whose work is not there any more
  EXPECT_EQ(given, 2);
}

/// A thread asks while another is about to find that it is not quiet yet, and nobody asks afterwards.
TEST(Quiet, IsLookedAtAgainForWhoCameMeanwhile) {
  Quiet quiet;
  bool idle = false;
  const Quiet::Watch watch(quiet, [&] {
    if (idle) return true;
    std::thread([&] {
      idle = true;
      quiet.try_all();
    }).join();
    return false;
  });
  int given = 0;
  quiet.give_back([&] { ++given; });
  EXPECT_EQ(given, 1);
}

TEST(Quiet, WaitsForAThreadThatQueues) {
  Quiet quiet;
  int given = 0;
  {
    const Quiet::Queueing outer(quiet);
    {
      const Quiet::Queueing inner(quiet);
      quiet.give_back([&] { ++given; });
    }
    quiet.try_all();
    EXPECT_EQ(given, 0);
  }
  quiet.try_all();
  EXPECT_EQ(given, 1);
}

/// What is given back may hold other things that are.
TEST(Quiet, GivesBackWhatIsPartOfIt) {
  Quiet quiet;
  int given = 0;
  {
    const Quiet::Queueing queueing(quiet);
    quiet.give_back([&] {
      const Quiet::Queueing nested(quiet);
      quiet.give_back([&] { ++given; });
    });
    auto held = std::shared_ptr<int>(new int, [&](int* gone) {
      quiet.give_back([&given] { ++given; });
      delete gone;
    });
    quiet.give_back([gone = std::move(held)] {});
  }
  quiet.try_all();
  EXPECT_EQ(given, 2);
}

/// Threads that launch, each of which has something to give back, beside one that looks as the driver thread does.
TEST(Quiet, NothingIsGivenBackBesideALaunch) {
  constexpr int launches = 2000, threads = 3;
  Quiet quiet;
  std::atomic<int> under_way = 0, given = 0, beside = 0, left = threads;
  const Quiet::Watch watch(quiet, [&] { return under_way.load() == 0; });
  const auto look = [&] {
    beside += under_way.load() != 0 ? 1 : 0;
    ++given;
  };
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i)
    all.emplace_back([&] {
      for (int launch = 0; launch < launches; ++launch) {
        {
          const Quiet::Queueing queueing(quiet);
          ++under_way;
          quiet.give_back(look);
        }
        --under_way;
      }
      --left;
    });
  while (left.load() > 0) {
    quiet.try_all();
    std::this_thread::yield();
  }
  for (std::thread& one : all) one.join();
  quiet.try_all();
  EXPECT_EQ(given.load(), threads * launches);
  EXPECT_EQ(beside.load(), 0);
}

}  // namespace
}  // namespace tutti::cuda
