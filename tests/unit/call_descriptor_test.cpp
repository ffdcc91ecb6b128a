// Every rank reads every call as it was published, however far others run ahead; differing calls and damage are
// noticed.
#include "transport/call_descriptor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "support/shared_areas.h"

namespace tutti {
namespace {

Signature all_reduce(std::uint64_t count) {
  return {.collective = 1, .type = 7, .op = 0, .count = count};
}

/// Some ranks that take turns in one thread.
class Ranks {
 public:
  explicit Ranks(int ranks, std::size_t payload_bytes = 256)
      : areas_({.ranks = ranks, .payload_bytes = payload_bytes}) {
    for (int rank = 0; rank < ranks; ++rank) lines_.emplace_back(areas_.rings(), rank, payload_bytes);
  }
  CallDescriptors& of(int rank) { return lines_[rank]; }
  /// Whether calls from now on publish nothing but descriptors.
  void be_compact(bool compact) { compact_ = compact; }

  bool try_enter(int rank, std::uint64_t sequence, const Signature& call) {
    auto may = of(rank).may_enter(sequence, compact_);
    EXPECT_TRUE(may) << may.error().text();
    if (!may || !*may) return false;
    publish(rank, sequence, call);
    return true;
  }
  void publish(int rank, std::uint64_t sequence, const Signature& call) {
    CallDescriptor& line = of(rank).begin(sequence);
    line.signature = call;
    of(rank).publish(line, sequence);
  }
  /// The line as it lies in memory, for tests that damage it.
  CallDescriptor& raw(int rank, std::uint64_t sequence) {
    auto line = of((rank + 1) % static_cast<int>(lines_.size())).open(rank, sequence);
    EXPECT_TRUE(line && *line != nullptr);
    return const_cast<CallDescriptor&>(**line);
  }

 private:
  testing::SharedAreas areas_;
  std::vector<CallDescriptors> lines_;
  bool compact_ = true;
};

TEST(DescriptorRings, HaveAPlaceForEachCallUntilItsTurnComesAgain) {
  constexpr std::size_t payload_bytes = 4096;
  testing::SharedAreas areas({.ranks = 3, .payload_bytes = payload_bytes});
  const DescriptorRings rings(areas.rings(), payload_bytes);
  ASSERT_EQ(rings.ranks(), 3);
  for (int rank = 0; rank < rings.ranks(); ++rank) {
    std::map<const std::byte*, std::size_t> places;  // and their lengths
    for (std::uint64_t call = 1; call <= limits::call_descriptors; ++call)
      places.emplace(reinterpret_cast<const std::byte*>(&rings.at(rank, call)), sizeof(CallDescriptor));
    for (std::uint64_t call = 1; call <= limits::call_payloads; ++call)
      places.emplace(rings.payload(rank, call, payload_bytes), payload_bytes);
    ASSERT_EQ(places.size(), limits::call_descriptors + limits::call_payloads);
    const std::byte* free = areas.rings()[static_cast<std::size_t>(rank)];
    const std::byte* const end = free + DescriptorRings::ring_bytes(payload_bytes);
    for (const auto& [at, bytes] : places) {
      EXPECT_GE(at, free);
      free = at + bytes;
    }
    EXPECT_LE(free, end);
    EXPECT_EQ(&rings.at(rank, 7), &rings.at(rank, 7 + limits::call_descriptors));
  }
  EXPECT_EQ(DescriptorRings::before(7), 0u) << "none";
  EXPECT_EQ(DescriptorRings::before(7 + limits::call_descriptors), 7u);
}

TEST(CallDescriptors, ShowWhatWasPublished) {
  Ranks ranks(3);
  auto absent = ranks.of(1).open(0, 1);
  ASSERT_TRUE(absent);
  EXPECT_EQ(*absent, nullptr);

  ASSERT_TRUE(ranks.try_enter(1, 1, all_reduce(8)));
  ASSERT_TRUE(*ranks.of(0).may_enter(1, true));
  CallDescriptor& line = ranks.of(0).begin(1);
  line.signature = all_reduce(8);
  line.scalar = 77;
  std::memcpy(ranks.of(0).payload(1, 8), "8 bytes!", 8);
  ranks.of(0).publish(line, 1);

  auto seen = ranks.of(1).open(0, 1);
  ASSERT_TRUE(seen);
  ASSERT_NE(*seen, nullptr);
  EXPECT_EQ((*seen)->scalar, 77u);
  EXPECT_EQ(std::memcmp(ranks.of(1).payload(0, 1, 8), "8 bytes!", 8), 0);
}

TEST(CallDescriptors, KeepSmallPayloadsInTheFirstTwoCacheLines) {
  Ranks ranks(2);
  CallDescriptor& line = ranks.of(0).begin(1);
  const auto offset = [&](std::size_t bytes) {
    return reinterpret_cast<std::byte*>(ranks.of(0).payload(1, bytes)) - reinterpret_cast<std::byte*>(&line);
  };
  EXPECT_LE(offset(sizeof line.small) + sizeof line.small, 64u);
  EXPECT_EQ(offset(sizeof line.small + 1), 64);
  EXPECT_EQ(offset(64), 64);
  EXPECT_GE(offset(65), 128);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&line) % 128, 0u);
}

TEST(CallDescriptors, OfOneCallDoNotAliasEachOther) {
  for (const std::size_t payload_bytes : {0u, 256u, 4096u - 128u, 4096u}) {
    Ranks ranks(8, payload_bytes);
    const auto place = [&](int rank, std::uint64_t sequence) {
      return reinterpret_cast<std::uintptr_t>(&ranks.raw(rank, sequence)) % 4096;
    };
    for (int rank = 0; rank < 8; ++rank) ASSERT_TRUE(ranks.try_enter(rank, 1, all_reduce(1)));
    for (int rank = 0; rank < 8; ++rank) ASSERT_TRUE(ranks.try_enter(rank, 2, all_reduce(1)));
    for (int rank = 1; rank < 8; ++rank) EXPECT_NE(place(rank, 1), place(0, 1));
    EXPECT_NE(place(0, 1), place(0, 2));
  }
}

TEST(CallDescriptors, LetNobodyRunMoreThanHalfARingAhead) {
  for (const bool compact : {true, false}) {
    Ranks ranks(2);
    ranks.be_compact(compact);
    const std::uint64_t ahead = (compact ? limits::call_descriptors : limits::call_payloads) / 2;
    for (std::uint64_t call = 1; call <= ahead; ++call) ASSERT_TRUE(ranks.try_enter(0, call, all_reduce(call)));
    for (std::uint64_t call = ahead + 1; call <= 100; ++call) {
      ASSERT_FALSE(ranks.try_enter(0, call, all_reduce(call)));
      ASSERT_TRUE(ranks.try_enter(1, call - ahead, all_reduce(call - ahead)));
      ASSERT_TRUE(ranks.try_enter(0, call, all_reduce(call)));
    }
  }
}

TEST(CallDescriptors, WaitForTheSlowestOfMany) {
  Ranks ranks(4);
  ranks.be_compact(false);
  for (std::uint64_t call = 1; call <= 8; ++call)
    for (const int rank : {0, 1, 3}) ASSERT_TRUE(ranks.try_enter(rank, call, all_reduce(1)));
  for (const int rank : {0, 1, 3}) EXPECT_FALSE(ranks.try_enter(rank, 9, all_reduce(1)));
  ASSERT_TRUE(ranks.try_enter(2, 1, all_reduce(1)));
  for (const int rank : {0, 1, 3}) EXPECT_TRUE(ranks.try_enter(rank, 9, all_reduce(1)));
}

class EveryDifference : public ::testing::TestWithParam<Signature> {};

TEST_P(EveryDifference, IsFoundByBothSidesAndNamesThePeer) {
  const Signature usual{.collective = 1, .type = 7, .op = 0, .root = 0, .count = 8};
  Ranks ranks(3);
  ASSERT_TRUE(ranks.try_enter(0, 1, usual));
  ASSERT_TRUE(ranks.try_enter(1, 1, GetParam()));
  const auto at_0 = ranks.of(0).open(1, 1);
  ASSERT_FALSE(at_0);
  EXPECT_EQ(at_0.error().code, Code::invalid_usage);
  EXPECT_EQ(at_0.error().peer, 1);
  const auto at_1 = ranks.of(1).look();
  ASSERT_FALSE(at_1);
  EXPECT_EQ(at_1.error().peer, 0);
  EXPECT_EQ(ranks.of(1).differing(), 1u);

  const auto calls = ranks.of(0).calls(1);
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0], usual);
  EXPECT_EQ(calls[1], GetParam());
  EXPECT_FALSE(calls[2]);
}

INSTANTIATE_TEST_SUITE_P(
    CallDescriptors, EveryDifference,
    ::testing::Values(Signature{.collective = 2, .type = 7, .op = 0, .root = 0, .count = 8},
                      Signature{.collective = 1, .type = 8, .op = 0, .root = 0, .count = 8},
                      Signature{.collective = 1, .type = 7, .op = 1, .root = 0, .count = 8},
                      Signature{.collective = 1, .type = 7, .op = 0, .root = 1, .count = 8},
                      Signature{.collective = 1, .type = 7, .op = 0, .root = 0, .count = 1ull << 63 | 8}));

TEST(CallDescriptors, FindADifferenceInACallLongReturnedFrom) {
  Ranks ranks(2);
  for (std::uint64_t call = 1; call <= 6; ++call) ASSERT_TRUE(ranks.try_enter(0, call, all_reduce(8)));
  for (std::uint64_t call = 1; call <= 3; ++call) ASSERT_TRUE(ranks.try_enter(1, call, all_reduce(call == 2 ? 9 : 8)));
  const auto looked = ranks.of(0).look();
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().code, Code::invalid_usage);
  EXPECT_EQ(ranks.of(0).differing(), 2u);
  EXPECT_EQ(ranks.of(0).calls(2)[1], all_reduce(9));
}

TEST(CallDescriptors, PassedOverAreComparedByTheNextThatIsOpened) {
  Ranks ranks(2);
  for (std::uint64_t call = 1; call <= 5; ++call) {
    ASSERT_TRUE(ranks.try_enter(0, call, all_reduce(8)));
    ASSERT_TRUE(ranks.try_enter(1, call, all_reduce(call == 3 ? 9 : 8)));
  }
  const auto opened = ranks.of(0).open(1, 5);  // the fifth alone is as it should be
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::invalid_usage);
  EXPECT_EQ(ranks.of(0).differing(), 3u);
}

TEST(CallDescriptors, OfCallsNotYetEnteredAreShownButNotCompared) {
  Ranks ranks(2);
  for (std::uint64_t call = 1; call <= 3; ++call) ASSERT_TRUE(ranks.try_enter(1, call, all_reduce(call)));
  auto ahead = ranks.of(0).open(1, 2);
  ASSERT_TRUE(ahead);
  EXPECT_NE(*ahead, nullptr);
  EXPECT_TRUE(ranks.of(0).look());
  ASSERT_TRUE(ranks.try_enter(0, 1, all_reduce(99)));
  EXPECT_FALSE(ranks.of(0).look());
}

TEST(CallDescriptors, ASequenceThatJumpsIsARemoteError) {
  for (const std::uint64_t nonsense : {std::uint64_t{2}, std::uint64_t{17}, std::uint64_t{33}, ~std::uint64_t{0}}) {
    Ranks ranks(2);
    ASSERT_TRUE(ranks.try_enter(0, 1, all_reduce(1)));
    ASSERT_TRUE(ranks.try_enter(1, 1, all_reduce(1)));
    ranks.raw(1, 1).sequence.store(nonsense);
    const auto line = ranks.of(0).open(1, 1);
    ASSERT_FALSE(line);
    EXPECT_EQ(line.error().code, Code::remote);
    EXPECT_EQ(line.error().peer, 1);
  }
}

TEST(CallDescriptors, WhatAPeerScribblesOverOurOwnLineChangesNothing) {
  Ranks ranks(2);
  ASSERT_TRUE(ranks.try_enter(0, 1, all_reduce(1)));
  ASSERT_TRUE(ranks.try_enter(1, 1, all_reduce(1)));
  ranks.raw(0, 1).signature.count = 5;
  EXPECT_TRUE(ranks.of(0).open(1, 1));
}

TEST(CallDescriptors, OfASingleRankNeverWait) {
  Ranks ranks(1);
  for (std::uint64_t call = 1; call <= 50; ++call) {
    ASSERT_TRUE(ranks.try_enter(0, call, all_reduce(call)));
    ASSERT_NE(*ranks.of(0).open(0, call), nullptr);
  }
}

// ---- Threads: no race (under TSan), nothing overwritten before it was read ----

struct Story {
  int ranks;
  std::uint64_t calls;
  unsigned seed;
};

/// What all ranks know of a call without talking: who is read in it, and how much. The one who is read stays the same
/// for a while: nothing holds it back but the ring, and those who read it do not read each other.
struct Scene {
  Scene(const Story& story, std::uint64_t call) {
    std::mt19937_64 random(story.seed * 1'000'003 + call);
    constexpr std::size_t sizes[] = {0, 8, 32, 33, 64, 256};
    bytes = sizes[random() % 6];
    constexpr std::uint64_t calls_alike = 50;
    std::mt19937_64 phase(story.seed * 1'000'003 + call / calls_alike);
    root = static_cast<int>(phase() % (story.ranks + 1));
    everybody = root == story.ranks;
  }
  bool reads(int rank, int from) const { return rank != from && (everybody || from == root); }
  std::size_t bytes;
  int root;
  bool everybody;
};

std::byte letter(int rank, std::uint64_t call, std::size_t at) {
  return static_cast<std::byte>(static_cast<std::uint64_t>(rank) * 31 + call * 7 + at);
}

void play(CallDescriptors& lines, int rank, const Story& story) {
  for (std::uint64_t call = 1; call <= story.calls; ++call) {
    const Scene scene(story, call);
    for (;;) {
      const auto may = lines.may_enter(call, DescriptorRings::is_compact(scene.bytes));
      ASSERT_TRUE(may) << may.error().text();
      if (*may) break;
      std::this_thread::yield();
    }
    CallDescriptor& line = lines.begin(call);
    line.signature = all_reduce(scene.bytes);
    std::byte* const payload = lines.payload(call, scene.bytes);
    for (std::size_t at = 0; at < scene.bytes; ++at) payload[at] = letter(rank, call, at);
    lines.publish(line, call);

    for (int peer = 0; peer < story.ranks; ++peer) {
      if (!scene.reads(rank, peer)) continue;
      const CallDescriptor* open = nullptr;
      while (open == nullptr) {
        const auto seen = lines.open(peer, call);
        ASSERT_TRUE(seen) << seen.error().text();
        open = *seen;
        if (open == nullptr) {
          ASSERT_TRUE(lines.look());
          std::this_thread::yield();
        }
      }
      const std::byte* const theirs = lines.payload(peer, call, scene.bytes);
      if (call % 5 == 0) std::this_thread::yield();  // a slow reader, whom the others must not overtake
      for (std::size_t at = 0; at < scene.bytes; ++at)
        ASSERT_EQ(theirs[at], letter(peer, call, at))
            << "call " << call << " of rank " << peer << ", seed " << story.seed;
    }
  }
}

TEST(CallDescriptors, AreReadAsPublishedByRacingRanks) {
  for (const Story story : {Story{2, 6000, 1}, Story{3, 3000, 2}, Story{5, 1500, 3}}) {
    Ranks ranks(story.ranks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < story.ranks; ++rank)
      threads.emplace_back([&, rank] { play(ranks.of(rank), rank, story); });
    for (auto& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace tutti
