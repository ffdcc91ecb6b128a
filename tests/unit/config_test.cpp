// Every setting parses, is bounded, knows where it came from, and stands in docs/settings.md.
#include "base/config.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

namespace tutti {
namespace {

using Files = std::map<std::string, std::string>;

Result<Config> load(const std::vector<std::string>& environment, const Files& files = {}) {
  return Config::load(environment, [&](const std::string& path) -> Result<std::string> {
    const auto at = files.find(path);
    if (at == files.end()) return Error{.code = Code::system, .what = "open " + path, .sys_errno = ENOENT};
    return at->second;
  });
}

void expect_refused(const std::string& entry, const std::string& words) {
  const auto config = load({entry});
  ASSERT_FALSE(config) << entry;
  EXPECT_EQ(config.error().code, Code::invalid_argument);
  EXPECT_NE(config.error().what.find(words), std::string::npos) << config.error().what;
  EXPECT_NE(config.error().what.find("environment"), std::string::npos) << config.error().what;
}

TEST(Settings, TableIsWellFormed) {
  std::set<std::string_view> names;
  for (const Setting& setting : settings()) {
    EXPECT_TRUE(setting.name.starts_with("TUTTI_"));
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
    EXPECT_FALSE(setting.help.empty());
    EXPECT_EQ(setting.help.find('|'), std::string_view::npos) << "breaks the table: " << setting.name;
    EXPECT_LE(setting.min, setting.max);
    EXPECT_TRUE(setting.kind != SettingKind::secret || setting.scope == Scope::local);
  }
}

TEST(Settings, PageIsTheTable) {
  const std::string path = std::string(TUTTI_SOURCE_DIR) + "/docs/settings.md";
  if (std::getenv("TUTTI_TEST_WRITE") != nullptr) std::ofstream(path) << settings_page();
  std::ifstream file(path);
  const std::string page(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(page, settings_page()) << "after a change of the table run this test with TUTTI_TEST_WRITE=1";
}

/// By these a rank whose settings are refused tells the others.
TEST(Config, WhatIsGoodCanBeHadWithoutTheRest) {
  const std::vector<std::string> environment = {"TUTTI_NCHANNELS=many", "TUTTI_RANK=2", "TUTTI_CONF_FILE=/none"};
  ASSERT_FALSE(load(environment));
  const auto none = [](const std::string& path) {
    return Error{.code = Code::system, .what = "open " + path, .sys_errno = ENOENT};
  };
  const Config good = Config::load_good(environment, none);
  EXPECT_EQ(good.integer("TUTTI_RANK"), 2);
  EXPECT_EQ(good.origin("TUTTI_NCHANNELS"), "default");
}

TEST(Config, ValuesHaveALimit) {
  const std::string longest = "TUTTI_ALGO=" + std::string(16384, 'x');
  EXPECT_TRUE(load({longest}));
  expect_refused(longest + "x", "TUTTI_ALGO (environment): the value has 16385 bytes, at most 16384 are allowed");
  const auto refused = load({"TUTTI_RANK=" + std::string(9000, 'x')});
  ASSERT_FALSE(refused);
  EXPECT_LT(refused.error().what.size(), 400u) << "nobody reads all of that";
}

TEST(Config, DefaultsAreInTheirOwnSpelling) {
  const auto config = load({});
  ASSERT_TRUE(config);
  for (const Setting& setting : settings()) {
    EXPECT_EQ(config->text(setting.name), setting.default_value);
    EXPECT_EQ(config->origin(setting.name), "default");
  }
  EXPECT_EQ(config->shared_text(), "");
  EXPECT_TRUE(config->set_by_user().empty());
  EXPECT_TRUE(config->warnings().empty());
}

TEST(Config, EnvironmentBeatsOwnFileBeatsSystemFile) {
  const Files files{{"/etc/tutti.conf", "# all\nTUTTI_RANK=1\n TUTTI_NRANKS = 8 \nTUTTI_SPIN_US=1\n"},
                    {"/home/x/.tutti.conf", "TUTTI_SPIN_US=2\r\nTUTTI_RANK=2"},
                    {"/other.conf", "\n\nTUTTI_RANK=5"}};
  auto config = load({"HOME=/home/x", "TUTTI_RANK=3"}, files);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->integer("TUTTI_RANK"), 3);
  EXPECT_EQ(config->origin("TUTTI_RANK"), "environment");
  EXPECT_EQ(config->integer("TUTTI_SPIN_US"), 2);
  EXPECT_EQ(config->origin("TUTTI_SPIN_US"), "/home/x/.tutti.conf:1");
  EXPECT_EQ(config->integer("TUTTI_NRANKS"), 8);
  EXPECT_EQ(config->origin("TUTTI_NRANKS"), "/etc/tutti.conf:3");

  config = load({"HOME=/home/x", "TUTTI_CONF_FILE=/other.conf"}, files);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->integer("TUTTI_RANK"), 5);
  EXPECT_EQ(config->origin("TUTTI_RANK"), "/other.conf:3");
  EXPECT_EQ(config->integer("TUTTI_SPIN_US"), 1);
}

TEST(Config, FilesAreChecked) {
  for (const auto& [text, words] :
       {std::pair{"# fine\nTUTTI_RANK", "/c:2: expected NAME=VALUE"}, std::pair{"=3", "/c:1: expected NAME=VALUE"},
        std::pair{"TUTTI_RANK=x", "TUTTI_RANK=x (/c:1): must be a whole number"},
        std::pair{"TUTTI_CONF_FILE=/d", "/c:1: a settings file cannot name another"}}) {
    const auto config = load({"TUTTI_CONF_FILE=/c"}, {{"/c", text}});
    ASSERT_FALSE(config) << text;
    EXPECT_NE(config.error().what.find(words), std::string::npos) << config.error().what;
  }
  EXPECT_NE(load({"TUTTI_CONF_FILE=/none"}).error().what.find("/none"), std::string::npos);
}

TEST(Config, ChoicesInAnyCase) {
  const auto config = load({"TUTTI_DEBUG=info", "TUTTI_TRANSPORT=SLOTS"});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->text("TUTTI_DEBUG"), "INFO");
  EXPECT_EQ(config->integer("TUTTI_DEBUG"), 3);
  EXPECT_EQ(config->text("TUTTI_TRANSPORT"), "slots");
  expect_refused("TUTTI_DEBUG=LOUD", "one of NONE|VERSION|WARN|INFO|TRACE");
  expect_refused("TUTTI_DEBUG=INF", "one of");
}

TEST(Config, NumbersAndTheirBounds) {
  for (const auto& [text, bytes] : {std::pair{"65536", 65536}, std::pair{"64k", 65536}, std::pair{"1M", 1 << 20},
                                    std::pair{"4096", 4096}, std::pair{"5000", 5000}}) {
    const auto config = load({std::string("TUTTI_BUFFSIZE=") + text});
    ASSERT_TRUE(config) << text;
    EXPECT_EQ(config->integer("TUTTI_BUFFSIZE"), bytes);
  }
  for (const std::string bad :
       {"4095", "5M", "1T", "K", "-4K", "64 K", "9999999999999G", "99999999999999999999", "0x1000"})
    expect_refused("TUTTI_BUFFSIZE=" + bad, "TUTTI_BUFFSIZE=" + bad + " (environment): must be 4096 to 4194304 bytes");
  for (const std::string bad : {"0", "8", "2K", "two", "1.5"}) expect_refused("TUTTI_NCHANNELS=" + bad, "from 1 to 7");
}

TEST(Config, AnEmptyValueIsNone) {
  const auto config = load({"TUTTI_DEBUG=", "TUTTI_CONF_FILE=", "TUTTI_RANK=  "});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->origin("TUTTI_DEBUG"), "default");
}

TEST(Config, UnknownNamesAreWarnedOf) {
  const auto config = load({"TUTTI_DEBIG=INFO", "TUTTI_SOMETHING_ELSE=1", "TUTTI_TEST_SEED=4", "OTHER=1"});
  ASSERT_TRUE(config);
  ASSERT_EQ(config->warnings().size(), 2u);
  EXPECT_EQ(config->warnings()[0], "unknown setting TUTTI_DEBIG (environment): did you mean TUTTI_DEBUG?");
  EXPECT_EQ(config->warnings()[1], "unknown setting TUTTI_SOMETHING_ELSE (environment)");
}

TEST(Config, SharedIsWhatRanksMustAgreeOn) {
  const auto plain = load({});
  const auto local = load({"TUTTI_DEBUG=INFO", "TUTTI_SPIN_US=3"});
  const auto spelled = load({"TUTTI_BUFFSIZE=262144", "TUTTI_ALGO=ring"});
  const auto same = load({"TUTTI_ALGO=ring", "TUTTI_BUFFSIZE=256k"});
  EXPECT_EQ(plain->shared_hash(), local->shared_hash());
  EXPECT_EQ(local->shared_text(), "");
  EXPECT_EQ(spelled->shared_hash(), same->shared_hash());
  EXPECT_NE(spelled->shared_hash(), plain->shared_hash());
  EXPECT_EQ(spelled->shared_text(), "TUTTI_ALGO=ring TUTTI_BUFFSIZE=256K");
}

TEST(Config, SecretsAreNeverShown) {
  const auto config = load({"TUTTI_COMM_SECRET=swordfish-swordfish", "TUTTI_RANK=2"});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->text("TUTTI_COMM_SECRET"), "swordfish-swordfish");
  EXPECT_EQ(config->set_by_user(),
            (std::vector<std::string>{"TUTTI_COMM_SECRET=(hidden) (environment)", "TUTTI_RANK=2 (environment)"}));
}

TEST(Config, ReadsThisProcess) {
  EXPECT_TRUE(Config::from_process());
}

}  // namespace
}  // namespace tutti
