// Does a direct pass receive into the call's buffers, offer blocks from there, wait for readers of what it overwrites
// and for enough of a message, and refuse blocks that are too short?
#include "exec/direct_pass.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/plan_writer.h"
#include "support/scripted_fifo.h"

namespace tutti {
namespace {

using namespace testing;

constexpr std::size_t block_bytes = 200'000;

/// Rank 0 of two, in a pass of blocks of bytes.
class DirectPasses : public ::testing::Test {
 protected:
  DirectPasses() : in_(block_bytes, std::byte{1}), out_(block_bytes) {
    binding_ = {.input = in_.data(), .output = out_.data(), .split = Split(block_bytes, 1, 1)};
    channel_.reserve(2);
    channel_.senders[1] = std::unique_ptr<Sender>(sender_ = new ScriptedSender);
    channel_.receivers[1] = std::unique_ptr<Receiver>(receiver_ = new ScriptedReceiver);
    sender_->slot.resize(binding_.split.stride());
    receiver_->message.assign(binding_.split.stride(), std::byte{2});
  }
  PlanWriter writer() const {
    return PlanWriter(Schedule({.collective = Collective::all_reduce, .ranks = 2}, 1), 0, Access::slots, 1);
  }
  /// Goes on with the plan's first action, a pass.
  Result<bool> advance(const Plan& plan) {
    std::size_t budget = 1 << 24;
    const Passes passes(plan, binding_, rules_);
    EXPECT_TRUE(passes.direct());
    return pass_direct(passes, channel_, cursor_, plan.actions[0], budget);
  }
  void open_arriving() {
    channel_.open[1].reading = receiver_->message;
    channel_.open[1].arriving = receiver_;
  }

  const PassRules rules_{.direct_bytes = 1};
  std::vector<std::byte> in_, out_;
  Binding binding_;
  Channel channel_;
  Cursor cursor_{};
  ScriptedSender* sender_ = nullptr;
  ScriptedReceiver* receiver_ = nullptr;
};

TEST_F(DirectPasses, LandInTheCallsBuffer) {
  const Plan plan = writer().copy(slot(1, 0), {output(0)}).release(1).plan();
  open_arriving();
  receiver_->here = 1000;
  auto finished = advance(plan);
  ASSERT_TRUE(finished && !*finished);
  EXPECT_EQ(cursor_.pass_done, 1000u);
  EXPECT_EQ(out_[999], std::byte{2});
  EXPECT_EQ(out_[1000], std::byte{0});
  receiver_->here = block_bytes;
  finished = advance(plan);
  ASSERT_TRUE(finished && *finished);
  EXPECT_EQ(cursor_.pass_done, 0u);
  EXPECT_EQ(out_, std::vector(block_bytes, std::byte{2}));
}

TEST_F(DirectPasses, ReduceWhatHasArrivedIfItIsEnough) {
  const Plan plan = writer().reduce({slot(1, 0), input(0)}, {output(0)}).last().release(1).plan();
  open_arriving();
  for (const std::size_t here : {1000, 100'000, 100'001}) {
    receiver_->here = here;
    const auto finished = advance(plan);
    ASSERT_TRUE(finished && !*finished);
    EXPECT_EQ(cursor_.pass_done, here < 65'536 ? 0u : 100'000u);
  }
  receiver_->here = block_bytes;
  const auto finished = advance(plan);
  ASSERT_TRUE(finished && *finished);
  EXPECT_EQ(out_, std::vector(block_bytes, std::byte{3}));
}

TEST_F(DirectPasses, OfferBlocksThatLast) {
  Plan plan = writer().copy(input(0), {slot(1, 0)}).plan();
  for (const bool copies : {true, false})
    for (const bool outlasts : {true, false}) {
      sender_->copies = copies;
      sender_->offers.clear();
      plan.outlasts = {true, outlasts};
      channel_.unsent.clear();
      channel_.open[1].filling = sender_->slot;
      std::ranges::fill(sender_->slot, std::byte{});
      const auto finished = advance(plan);
      ASSERT_TRUE(finished && *finished);
      const bool offered = copies || outlasts;
      EXPECT_EQ(sender_->offers.contains(0) && sender_->offers[0].data() == in_.data(), offered);
      EXPECT_EQ(sender_->slot[0], offered ? std::byte{0} : std::byte{1});
      EXPECT_EQ(channel_.unsent.size(), offered ? 1u : 0u);
    }
}

TEST_F(DirectPasses, WaitForReadersOfWhatTheyOverwrite) {
  const Plan plan = writer().copy(input(0), {output(0)}).plan();
  channel_.unsent = {1};
  sender_->keeps = false;
  auto finished = advance(plan);
  ASSERT_TRUE(finished && !*finished);
  EXPECT_EQ(out_[0], std::byte{0});
  sender_->keeps = true;
  finished = advance(plan);
  ASSERT_TRUE(finished && *finished);
  EXPECT_EQ(out_, in_);
}

TEST_F(DirectPasses, RefuseAnOfferedBlockThatIsTooShort) {
  const Plan plan = writer().copy(slot(1, 0), {output(0)}).release(1).plan();
  channel_.open[1].reading = receiver_->message;
  for (const std::size_t missing : {0, 1}) {
    channel_.open[1].offered = {OfferedBlock{.at = std::span(in_).first(block_bytes - missing)}};
    const auto finished = advance(plan);
    ASSERT_EQ(bool(finished), missing == 0);
    if (missing == 0) continue;
    EXPECT_EQ(finished.error().code, Code::remote);
    EXPECT_EQ(finished.error().peer, 1);
  }
  EXPECT_EQ(out_, in_);
}

}  // namespace
}  // namespace tutti
