// Threads of the library that are put somewhere, by a kernel that is not there.
#include "process/places.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <initializer_list>
#include <iterator>

#include "support/folder.h"

namespace tutti {
namespace {

CpuSet cpus(std::initializer_list<int> list) {
  return cpus_in(std::span(list.begin(), list.size()));
}

/// A machine of eight CPUs, each a core, of which nothing else is known.
class PlacesTest : public ::testing::Test {
 protected:
  using Kind = Places::Kind;

  Places::Calls calls() {
    const auto get = [this](pid_t) -> Result<CpuSet> { return now_; };
    const auto set = [this](pid_t, const CpuSet& wanted) -> Result<void> {
      ++moves_;
      if (refuses_) return Error{.code = Code::system, .what = "set a thread's CPUs", .sys_errno = EPERM};
      now_ = wanted & group_;
      return {};
    };
    return {.get = get, .set = set, .cpus = 8};
  }
  std::string lines() const {
    std::ifstream file(folder_ / "log");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Of a process with one rank.
  static Places::Claim beside(const CpuSet& own, std::vector<CpuSet> others) {
    others.push_back(own);
    return {.ranks = others, .own = {own}};
  }

  Folder folder_;
  Log log_{LogLevel::info, static_cast<unsigned>(LogTopic::topo), folder_ / "log"};
  CpuMap map_{folder_.path()};
  CpuSet group_ = cpus({0, 1, 2, 3, 4, 5, 6, 7});
  CpuSet now_ = group_;
  int moves_ = 0;
  bool refuses_ = false;
};

TEST_F(PlacesTest, OfARankThatIsNotBoundNoThreadIsTouched) {
  Places places(map_, log_, true, calls());
  const Places::Thread service(places, Kind::service), stream(places, Kind::stream);
  const auto held = places.claim(beside(group_, {cpus({0}), cpus({1})}));
  EXPECT_EQ(moves_, 0);
}

TEST_F(PlacesTest, TheServiceThreadLeavesTheCoresOfRanksWhenACommunicatorStarts) {
  now_ = cpus({0});
  Places places(map_, log_, true, calls());
  const Places::Thread service(places, Kind::service);
  EXPECT_EQ(text_of(now_), "0") << "nothing is known of the ranks yet";
  const auto held = places.claim(beside(cpus({0}), {cpus({1}), cpus({2})}));
  EXPECT_EQ(text_of(now_), "3-7");
  EXPECT_NE(lines().find("the service thread runs on CPUs 3-7"), std::string::npos) << lines();

  const int before = moves_;
  const auto same = places.claim(beside(cpus({0}), {cpus({1})}));
  EXPECT_EQ(moves_, before) << "the first communicator counts too";
}

TEST_F(PlacesTest, ACommunicatorCountsAsLongAsItLives) {
  now_ = cpus({0});
  Places places(map_, log_, true, calls());
  const Places::Thread service(places, Kind::service);
  auto first = places.claim(beside(cpus({0}), {cpus({1}), cpus({2})}));
  first.reset();
  const auto second = places.claim(beside(cpus({0}), {cpus({7})}));
  EXPECT_EQ(text_of(now_), "1-6");
}

TEST_F(PlacesTest, TheServiceThreadServesRanksThatAreBoundWhoeverStartedIt) {
  Places places(map_, log_, true, calls());
  const Places::Thread service(places, Kind::service);
  const auto held = places.claim({.ranks = {cpus({0}), cpus({1}), cpus({2})}, .own = {cpus({0}), cpus({1})}});
  EXPECT_EQ(text_of(now_), "3-7");
}

TEST_F(PlacesTest, AThreadThatStartsLaterIsPlacedAtOnce) {
  now_ = cpus({0});
  Places places(map_, log_, true, calls());
  const auto held = places.claim(beside(cpus({0}), {cpus({1})}));
  {
    const Places::Thread stream(places, Kind::stream);
    EXPECT_EQ(text_of(now_), "2-7");
  }
  const int before = moves_;
  const auto later = places.claim(beside(cpus({0}), {cpus({2})}));
  EXPECT_EQ(moves_, before) << "it has ended";
}

TEST_F(PlacesTest, WhereEveryCoreHasARankThreadsStayAndProxiesRoam) {
  group_ = cpus({2, 3});
  const std::vector<CpuSet> others = {cpus({3})};
  for (const Kind kind : {Kind::service, Kind::stream, Kind::proxy}) {
    now_ = cpus({2});
    Places places(map_, log_, true, calls());
    const auto held = places.claim(beside(cpus({2}), others));
    const Places::Thread thread(places, kind);
    EXPECT_EQ(text_of(now_), kind == Kind::proxy ? "2-3" : "2");
  }
  EXPECT_NE(lines().find("a rank is bound to each core"), std::string::npos) << lines();
}

TEST_F(PlacesTest, AControlGroupIsAllThatThereIs) {
  now_ = group_ = cpus({2, 3});
  Places places(map_, log_, true, calls());
  const Places::Thread service(places, Kind::service);
  const auto held = places.claim(beside(group_, {cpus({2})}));
  EXPECT_EQ(text_of(now_), "2-3") << "its rank has all CPUs of the group: it is not bound";
}

TEST_F(PlacesTest, AKernelThatRefusesLeavesAllAsItIs) {
  now_ = cpus({0});
  refuses_ = true;
  Places places(map_, log_, true, calls());
  const Places::Thread service(places, Kind::service);
  const auto first = places.claim(beside(cpus({0}), {}));
  const auto second = places.claim(beside(cpus({0}), {}));
  EXPECT_EQ(text_of(now_), "0");
  const std::string text = lines();
  EXPECT_NE(text.find("errno 1"), std::string::npos) << text;
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
}

TEST_F(PlacesTest, SwitchedOffOnlyAProxyLeavesTheOneCoreOfItsRank) {
  for (const Kind kind : {Kind::service, Kind::stream, Kind::proxy}) {
    now_ = cpus({0});
    Places places(map_, log_, false, calls());
    const auto held = places.claim(beside(cpus({0}), {}));
    const Places::Thread thread(places, kind);
    EXPECT_EQ(text_of(now_), kind == Kind::proxy ? text_of(group_) : "0");
    EXPECT_EQ(places.memory_node(1), -1);
  }
}

TEST_F(PlacesTest, SaysOnceWhereMemoryLies) {
  Places places(map_, log_, true, calls());
  places.tell_memory(-1, 0);
  EXPECT_EQ(lines(), "");
  for (int again = 0; again < 2; ++again) places.tell_memory(1, 0);
  for (int again = 0; again < 2; ++again) places.tell_memory(1, EPERM);
  const std::string text = lines();
  EXPECT_NE(text.find("memory lies on NUMA node 1"), std::string::npos) << text;
  EXPECT_EQ(std::ranges::count(text, '\n'), 2) << text;
}

}  // namespace
}  // namespace tutti
