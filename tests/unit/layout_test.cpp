// Counts per rank become a layout, and ranks that disagree are found whatever the difference.
#include "call/layout.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "support/random.h"

namespace tutti {
namespace {

using testing::Random;

constexpr std::size_t any = 1 << 20;

class LayOut : public ::testing::Test {
 protected:
  Request request(Collective collective, std::size_t in = 0, std::size_t out = any) {
    return {.collective = collective,
            .input = memory_.data() + in,
            .output = memory_.data() + out,
            .type = DataType::int32,
            .root = 1};
  }
  std::vector<std::byte> memory_ = std::vector<std::byte>(2 * any);
};

TEST_F(LayOut, BuffersBeginAtTheirLowestBlock) {
  const std::size_t send[] = {2, 0, 3}, send_at[] = {20, 7, 10}, recv[] = {2, 5, 1};
  auto call = request(Collective::all_to_all);
  ASSERT_TRUE(lay_out(call, 0, 3, {send, send_at}, {recv, nullptr}));
  EXPECT_EQ(call.input, memory_.data() + 10 * 4);
  EXPECT_EQ(call.output, memory_.data() + any);
  const Layout& layout = *call.layout;
  EXPECT_EQ(layout.input_elements, 12u);
  EXPECT_EQ(layout.output_elements, 8u);
  EXPECT_EQ(layout.input[0].begin, 10u);
  EXPECT_EQ(layout.input[2].begin, 0u);
  EXPECT_EQ(layout.output[2].begin, 7u);
  EXPECT_EQ(layout.line.largest, 5u);
  const Share share = share_with(call, layout, 2);
  EXPECT_EQ(share.sent.count, 3u);
  EXPECT_EQ(share.received.begin, 7u);
}

TEST_F(LayOut, SharesFollowTheCollective) {
  const std::size_t one = 4, many[] = {5, 4, 6};
  auto gather = request(Collective::gather);
  ASSERT_TRUE(lay_out(gather, 1, 3, {&one, nullptr}, {many, nullptr}));
  EXPECT_EQ(share_with(gather, *gather.layout, 2).received.count, 6u);
  EXPECT_EQ(share_with(gather, *gather.layout, 2).sent.count, 0u) << "only the root is sent to";
  EXPECT_EQ(share_with(gather, *gather.layout, 1).sent.count, 4u);
  auto scatter = request(Collective::scatter);
  ASSERT_TRUE(lay_out(scatter, 0, 3, {}, {&one, nullptr}));
  EXPECT_EQ(share_with(scatter, *scatter.layout, 1).received.count, 4u);
  EXPECT_EQ(share_with(scatter, *scatter.layout, 2).received.count, 0u);
  EXPECT_EQ(share_with(scatter, *scatter.layout, 1).sent.count, 0u);
}

/// Blocks that are only read may lie on each other.
TEST_F(LayOut, InputsMayOverlapOutputsNot) {
  const std::size_t counts[] = {4, 4}, on_each_other[] = {0, 2}, apart[] = {0, 4};
  auto call = request(Collective::all_to_all);
  EXPECT_TRUE(lay_out(call, 0, 2, {counts, on_each_other}, {counts, apart}));
  call = request(Collective::all_to_all);
  EXPECT_FALSE(lay_out(call, 0, 2, {counts, apart}, {counts, on_each_other}));
}

/// Send and receive blocks in the gaps of each other.
TEST_F(LayOut, BuffersMayInterleave) {
  const std::size_t counts[] = {4, 4}, at[] = {0, 8};
  auto call = request(Collective::all_to_all, 0, 4 * 4);
  EXPECT_TRUE(lay_out(call, 0, 2, {counts, at}, {counts, at}));
  call = request(Collective::all_to_all, 0, 3 * 4);
  EXPECT_FALSE(lay_out(call, 0, 2, {counts, at}, {counts, at}));
}

/// The lines of all ranks of an all-to-all.
CountsTally tally(const std::vector<std::vector<std::size_t>>& sent,
                  const std::vector<std::vector<std::size_t>>& received) {
  static std::byte memory[2000];
  CountsTally all;
  for (std::size_t rank = 0; rank < sent.size(); ++rank) {
    Request call{.collective = Collective::all_to_all, .input = memory, .output = memory + 1000};
    EXPECT_TRUE(lay_out(call, static_cast<Rank>(rank), static_cast<int>(sent.size()), {sent[rank].data(), nullptr},
                        {received[rank].data(), nullptr}));
    all.add(reinterpret_cast<const std::byte*>(&call.layout->line));
  }
  return all;
}

TEST(Tally, ShowsEveryDifferenceOfOneOrTwoCounts) {
  Random random(testing::test_seed());
  for (int round = 0; round < 200; ++round) {
    const auto n = static_cast<std::size_t>(random.between(2, 6));
    const auto other = [&](std::size_t than) {
      return (than + static_cast<std::size_t>(random.between(1, static_cast<int>(n) - 1))) % n;
    };
    std::vector<std::vector<std::size_t>> sent(n, std::vector<std::size_t>(n)), received = sent;
    std::size_t largest = 0;
    for (std::size_t from = 0; from < n; ++from)
      for (std::size_t to = 0; to < n; ++to) {
        sent[from][to] = received[to][from] = static_cast<std::size_t>(random.below(4));
        largest = std::max(largest, sent[from][to]);
      }
    const auto same = tally(sent, received);
    EXPECT_TRUE(same.balanced());
    EXPECT_EQ(*same.largest(1), largest);
    const auto from = static_cast<std::size_t>(random.below(static_cast<int>(n)));
    const std::size_t to = other(from);
    ++sent[from][to];
    EXPECT_FALSE(tally(sent, received).balanced());
    ++received[from][to];  // the same number of elements again, but the other way
    EXPECT_FALSE(tally(sent, received).balanced());
  }
}

TEST(Tally, NamesWhoDisagrees) {
  const auto share = [](std::size_t sent, std::size_t received) { return Share{{0, sent}, {0, received}}; };
  const std::vector<Share> first = {share(1, 1), share(7, 2)}, second = {share(3, 7), share(0, 0)};
  const std::array<std::span<const Share>, 2> all = {first, second};
  const auto error = counts_mismatch(all, {.collective = Collective::all_to_all, .form = Form::counts});
  EXPECT_EQ(error.code, Code::invalid_usage);
  EXPECT_NE(error.what.find("AllToAllV"), std::string::npos) << error.what;
  EXPECT_NE(error.what.find("rank 1 sends 3 elements to rank 0, which wants 2"), std::string::npos) << error.what;
  EXPECT_EQ(error.what.find("rank 0 sends"), std::string::npos) << error.what;
}

}  // namespace
}  // namespace tutti
