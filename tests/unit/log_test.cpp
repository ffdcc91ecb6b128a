// Lines say who, come whole, and only when asked for.
#include "base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/host.h"
#include "support/folder.h"

namespace tutti {
namespace {

constexpr unsigned all = static_cast<unsigned>(LogTopic::all);

class LogFile : public testing::Test {
 protected:
  std::vector<std::string> lines(const std::string& name) const {
    std::ifstream file(directory / name);
    std::vector<std::string> all_lines;
    for (std::string line; std::getline(file, line);) all_lines.push_back(line);
    return all_lines;
  }
  Folder folder;
  std::filesystem::path directory = folder.path();
};

TEST_F(LogFile, ALineSaysWhoAndWhen) {
  Log log(LogLevel::info, all, directory / "%h.%p.%%.log");
  log.info(LogTopic::init, "rank 2/8", "{} ranks", 8);
  const auto written = lines(host_name() + "." + std::to_string(::getpid()) + ".%.log");
  ASSERT_EQ(written.size(), 1u);
  // "node-b:12 12:04:07.113 tutti INFO rank 2/8: 8 ranks"
  EXPECT_TRUE(written[0].ends_with(" tutti INFO rank 2/8: 8 ranks")) << written[0];
  std::string time = written[0].substr(written[0].find(' ') + 1, 12);
  for (char& c : time) c = c >= '0' && c <= '9' ? '0' : c;
  EXPECT_EQ(time, "00:00:00.000") << written[0];
  EXPECT_TRUE(written[0].starts_with(host_name() + ":" + std::to_string(::getpid()) + " "));
}

TEST_F(LogFile, LevelsAndTopicsAreFiltered) {
  Log log(LogLevel::warn, static_cast<unsigned>(LogTopic::net), directory / "log");
  log.info(LogTopic::net, "x", "too low");
  log.warn("x", "1");
  EXPECT_FALSE(log.on(LogLevel::info, LogTopic::net));
  Log more(LogLevel::info, static_cast<unsigned>(LogTopic::net), directory / "log");
  more.info(LogTopic::init, "x", "another topic");
  more.info(LogTopic::net, "x", "2");
  more.warn("x", "3");
  const auto written = lines("log");
  ASSERT_EQ(written.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(written[i].ends_with(std::string("x: ") + char('1' + i)));
}

TEST_F(LogFile, NothingIsOpenedForNothing) {
  Log log(LogLevel::none, all, directory / "log");
  log.warn("x", "y");
  EXPECT_FALSE(std::filesystem::exists(directory / "log"));
}

TEST_F(LogFile, LinesOfManyThreadsDoNotMix) {
  Log one(LogLevel::info, all, directory / "log");
  Log two(LogLevel::info, all, directory / "log");
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        const std::string body(static_cast<std::size_t>(1000 + t), static_cast<char>('a' + t));
        for (int i = 0; i < 200; ++i) (t % 2 == 0 ? one : two).info(LogTopic::init, "x", "{}", body);
      });
  }
  const auto written = lines("log");
  EXPECT_EQ(written.size(), 800u);
  for (const auto& line : written) {
    const auto body = line.substr(line.rfind(' ') + 1);
    EXPECT_EQ(body, std::string(1000 + static_cast<std::size_t>(body[0] - 'a'), body[0]));
  }
}

TEST_F(LogFile, AFileThatCannotBeOpenedCostsOneWarning) {
  testing::internal::CaptureStderr();
  Log log(LogLevel::warn, all, directory / "none" / "log");
  log.warn("x", "hello");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("TUTTI_DEBUG_FILE"), std::string::npos) << text;
  EXPECT_NE(text.find("No such file"), std::string::npos) << text;
  EXPECT_NE(text.find("x: hello"), std::string::npos) << text;
}

TEST(Log, TopicsParse) {
  const auto bit = [](LogTopic topic) { return static_cast<unsigned>(topic); };
  EXPECT_EQ(*log_topics(""), bit(LogTopic::init) | bit(LogTopic::env));
  EXPECT_EQ(*log_topics("net,COLL"), bit(LogTopic::net) | bit(LogTopic::coll));
  EXPECT_EQ(*log_topics("^COLL"), ~bit(LogTopic::coll));
  EXPECT_EQ(*log_topics("ALL"), all);
  EXPECT_EQ(log_topics("INIT,NOISE").error().code, Code::invalid_argument);
}

TEST(Log, FollowsTheSettings) {
  const std::vector<std::string> environment{"TUTTI_DEBUG=info", "TUTTI_DEBUG_SUBSYS=NET"};
  const auto config = Config::load(environment, [](const std::string&) { return Error{.code = Code::system}; });
  ASSERT_TRUE(config);
  Log log(*config);
  EXPECT_TRUE(log.on(LogLevel::info, LogTopic::net));
  EXPECT_FALSE(log.on(LogLevel::info, LogTopic::init));
  EXPECT_FALSE(log.on(LogLevel::trace, LogTopic::net));
}

TEST(Log, BadTopicsCostOneWarning) {
  const std::vector<std::string> environment{"TUTTI_DEBUG_SUBSYS=NOISE"};
  const auto config = Config::load(environment, [](const std::string&) { return Error{.code = Code::system}; });
  ASSERT_TRUE(config);
  testing::internal::CaptureStderr();
  Log log(*config);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("NOISE"), std::string::npos) << text;
}

}  // namespace
}  // namespace tutti
