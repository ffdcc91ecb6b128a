// Which descriptions of synthetic machines access hwloc, and what is said of the others.
#include "topology/sources/hwloc_library.h"

#include <gtest/gtest.h>

#include <string>

#include "support/has_hwloc.h"
#include "topology/sources/hwloc_source.h"

namespace tutti::topology {
namespace {

class HwlocSynthetic : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::has_hwloc()) GTEST_SKIP() << "libhwloc is not installed (Debian: libhwloc15)";
  }
};

TEST_F(HwlocSynthetic, HwlocTakesWhatIsTaken) {
  for (const char* text :
       {"pack:2 numa:1 core:4 pu:2", "pack:2 [numa(memory=1GB)] l3:2 l2:4 core:1 pu:2", "4 2 2", "pu:3", "7",
        "numa:2(indexes=1,0) core:2 pu:2(indexes=2*4:1*2)", "core:2 pu:2(indexes=pu:core)", "core:2 2(indexes=core:pu)",
        "[NUMANode(memory=270369247232)] Package:2 L3Cache:1(size=20971520) L2d:4 Core:1 PU:2(indexes=0,1,2,3)",
        "(memory=1GB) Socket:2 die:2 group:2 [numa] [numa(memory=4096kB)]core:1 pu:1"}) {
    const auto checked = check_synthetic(*HwlocLibrary::load(), text);
    EXPECT_TRUE(checked) << text << ": " << (checked ? "" : checked.error().what);
    EXPECT_TRUE(read_synthetic(text)) << text;
  }
}

struct Refused {
  const char* text;
  int character;
  const char* why;
};

TEST_F(HwlocSynthetic, WhatIsRefusedIsSaidWhere) {
  for (const auto& [text, character, why] : {
           // hwloc 2.9 loses the node in brackets.
           Refused{"pack:2 [numa] core:2", 15, "must be one of CPUs"},
           {"pack:2 [numa] numa:2 pu:2", 8, "both as a level and in brackets"},
           {"[numa] core:2 core:2 pu:2", 8, "one such level alone"},
           {"pu:2 [numa] pu:1", 1, "one such level alone"},
           {"[numa] pack:2 3 pu:2", 17, "with and without a kind"},
           {"[numa]", 7, "no CPUs"},
           // It aborts, or reads levels that are not there.
           {"core:2(indexes=pu) pu:2", 16, "is below"},
           {"core:2 pu:2(indexes=core:l3)", 26, "not named"},
           {"group:2 group:2 pu:2(indexes=group2)", 30, "not named"},
           {"memcache:2 pu:2", 1, "no kind of object that has CPUs"},
           {"pu:2(indexes=1*65536:1*65536:1*65536:1*65536)", 22, "no loop"},
           // It allocates what it is told.
           {"pu:2(indexes=4000000000,1)", 14, "no index"},
           {"4096 4096", 6, "more than 65536 objects"},
           {"4096 16 [numa] [numa] pu:1", 16, "more than 65536 NUMA nodes"},
           {"pu:4097", 4, "no number of 1 … 4096"},
           // It guesses.
           {"pu:010", 4, "no number"},
           {"pu:0x10", 4, "no number"},
           {"pu:2x10", 5, "neither a space"},
           {"pu", 3, "no number of objects"},
           {"cores:x", 1, "no kind"},
           {"[core] pu:2", 1, "no NUMA node"},
           {"[numa pu:2", 1, "not closed"},
           {"[numa(memory=1GB) pu:2", 1, "not closed"},
           {"pu:2(memory=)", 6, "amount of memory"},
           {"pu:2(memory=1XB)", 6, "amount of memory"},
           {"l2:1(memory=1GB) pu:2", 6, "not an attribute"},
           {"pu:2(indexes=0,,1)", 16, "no index"},
           {"pu:2(indexes=2*)", 14, "no loop"},
           {"pu:2(indexes=", 6, "no indexes"},
           {"pu:2(memory", 5, "not closed"},
       }) {
    const auto checked = check_synthetic(*HwlocLibrary::load(), text);
    ASSERT_FALSE(checked) << text;
    EXPECT_EQ(checked.error().code, Code::invalid_argument);
    const std::string& words = checked.error().what;
    EXPECT_NE(words.find(": character " + std::to_string(character) + ": "), std::string::npos) << words;
    EXPECT_NE(words.find(why), std::string::npos) << words;
    EXPECT_FALSE(read_synthetic(text)) << text;
  }
  EXPECT_FALSE(check_synthetic(*HwlocLibrary::load(), ""));
  EXPECT_FALSE(check_synthetic(*HwlocLibrary::load(), std::string(1025, ' ')));
}

}  // namespace
}  // namespace tutti::topology
