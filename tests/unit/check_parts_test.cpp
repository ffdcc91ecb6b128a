// The parts of the symbolic execution: channels, messages, entries to calls, and offers, each by itself.
#include <gtest/gtest.h>

#include <optional>

#include "analysis/proof/check_channel.h"
#include "analysis/proof/check_entries.h"
#include "analysis/proof/check_messages.h"
#include "analysis/proof/check_offers.h"
#include "support/plan_writer.h"

namespace tutti::proof {
namespace {

using testing::input;
using testing::output;
using testing::PlanWriter;
using testing::slot;

/// Rank 0 sends a block of its output to rank 1, then changes it.
class CheckParts : public ::testing::Test {
 protected:
  CheckParts() {
    plans.push_back(PlanWriter(schedule, 0, Access::slots, 1)
                        .acquire(1, 1)
                        .copy(output(0), {slot(1, 0)})
                        .commit(1)
                        .copy(input(0), {output(0)})
                        .settle(1)
                        .plan());
    plans.back().outlasts = {false, true, false, false};
    plans.push_back(
        PlanWriter(schedule, 1, Access::slots, 1).peek(0, 1).copy(slot(0, 0), {output(0)}).release(0).plan());
    call.plans = plans;
    stage.emplace(call, CheckCase{.channels = 1, .tiles = 1});
    for (Channel& l : channels.all()) l.stage = &*stage;
  }
  Channel& at(Rank rank) { return channels.at(rank, 0); }
  const Action& action(Rank rank, std::size_t index) const {
    return plans[static_cast<std::size_t>(rank)].actions[index];
  }
  std::uint32_t known(Rank by, Rank of) { return clocks.at(at(by).now)[of]; }
  static std::string text(const Result<void>& result) { return result ? "" : result.error().what; }

  Schedule schedule{{.collective = Collective::all_gather, .ranks = 2}, 1};
  std::vector<Plan> plans;
  CheckedCall call{.schedule = &schedule};
  std::optional<Stage> stage;
  Clocks clocks{2};
  Channels channels{2, 1, clocks};
};

TEST_F(CheckParts, ChannelsContinueOnceForEachTimeTheyWait) {
  EXPECT_EQ(channels.next(), nullptr);
  channels.wake(1, 0);
  channels.wake(1, 0);
  channels.wake(0, 0);
  EXPECT_EQ(channels.next(), &at(0)) << "the last one first";
  EXPECT_EQ(channels.next(), &at(1));
  EXPECT_EQ(channels.next(), nullptr);
  at(1).done = true;
  channels.wake(1, 0);
  EXPECT_EQ(channels.next(), nullptr);
  EXPECT_EQ(known(0, 0), 1U);
  EXPECT_EQ(known(0, 1), 0U);
}

TEST_F(CheckParts, ErrorsOfAChannelNameItsPlace) {
  at(1).action = 2;
  const Error error = at(1).wrong("odd");
  EXPECT_EQ(error.what, "odd (action 2, tile 0, call 0)");
  EXPECT_EQ(error.peer, 1);
}

TEST_F(CheckParts, MessagesCarryTheTimeOfTheirSenderAndSlotsThatOfTheirReceiver) {
  Messages messages(2, 1, 1, 1);
  EXPECT_FALSE(*messages.peek(at(1), action(1, 0), clocks));
  EXPECT_FALSE(messages.item(at(0), action(0, 1), slot(1, 0), true)) << "no message is open";
  EXPECT_TRUE(*messages.acquire(at(0), action(0, 0), clocks));
  EXPECT_FALSE(messages.acquire(at(0), action(0, 0), clocks)) << "is open already";
  EXPECT_TRUE(messages.item(at(0), action(0, 1), slot(1, 0), true));
  EXPECT_TRUE(messages.commit(at(0), action(0, 2), clocks));
  EXPECT_FALSE(*messages.acquire(at(0), action(0, 0), clocks)) << "there is one slot";
  EXPECT_TRUE(*messages.peek(at(1), action(1, 0), clocks));
  EXPECT_EQ(known(1, 0), 1U);
  EXPECT_NE(text(messages.all_taken(at(0), 1)), "");
  EXPECT_TRUE(messages.release(at(1), action(1, 2), clocks));
  EXPECT_EQ(text(messages.all_taken(at(0), 1)), "");
  EXPECT_EQ(known(0, 1), 0U);
  EXPECT_TRUE(*messages.acquire(at(0), action(0, 0), clocks));
  EXPECT_EQ(known(0, 1), 1U);
  EXPECT_EQ(at(0).open, 1);
  EXPECT_EQ(at(1).open, 0);
}

TEST_F(CheckParts, MessagesInTheirSendersMemoryAreToBeSettled) {
  Messages messages(2, 0, 1, 1);
  EXPECT_TRUE(*messages.acquire(at(0), action(0, 0), clocks));
  EXPECT_TRUE(messages.commit(at(0), action(0, 2), clocks));
  EXPECT_FALSE(messages.settle(at(0), action(0, 4), clocks));
  EXPECT_TRUE(*messages.peek(at(1), action(1, 0), clocks));
  EXPECT_TRUE(messages.release(at(1), action(1, 2), clocks));
  EXPECT_NE(text(messages.all_settled(at(0))), "") << "it does not know yet";
  EXPECT_TRUE(messages.settle(at(0), action(0, 4), clocks));
  EXPECT_EQ(text(messages.all_settled(at(0))), "");
  EXPECT_EQ(known(0, 1), 1U);
}

TEST_F(CheckParts, EntriesAreKnownByTheDescriptorsOfACall) {
  Entries entries(2, 1, 1);
  for (const Rank rank : {0, 1}) entries.begin(at(rank), clocks);
  EXPECT_NE(text(entries.all_known(at(0), clocks)), "");
  EXPECT_FALSE(entries.open(at(1), 0, clocks));
  entries.publish(at(0), clocks);
  EXPECT_FALSE(entries.enter(at(1), clocks));
  EXPECT_FALSE(entries.has_opened(at(1), 0));
  EXPECT_TRUE(entries.open(at(1), 0, clocks));
  EXPECT_TRUE(entries.has_opened(at(1), 0));
  EXPECT_EQ(text(entries.all_known(at(1), clocks)), "");
  entries.publish(at(1), clocks);
  EXPECT_TRUE(entries.enter(at(0), clocks));
  EXPECT_TRUE(at(0).entered);
  EXPECT_EQ(text(entries.all_known(at(0), clocks)), "");
}

TEST_F(CheckParts, OfferedBlocksMayChangeOnceTheirMessageIsReleased) {
  Messages messages(2, 2, 1, 1);
  Offers offers({0, 0}, false, channels, 2);
  EXPECT_TRUE(*messages.acquire(at(0), action(0, 0), clocks));
  EXPECT_TRUE(offers.offer(at(0), action(0, 1), messages));
  EXPECT_TRUE(messages.commit(at(0), action(0, 2), clocks));
  EXPECT_TRUE(offers.may_change(at(0), action(0, 1), messages, clocks)) << "stores into a message only";
  EXPECT_FALSE(offers.may_change(at(0), action(0, 3), messages, clocks));
  EXPECT_FALSE(offers.all_read(at(0), messages, clocks));
  EXPECT_TRUE(*messages.peek(at(1), action(1, 0), clocks));
  EXPECT_TRUE(messages.release(at(1), action(1, 2), clocks));
  EXPECT_TRUE(offers.may_change(at(0), action(0, 3), messages, clocks));
  EXPECT_EQ(known(0, 1), 1U) << "so the change comes after the read";
  EXPECT_TRUE(offers.all_read(at(0), messages, clocks));
}

TEST_F(CheckParts, OffersAreOfTheBlockThatIsSentAndInsideAHost) {
  Messages messages(2, 2, 1, 1);
  EXPECT_TRUE(*messages.acquire(at(0), action(0, 0), clocks));
  messages.of(at(0)).item(messages.of(at(0)).link(0, 1), 0, 0).cell.term = stage->terms.raw(0, 0);
  EXPECT_FALSE(Offers({0, 0}, false, channels, 2).offer(at(0), action(0, 1), messages)) << "another block is offered";
  Offers apart({0, 1}, false, channels, 2);
  EXPECT_TRUE(apart.offer(at(0), action(0, 1), messages));
  EXPECT_TRUE(apart.all_read(at(0), messages, clocks));
}

}  // namespace
}  // namespace tutti::proof
