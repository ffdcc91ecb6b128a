// Memory of calls by RDMA over the fake devices: which of it is sent and received in place, and that what is unmapped
// between calls is never used again.
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstring>

#include "support/call.h"
#include "support/fake_verbs/fake_verbs.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

/// What this process's fake library has counted; the library is there once a communicator has used it.
FakeVerbsCounters counters() {
  FakeVerbsCounters all{};
  void* const library = ::dlopen(TUTTI_FAKE_VERBS, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return all;
  using Count = void (*)(FakeVerbsCounters*);
  reinterpret_cast<Count>(::dlsym(library, "fake_verbs_counters"))(&all);
  ::dlclose(library);
  return all;
}

class RdmaMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (RdmaFabric::by_devices()) GTEST_SKIP() << "devices of this machine do not say what they wrote";
  }
  static bool run(int ranks, const std::function<void(Seat&, tuttiComm_t)>& body, const std::string& algorithm) {
    const std::vector<std::string> environment{"TUTTI_TRANSPORT=rdma", "TUTTI_ALGO=" + algorithm};
    return launch_ranks({.ranks = ranks, .environment = environment}, [&](Seat& seat) {
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      body(seat, comm);
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
  }
};

struct Share {
  Kind kind;
  const char* algorithm;
  double least;  ///< of the bytes written: those that went where the receiver wants them
};

TEST_F(RdmaMemory, MappedBuffersAreReceivedInPlace) {
  // Of an all-reduce, half of the bytes are partial sums. What leaves before an invitation can come goes into slots:
  // the first messages of a call, as many as a ring has slots.
  for (const Share& share : {Share{Kind::all_gather, "ring", 0.7}, Share{Kind::all_to_all, "pairwise", 0.5},
                             Share{Kind::broadcast, "chain", 0.5}, Share{Kind::all_reduce, "ring", 0.2}}) {
    const bool ended = run(
        3,
        [&](Seat& seat, tuttiComm_t comm) {
          const std::size_t count = count_for(share.kind, tuttiInt32, seat.ranks(), 24 << 20);
          for (const Mix memory : {Mix::mapped, Mix::heap})
            for (const InPlace in_place : {InPlace::none, InPlace::all}) {
              const Call call{.kind = share.kind,
                              .type = tuttiInt32,
                              .count = count,
                              .in_place = in_place,
                              .memory = memory,
                              .seed = 3};
              const FakeVerbsCounters before = counters();
              EXPECT_EQ(run_call(call, seat.here(), seat.ranks(), {comm}), "");
              const FakeVerbsCounters after = counters();
              const auto written = static_cast<double>(after.bytes_written - before.bytes_written);
              const double direct = static_cast<double>(after.bytes_through_windows - before.bytes_through_windows);
              EXPECT_TRUE(memory != Mix::heap || direct == 0) << "ordinary memory is not registered";
              if (memory == Mix::heap || in_place == InPlace::all || written < 1e6) continue;
              EXPECT_GE(direct, share.least * written) << name(share.kind) << ", rank " << seat.rank();
            }
        },
        share.algorithm);
    ASSERT_TRUE(ended) << name(share.kind);
  }
}

TEST_F(RdmaMemory, RegisteredBuffersAreReceivedInPlaceUntilTheyAreTakenBack) {
  EXPECT_TRUE(run(
      2,
      [](Seat& seat, tuttiComm_t comm) {
        constexpr std::size_t words = 3 << 20;
        std::vector<std::uint32_t> values(words);
        void* handle = nullptr;
        EXPECT_TRUE(fails(tuttiCommRegister(comm, values.data(), 0, &handle), tuttiInvalidArgument, "bytes"));
        ASSERT_TRUE(ok(tuttiCommRegister(comm, values.data(), words * sizeof values[0], &handle)));
        for (const bool registered : {true, false}) {
          for (std::size_t i = 0; i < words; ++i) values[i] = static_cast<std::uint32_t>(i + seat.rank());
          const std::uint64_t before = counters().bytes_through_windows;
          ASSERT_TRUE(ok(tuttiAllReduce(values.data(), values.data(), words, tuttiUint32, tuttiSum, comm, nullptr)));
          std::size_t wrong = 0;
          for (std::size_t i = 0; i < words; ++i) wrong += values[i] != static_cast<std::uint32_t>(2 * i + 1);
          EXPECT_EQ(wrong, 0u);
          EXPECT_EQ(counters().bytes_through_windows > before, registered);
          ASSERT_TRUE(!registered || ok(tuttiCommDeregister(comm, handle)));
        }
        EXPECT_TRUE(fails(tuttiCommDeregister(comm, handle), tuttiInvalidArgument, "already deregistered"));
      },
      "ring"));
}

TEST_F(RdmaMemory, WhatIsUnmappedAndMappedAgainIsRight) {
  EXPECT_TRUE(run(
      2,
      [](Seat& seat, tuttiComm_t comm) {
        constexpr std::size_t bytes = 4 << 20, words = bytes / sizeof(std::uint32_t);
        void* const fixed = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(fixed, MAP_FAILED);
        for (std::uint32_t round = 0; round < 12; ++round) {
          void* at = nullptr;
          const bool is_mapped = round % 2 == 0;  // then often where the last one was
          if (!is_mapped)
            at = ::mmap(fixed, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
          ASSERT_TRUE(!is_mapped || ok(tuttiMemAlloc(&at, bytes)));
          auto* const values = static_cast<std::uint32_t*>(at);
          for (std::size_t i = 0; i < words; ++i) values[i] = static_cast<std::uint32_t>(i + round + seat.rank());
          ASSERT_TRUE(ok(tuttiAllReduce(at, at, words, tuttiUint32, tuttiSum, comm, nullptr)));
          std::size_t wrong = 0;
          for (std::size_t i = 0; i < words; ++i) wrong += values[i] != static_cast<std::uint32_t>(2 * (i + round) + 1);
          EXPECT_EQ(wrong, 0u) << "round " << round;
          ASSERT_TRUE(!is_mapped || ok(tuttiMemFree(at)));
          constexpr int anew = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
          ASSERT_TRUE(is_mapped || ::mmap(fixed, bytes, PROT_NONE, anew, -1, 0) != MAP_FAILED);
        }
        ::munmap(fixed, bytes);
      },
      "ring"));
}

}  // namespace
}  // namespace tutti::testing
