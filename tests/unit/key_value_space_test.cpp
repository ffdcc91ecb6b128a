// The launcher's key-value space: what PMI-1 and PMI-2 say, and what happens when the other end says something else.
#include "launch/key_value_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "support/fake_pmi.h"

#if __has_include(<pmix.h>)
#include <pmix.h>

#include "launch/pmix_abi.h"
#endif

namespace tutti {
namespace {

using testing::FakePmi;
using testing::ScriptedPmi;
using Opened = Result<std::shared_ptr<KeyValueSpace>>;

constexpr std::int64_t s = 1'000'000'000;

std::int64_t in(std::int64_t ns) {
  return real_system().now_ns() + ns;
}

LaunchInfo launch(int rank, int ranks, int fd) {
  return {.rank = rank, .ranks = ranks, .pmi_fd = fd, .pmi_job = "7.0"};
}

class Pmi : public ::testing::TestWithParam<FakePmi::Speaks> {
 protected:
  bool is1() const { return GetParam() == FakePmi::Speaks::pmi1; }
  Opened open(const LaunchInfo& info, std::int64_t limit_ns = 60 * s) const {
    return is1() ? open_pmi1(real_system(), info, in(limit_ns)) : open_pmi2(real_system(), info, in(limit_ns));
  }
  /// An answer as the protocol frames it.
  std::string framed(const std::string& words) const {
    if (is1()) return words + "\n";
    std::string length = std::to_string(words.size());
    length.resize(6, ' ');
    return length + words;
  }
  std::string hello() const {
    return is1() ? "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
                 : "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n";
  }
};

TEST_P(Pmi, RanksHearWhatOneOfThemPut) {
  constexpr int ranks = 3;
  FakePmi launcher(GetParam(), ranks);
  std::vector<std::string> heard(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      auto space = open(launch(rank, ranks, launcher.fd(rank)));
      ASSERT_TRUE(space) << space.error().text();
      for (const auto& key : {"tutti-0", "tutti-1"}) {
        if (rank == 0) {
          auto put = (*space)->put(key, std::string("value-of-") + key + std::string(500, 'x'), in(60 * s));
          ASSERT_TRUE(put) << put.error().text();
        }
        auto met = (*space)->fence(in(60 * s));
        ASSERT_TRUE(met) << met.error().text();
        auto value = (*space)->get(0, key, in(60 * s));
        ASSERT_TRUE(value) << value.error().text();
        heard[static_cast<std::size_t>(rank)] += value->substr(0, 16) + " ";
      }
    });
  for (auto& thread : threads) thread.join();
  for (const auto& one : heard) EXPECT_EQ(one, "value-of-tutti-0 value-of-tutti-1 ");
  EXPECT_EQ(launcher.finalized(), ranks);
}

TEST_P(Pmi, WhatNobodyPutIsAnError) {
  FakePmi launcher(GetParam(), 1);
  auto space = open(launch(0, 1, launcher.fd(0)));
  ASSERT_TRUE(space) << space.error().text();
  auto value = (*space)->get(0, "no-such", in(60 * s));
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, Code::remote);
}

/// A launcher that never lets the ranks go on: the others did not start.
TEST_P(Pmi, AFenceThatNeverEndsIsATimeout) {
  FakePmi launcher(GetParam(), 2);
  auto space = open(launch(0, 2, launcher.fd(0)));
  ASSERT_TRUE(space) << space.error().text();
  auto met = (*space)->fence(in(s / 50));
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().code, Code::timeout) << met.error().text();
  auto after = (*space)->put("tutti-0", "x", in(60 * s));
  ASSERT_FALSE(after) << "the answer that is still to come must not be taken for another's";
  EXPECT_EQ(after.error().code, Code::timeout);
}

TEST_P(Pmi, SilenceIsATimeout) {
  ScriptedPmi launcher({}, /*close_at_end=*/false);
  auto space = open(launch(0, 1, launcher.fd()), s / 50);
  ASSERT_FALSE(space);
  EXPECT_EQ(space.error().code, Code::timeout) << space.error().text();
}

TEST_P(Pmi, AClosedEndIsNoticed) {
  ScriptedPmi launcher({hello()}, /*close_at_end=*/true);
  auto space = open(launch(0, 1, launcher.fd()));
  ASSERT_FALSE(space);
  EXPECT_TRUE(space.error().code == Code::remote || space.error().code == Code::system) << space.error().text();
}

TEST_P(Pmi, ADescriptorThatIsNotOpenIsNamed) {
  auto space = open(launch(0, 1, 987'654));
  ASSERT_FALSE(space);
  EXPECT_EQ(space.error().code, Code::invalid_usage);
  EXPECT_NE(space.error().what.find("PMI_FD=987654"), std::string::npos);
}

TEST_P(Pmi, NonsenseIsRefused) {
  const std::string endless(100'000, 'x');
  std::vector<std::string> beginnings = {
      "\n",
      "hello\n",
      "cmd=\n",
      "=x\n",
      "cmd=maxes\n",
      "cmd=response_to_init rc=1\n",
      "cmd=response_to_init rc=-1 pmi_version=7\n",
      endless,
      "cmd=response_to_init " + endless + "\n",
      std::string("\0\0\0\0\n", 5),
      is1() ? "cmd=response_to_init x\n" : "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n",
  };
  std::string many = "cmd=response_to_init";
  for (int i = 0; i < 100; ++i) many += " a=b";
  beginnings.push_back(many + "\n");
  for (const auto& beginning : beginnings) {
    ScriptedPmi launcher({beginning}, /*close_at_end=*/true);
    auto space = open(launch(0, 1, launcher.fd()));
    ASSERT_FALSE(space) << beginning.substr(0, 60);
    EXPECT_EQ(space.error().code, Code::remote) << space.error().text();
    EXPECT_LT(space.error().text().size(), 400u) << "an answer must not flood the log";
  }
}

TEST_P(Pmi, NonsenseLaterIsRefused) {
  const std::vector<std::string> bad = is1() ? std::vector<std::string>{"cmd=maxes vallen_max=9\n", "\n", "x=\n"}
                                             : std::vector<std::string>{framed("cmd=fullinit-response;rc=3;"),
                                                                        framed("cmd=kvs-put-response;rc=0;"),
                                                                        framed("cmd=fullinit-response;rank=1;size=9;"),
                                                                        "-1    cmd=x;",
                                                                        "999999cmd=x;",
                                                                        "12ab  cmd=x;",
                                                                        "      cmd=x;"};
  for (const auto& answer : bad) {
    ScriptedPmi launcher({hello(), answer}, /*close_at_end=*/true);
    auto space = open(launch(0, 1, launcher.fd()));
    ASSERT_FALSE(space) << answer;
    EXPECT_TRUE(space.error().code == Code::remote || space.error().code == Code::invalid_usage ||
                space.error().code == Code::system)
        << space.error().text();
  }
}

/// What a value holds may be a secret: it is in no message.
TEST_P(Pmi, ValuesAreNotShown) {
  const std::vector<std::string> begin =
      is1() ? std::vector<std::string>{hello(), "cmd=maxes vallen_max=1024\n", "cmd=my_kvsname kvsname=k\n"}
            : std::vector<std::string>{hello(), framed("cmd=fullinit-response;rc=0;rank=0;size=1;")};
  const char separator = is1() ? ' ' : ';';
  for (const std::string& answer :
       {std::string("cmd=other value=SECRET"), std::string("cmd=get_result rc=9 value=SECRET"),
        std::string("cmd=get_result rc=0 msg=a_longer_text SECRET")}) {
    std::string words = answer;
    std::ranges::replace(words, ' ', separator);
    auto answers = begin;
    answers.push_back(framed(words));
    ScriptedPmi launcher(answers, /*close_at_end=*/true);
    auto space = open(launch(0, 1, launcher.fd()));
    ASSERT_TRUE(space) << space.error().text();
    auto value = (*space)->get(0, "tutti-0", in(60 * s));
    ASSERT_FALSE(value);
    EXPECT_EQ(value.error().text().find("SECRET"), std::string::npos) << value.error().text();
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, Pmi, ::testing::Values(FakePmi::Speaks::pmi1, FakePmi::Speaks::pmi2),
                         [](const auto& version) { return version.param == FakePmi::Speaks::pmi1 ? "pmi1" : "pmi2"; });

TEST(LauncherSpace, IsOpenedOnceAndSaysGoodbye) {
  FakePmi launcher(FakePmi::Speaks::pmi1, 1);
  auto info = launch(0, 1, launcher.fd(0));
  info.space = SpaceKind::pmi1;
  LauncherSpace space;
  auto first = space.get(real_system(), info, in(60 * s));
  auto second = space.get(real_system(), info, in(60 * s));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->get(), second->get());
  *first = nullptr;
  *second = nullptr;
  EXPECT_EQ(launcher.finalized(), 0);
  space.leave();
  EXPECT_EQ(launcher.finalized(), 1);
}

TEST(LauncherSpace, MayBeNone) {
  LauncherSpace space;
  auto none = space.get(real_system(), LaunchInfo{}, in(s));
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

#if __has_include(<pmix.h>)
TEST(PmixAbi, IsThatOfTheHeaders) {
  EXPECT_EQ(sizeof(pmix::Process), sizeof(pmix_proc_t));
  EXPECT_EQ(offsetof(pmix::Process, rank), offsetof(pmix_proc_t, rank));
  EXPECT_EQ(sizeof(pmix::Value), sizeof(pmix_value_t));
  EXPECT_EQ(offsetof(pmix::Value, string), offsetof(pmix_value_t, data));
  EXPECT_EQ(sizeof(pmix::Info), sizeof(pmix_info_t));
  EXPECT_EQ(offsetof(pmix::Info, flags), offsetof(pmix_info_t, flags));
  EXPECT_EQ(offsetof(pmix::Info, value), offsetof(pmix_info_t, value));
  EXPECT_EQ(pmix::type_bool, PMIX_BOOL);
  EXPECT_EQ(pmix::type_string, PMIX_STRING);
  EXPECT_EQ(pmix::type_uint16, PMIX_UINT16);
  EXPECT_EQ(pmix::type_uint32, PMIX_UINT32);
  EXPECT_EQ(pmix::any_rank, PMIX_RANK_WILDCARD);
  EXPECT_EQ(pmix::success, PMIX_SUCCESS);
  EXPECT_EQ(pmix::done_at_once, PMIX_OPERATION_SUCCEEDED);
  EXPECT_EQ(pmix::scope_global, PMIX_GLOBAL);
  EXPECT_STREQ("pmix.job.size", PMIX_JOB_SIZE);
  EXPECT_STREQ("pmix.collect", PMIX_COLLECT_DATA);
  static_assert(std::is_same_v<pmix::Status, pmix_status_t>);
}
#endif

}  // namespace
}  // namespace tutti
