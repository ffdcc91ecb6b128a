// Patterns are the schedules they stand for.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "analysis/simulator/patterns.h"
#include "analysis/simulator/schedule_messages.h"
#include "support/schedule_counts.h"

namespace tutti::simulator {
namespace {

using testing::built;

std::map<std::tuple<int, Rank, Rank>, std::pair<double, double>> all_messages(MessageSource& source) {
  std::map<std::tuple<int, Rank, Rank>, std::pair<double, double>> all;
  std::vector<Message> messages;
  for (int step = 0; step < source.steps(); ++step) {
    source.messages_of(step, messages);
    for (const Message& m : messages) {
      EXPECT_EQ(m.step, step);
      auto& [bytes, reduced] = all[{m.step, m.from, m.to}];
      bytes += m.bytes;
      reduced += m.reduced;
    }
  }
  return all;
}

TEST(Pattern, SendsWhatTheScheduleSends) {
  std::map<std::string, int> seen;
  for (const Family* family : families())
    for (int c = 0; c < collective_count; ++c)
      for (int n = 2; n <= 33; ++n) {
        const Shape shape{.collective = static_cast<Collective>(c), .ranks = n};
        const auto source = pattern(family->name, shape, 1000.0 * n);
        if (!source) continue;
        ++seen[std::string(family->name)];
        const Schedule schedule = built(family->name, shape.collective, n);
        const auto expected = all_messages(*messages_of(schedule, 1000.0 * n)), found = all_messages(*source);
        ASSERT_EQ(found.size(), expected.size()) << family->name << ", " << n << ", " << name(shape.collective);
        for (const auto& [key, amount] : expected) {
          ASSERT_TRUE(found.contains(key)) << family->name << ", " << n << ", " << name(shape.collective);
          ASSERT_NEAR(found.at(key).first, amount.first, 1e-6) << family->name << ", " << n;
          ASSERT_NEAR(found.at(key).second, amount.second, 1e-6) << family->name << ", " << n;
        }
      }
  EXPECT_EQ(seen.size(), 9u);
  for (const auto& [name, count] : seen) EXPECT_GE(count, 5) << name;
}

}  // namespace
}  // namespace tutti::simulator
