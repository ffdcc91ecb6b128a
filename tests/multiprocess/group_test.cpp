// Groups: calls on several communicators and ranks submitted together, nesting, and refusals that start nothing.
#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include "support/call.h"
#include "support/launch_ranks.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

class Groups : public ::testing::TestWithParam<Layout> {
 protected:
  static void run(const std::function<void(Seat&, const std::vector<tuttiComm_t>&)>& body) {
    launch_ranks({.ranks = 4, .layout = GetParam()}, [&](Seat& seat) {
      const auto comms = seat.init();
      ASSERT_FALSE(comms.empty());
      body(seat, comms);
      for (const auto comm : comms) EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, Groups,
                         ::testing::Values(Layout::threads, Layout::processes, Layout::pairs, Layout::one_thread),
                         [](const auto& test) { return name(test.param); });

constexpr Call small_sum{.kind = Kind::all_reduce, .count = 100, .seed = 1};

/// Every kind, several sizes; the share of them begins with number `first`.
std::vector<Call> some_calls(int first) {
  std::vector<Call> calls;
  int nth = first;
  for (int kind = 0; kind < kind_count; ++kind)
    for (const std::size_t count : {3, 3'000, 70'000}) {
      if (!in_share(nth++)) continue;
      Call call{.kind = static_cast<Kind>(kind), .count = count, .root = kind % 4, .seed = 100 + calls.size()};
      call.memory = static_cast<Mix>(calls.size() % mix_count);
      calls.push_back(call);
    }
  return calls;
}

TEST_P(Groups, SeveralCallsRunInOrder) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    std::vector<std::unique_ptr<CallOnRank>> parts;
    ASSERT_TRUE(ok(tuttiGroupStart()));
    for (const auto& call : some_calls(0))
      for (std::size_t i = 0; i < comms.size(); ++i) {
        parts.push_back(std::make_unique<CallOnRank>(call, seat.here()[i], seat.ranks()));
        ASSERT_TRUE(ok(parts.back()->submit(comms[i])));
      }
    ASSERT_TRUE(ok(tuttiGroupEnd()));
    for (auto& part : parts) EXPECT_EQ(part->check(), "");
  });
}

/// Each rank names the communicators in another order: only the order on each of them counts.
TEST_P(Groups, SeveralCommunicatorsInAnyOrder) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& first) {
    const auto second = seat.init();
    const auto third = seat.init();
    ASSERT_FALSE(second.empty() || third.empty());
    const std::array all = {&first, &second, &third};
    const auto calls = some_calls(1);
    std::vector<std::unique_ptr<CallOnRank>> parts;
    ASSERT_TRUE(ok(tuttiGroupStart()));
    for (std::size_t i = 0; i < first.size(); ++i)
      for (std::size_t c = 0; c < all.size(); ++c) {
        const int rank = seat.here()[i];
        const std::size_t which = (c + static_cast<std::size_t>(rank)) % all.size();
        for (std::size_t k = which; k < calls.size(); k += all.size()) {
          parts.push_back(std::make_unique<CallOnRank>(calls[k], rank, seat.ranks()));
          ASSERT_TRUE(ok(parts.back()->submit((*all[which])[i])));
        }
      }
    ASSERT_TRUE(ok(tuttiGroupEnd()));
    for (auto& part : parts) EXPECT_EQ(part->check(), "");
    for (const auto comm : second) EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    for (const auto comm : third) EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST_P(Groups, OnlyTheOutermostEndSubmits) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    std::vector<std::unique_ptr<CallOnRank>> parts;
    ASSERT_TRUE(ok(tuttiGroupStart()));
    for (std::size_t i = 0; i < comms.size(); ++i) {
      ASSERT_TRUE(ok(tuttiGroupStart()));
      ASSERT_TRUE(ok(tuttiGroupStart()));
      parts.push_back(std::make_unique<CallOnRank>(small_sum, seat.here()[i], seat.ranks()));
      ASSERT_TRUE(ok(parts.back()->submit(comms[i])));
      ASSERT_TRUE(ok(tuttiGroupEnd()));
      ASSERT_TRUE(ok(tuttiGroupEnd()));
      EXPECT_TRUE(parts.back()->untouched());
    }
    ASSERT_TRUE(seat.meet());  // still nobody has called
    for (const auto& part : parts) EXPECT_TRUE(part->untouched());
    ASSERT_TRUE(ok(tuttiGroupEnd()));
    for (auto& part : parts) EXPECT_EQ(part->check(), "");
  });
}

TEST_P(Groups, RefusalStartsNothingAndHarmsNothing) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    std::vector<std::unique_ptr<CallOnRank>> parts;
    ASSERT_TRUE(ok(tuttiGroupStart()));
    for (std::size_t i = 0; i < comms.size(); ++i) {
      parts.push_back(std::make_unique<CallOnRank>(small_sum, seat.here()[i], seat.ranks()));
      ASSERT_TRUE(ok(parts.back()->submit(comms[i])));
      EXPECT_TRUE(
          fails(tuttiBroadcast(nullptr, nullptr, 5, tuttiInt32, 0, comms[i], nullptr), tuttiInvalidArgument, "NULL"));
      EXPECT_TRUE(fails(tuttiReduce(nullptr, nullptr, 0, tuttiInt32, tuttiSum, 99, comms[i], nullptr),
                        tuttiInvalidArgument, "root 99"));
    }
    EXPECT_TRUE(fails(tuttiGroupEnd(), tuttiInvalidArgument, "NULL"));
    for (const auto& part : parts) EXPECT_TRUE(part->untouched());
    EXPECT_EQ(run_call(small_sum, seat.here(), seat.ranks(), comms), "");
  });
}

TEST_P(Groups, CollectivesBesideSendsAndReceives) {
  run([](Seat& seat, const std::vector<tuttiComm_t>& comms) {
    std::vector<std::unique_ptr<CallOnRank>> parts;
    std::vector<std::vector<int>> got(comms.size());
    std::vector<std::vector<int>> sent(comms.size());
    ASSERT_TRUE(ok(tuttiGroupStart()));
    for (std::size_t i = 0; i < comms.size(); ++i) {
      const int rank = seat.here()[i];
      sent[i].assign(50'000, rank);
      got[i].assign(50'000, -1);
      ASSERT_TRUE(ok(tuttiSend(sent[i].data(), sent[i].size(), tuttiInt32, (rank + 1) % 4, comms[i], nullptr)));
      for (const auto& call : some_calls(2)) {
        parts.push_back(std::make_unique<CallOnRank>(call, rank, seat.ranks()));
        ASSERT_TRUE(ok(parts.back()->submit(comms[i])));
      }
      ASSERT_TRUE(ok(tuttiRecv(got[i].data(), got[i].size(), tuttiInt32, (rank + 3) % 4, comms[i], nullptr)));
    }
    ASSERT_TRUE(ok(tuttiGroupEnd()));
    for (auto& part : parts) EXPECT_EQ(part->check(), "");
    for (std::size_t i = 0; i < comms.size(); ++i)
      EXPECT_EQ(got[i], std::vector<int>(50'000, (seat.here()[i] + 3) % 4));
  });
}

/// A buffer of tuttiMemAlloc, filled with one value.
class Shared {
 public:
  Shared(std::size_t count, int value) : count_(count) {
    void* at = nullptr;
    EXPECT_TRUE(ok(tuttiMemAlloc(&at, count * sizeof(int))));
    at_ = static_cast<int*>(at);
    fill(value);
  }
  ~Shared() { EXPECT_TRUE(ok(tuttiMemFree(at_))); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  int* at() const { return at_; }
  std::size_t count() const { return count_; }
  void fill(int value) { std::ranges::fill(all(), value); }
  /// How many elements have another value.
  std::size_t wrong(int value) const { return count_ - static_cast<std::size_t>(std::ranges::count(all(), value)); }

 private:
  std::span<int> all() const { return {at_, count_}; }
  std::size_t count_;
  int* at_ = nullptr;
};

/// Messages are read piece by piece out of their sender's memory while a collective of the same group is under way,
/// which finds that the sender has freed memory and drops what it has mapped; and each of them maps memory of its own.
/// `messages`: of the group, each from other memory.
void check_mapped_memory(Seat& seat, const std::vector<tuttiComm_t>& comms, int messages, std::size_t count) {
  ASSERT_EQ(comms.size(), 1U);
  const auto comm = comms[0];
  const int to = (seat.rank() + 1) % seat.ranks(), from = (seat.rank() + seat.ranks() - 1) % seat.ranks();
  const Shared input(count, 7), output(count, 0);
  std::vector<std::unique_ptr<Shared>> sent, received;
  for (int i = 0; i < messages; ++i) {
    sent.push_back(std::make_unique<Shared>(count + 1'000 * static_cast<std::size_t>(i), 0));
    received.push_back(std::make_unique<Shared>(sent.back()->count(), 0));
  }
  for (int round = 0; round < 12; ++round) {
    const auto value = [&](int rank, int nth) { return 10'000 * round + 100 * rank + nth; };
    for (int i = 0; i < messages; ++i) sent[i]->fill(value(seat.rank(), i));
    { const Shared freed(1'000, 1); }
    ASSERT_TRUE(ok(tuttiBarrier(comm, nullptr)));
    ASSERT_TRUE(ok(tuttiGroupStart()));
    ASSERT_TRUE(ok(tuttiAllReduce(input.at(), output.at(), count, tuttiInt32, tuttiSum, comm, nullptr)));
    for (int i = 0; i < messages; ++i) {
      ASSERT_TRUE(ok(tuttiSend(sent[i]->at(), sent[i]->count(), tuttiInt32, to, comm, nullptr)));
      ASSERT_TRUE(ok(tuttiRecv(received[i]->at(), received[i]->count(), tuttiInt32, from, comm, nullptr)));
    }
    ASSERT_TRUE(ok(tuttiGroupEnd()));
    EXPECT_EQ(output.wrong(7 * seat.ranks()), 0U) << "round " << round;
    for (int i = 0; i < messages; ++i)
      EXPECT_EQ(received[i]->wrong(value(from, i)), 0U) << "round " << round << ", message " << i;
  }
  EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
}

TEST(MappedMemory, StaysWhileAMessageIsReadBesideACollective) {
  launch_ranks({.ranks = 2}, [](Seat& seat) { check_mapped_memory(seat, seat.init(), 1, 500'000); });
}

TEST(MappedMemory, OfManySegmentsStaysWhileItIsRead) {
  launch_ranks({.ranks = 3}, [](Seat& seat) { check_mapped_memory(seat, seat.init(), 6, 200'000); });
}

TEST(GroupUse, EndWithoutStartIsRefused) {
  launch_ranks({.ranks = 1}, [](Seat&) {
    EXPECT_TRUE(fails(tuttiGroupEnd(), tuttiInvalidUsage, "tuttiGroupStart"));
    EXPECT_TRUE(ok(tuttiGroupStart()));
    EXPECT_TRUE(ok(tuttiGroupEnd()));
    EXPECT_TRUE(fails(tuttiGroupEnd(), tuttiInvalidUsage, "tuttiGroupStart"));
  });
}

TEST(GroupUse, TwoStreamsForOneCommunicatorAreRefused) {
  launch_ranks({.ranks = 2}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    tuttiStream_t stream = nullptr;
    ASSERT_TRUE(ok(tuttiStreamCreate(&stream)));
    ASSERT_TRUE(ok(tuttiGroupStart()));
    EXPECT_TRUE(ok(tuttiBarrier(comm, stream)));
    EXPECT_TRUE(fails(tuttiBarrier(comm, nullptr), tuttiInvalidUsage, "one stream"));
    EXPECT_TRUE(fails(tuttiGroupEnd(), tuttiInvalidUsage, "one stream"));
    EXPECT_EQ(run_call(small_sum, seat.here(), seat.ranks(), {comm}), "");
    EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// An empty group, and a group without calls on a communicator that others use, is nothing.
TEST(GroupUse, EmptyGroupIsNothing) {
  launch_ranks({.ranks = 2}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    if (seat.rank() == 0) {
      EXPECT_TRUE(ok(tuttiGroupStart()));
      EXPECT_TRUE(ok(tuttiGroupEnd()));
    }
    EXPECT_EQ(run_call(small_sum, seat.here(), seat.ranks(), {comm}), "");
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
