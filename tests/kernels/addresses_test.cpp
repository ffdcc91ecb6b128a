// Are blocks found where they lie: in a rank's own buffers, in those of its peers, in slots, and in windows that are
// known later?
#include "kernels/addresses.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "support/plan_writer.h"

namespace tutti::device {
namespace {

using namespace tutti::testing;

/// Rank 0 of two, in a call of groups of 10 elements of 4 bytes.
class AddressesTest : public ::testing::Test {
 protected:
  AddressesTest() {
    call_->slots = 2;
    call_->slot_bytes = 256;
    call_->table = table_;
    links_->of[1].slots_here = at(3);
    links_->of[1].slots_there = at(4);
    links_->of[1].released = 3;
    links_->of[1].committed = 4;
  }
  std::byte* at(std::size_t buffer) { return memory_.data() + 1000 * buffer; }
  Addresses addresses() const { return {*call_, rank_, cut_, *links_, windows_}; }

  std::vector<std::byte> memory_ = std::vector<std::byte>(8000);
  const std::unique_ptr<Call> call_ = std::make_unique<Call>();
  const std::unique_ptr<HeldLinks> links_ = std::make_unique<HeldLinks>();
  const RankCall rank_{.input = at(0), .output = at(1), .scratch = at(2)};
  const Cut cut_{.count = 10, .stride = 64, .parts = 2, .element_bytes = 4};
  const PeerBuffers table_[2] = {{at(0), at(1), 0}, {at(5), at(6), 7}};
  const PeerBuffers windows_[2] = {{}, {at(6), at(7), 0}};
  const Extent extent_{5, 5};  // of an odd part
};

TEST_F(AddressesTest, OwnBuffersBuffersOfPeersAndSlots) {
  const Addresses where = addresses();
  EXPECT_FALSE(where.by_windows());
  EXPECT_EQ(where.read(input(3), extent_), at(0) + (10 + 5) * 4);
  EXPECT_EQ(where.written(output(1), extent_), at(1) + 5 * 4);
  EXPECT_EQ(where.read(scratch(3), extent_), at(2) + (10 + 5) * 4);
  EXPECT_EQ(where.read(at_peer(Where::peer_input, 1, 3), extent_), at(5) + (10 + 5) * 4);
  EXPECT_EQ(where.in_window(at_peer(Where::peer_output, 1, 1), extent_), at(6) + 5 * 4);
  EXPECT_EQ(where.read(slot(1, 1), extent_), at(3) + 256 + 64) << "the fourth message, in the second slot";
  EXPECT_EQ(where.written(slot(1, 1), extent_), at(4) + 64);
  EXPECT_EQ(where.buffers_of(1).scalar, 7u);
}

TEST_F(AddressesTest, WindowsOfOthersAreOffsetsUntilTheMeeting) {
  call_->choose = 1;
  Addresses where = addresses();
  ASSERT_TRUE(where.by_windows());
  const Place in = at_peer(Where::peer_input, 1, 3), out = at_peer(Where::peer_output, 1, 1);
  const Place own = at_peer(Where::peer_input, 0, 3);
  Operands o;
  o.sources[0] = where.read(in, extent_);
  o.sources[1] = where.read(own, extent_);
  o.sources[2] = where.read(out, extent_);
  o.destinations[0] = where.written(out, extent_);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(o.sources[0]), (10u + 5) * 4);
  EXPECT_EQ(o.sources[1], at(0) + (10 + 5) * 4);
  const Place places[] = {in, own, out, out};
  for (int i = 0; i < 4; ++i) where.place_in_window(o, i, 3, places[i]);
  EXPECT_EQ(o.sources[0], at(6) + (10 + 5) * 4);
  EXPECT_EQ(o.sources[1], at(0) + (10 + 5) * 4);
  EXPECT_EQ(o.sources[2], at(7) + 5 * 4);
  EXPECT_EQ(o.destinations[0], at(7) + 5 * 4);
  EXPECT_EQ(where.in_window(out, extent_), at(7) + 5 * 4);

  where.set_by_windows(false);
  EXPECT_EQ(where.read(in, extent_), at(5) + (10 + 5) * 4);
}

}  // namespace
}  // namespace tutti::device
