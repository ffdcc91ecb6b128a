// Small calls without a plan: the same bits as with one, whoever of the ranks has which, also where ranks are late or
// their calls differ.
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "support/call.h"
#include "support/folder.h"
#include "support/launch_ranks.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

/// Who makes the call in a group, where it has a plan, and not by itself.
enum class Grouped { nobody, some, everybody };

/// "" or what is wrong. `hash`: of the output.
std::string make(const Call& call, tuttiComm_t comm, const Seat& seat, Grouped grouped, std::uint64_t& hash) {
  CallOnRank mine(call, seat.rank(), seat.ranks());
  mine.fill(call.seed);
  const bool group = grouped == Grouped::everybody || (grouped == Grouped::some && seat.rank() % 2 == 1);
  if (group && tuttiGroupStart() != tuttiSuccess) return "cannot start a group";
  if (const auto result = mine.submit(comm); result != tuttiSuccess) return tuttiGetLastError(comm);
  if (group && tuttiGroupEnd() != tuttiSuccess) return tuttiGetLastError(comm);
  hash = mine.output_hash();
  return mine.check();
}

/// Sums over float types show the order of reduction in their last bits.
std::vector<Call> calls() {
  std::vector<Call> all;
  int nth = 0;
  for (int kind = 0; kind < kind_count; ++kind)
    for (const std::size_t count : {0, 1, 3, 8, 9, 17, 100, 333})
      for (const auto type : {tuttiInt8, tuttiInt32, tuttiFloat16, tuttiBfloat16, tuttiFloat32, tuttiFloat64})
        for (const auto in_place : {InPlace::none, InPlace::all, InPlace::some}) {
          if (!in_share(nth++)) continue;
          const auto op = static_cast<Op>(nth % 5);
          const bool sums = (op == Op::sum || op == Op::avg) && type != tuttiInt8 && type != tuttiInt32;
          all.push_back({.kind = static_cast<Kind>(kind),
                         .type = type,
                         .op = op,
                         .values = sums ? Values::random : Values::exact,
                         .count = count,
                         .root = nth % 2,
                         .in_place = in_place,
                         .memory = static_cast<Mix>(nth % mix_count),
                         .misaligned = static_cast<std::size_t>(nth % 3),
                         .seed = static_cast<std::uint64_t>(nth)});
        }
  return all;
}

/// A first call has a plan, and shows that later ones are small.
void make_first_calls(tuttiComm_t comm, const Seat& seat) {
  std::uint64_t hash = 0;
  for (int kind = 0; kind < kind_count; ++kind)
    EXPECT_EQ(make({.kind = static_cast<Kind>(kind), .count = 333, .seed = 1}, comm, seat, Grouped::nobody, hash), "");
}

class SmallCalls : public ::testing::TestWithParam<std::tuple<int, Layout>> {
 protected:
  static void run(const std::function<void(Seat&, tuttiComm_t)>& body) {
    const auto [ranks, layout] = GetParam();
    launch_ranks({.ranks = ranks, .layout = layout}, [&body](Seat& seat) {
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      make_first_calls(comm, seat);
      body(seat, comm);
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Teams, SmallCalls,
                         ::testing::Combine(::testing::Values(2, 3, 5),
                                            ::testing::Values(Layout::threads, Layout::processes)),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) + "_" + name(std::get<1>(test.param));
                         });

TEST_P(SmallCalls, GiveTheBitsOfCallsWithAPlan) {
  run([](Seat& seat, tuttiComm_t comm) {
    for (const Call& call : calls()) {
      std::uint64_t planned = 0, hash = 0;
      ASSERT_EQ(make(call, comm, seat, Grouped::everybody, planned), "") << call.text();
      for (const auto grouped : {Grouped::nobody, Grouped::some}) {
        ASSERT_EQ(make(call, comm, seat, grouped, hash), "") << call.text();
        ASSERT_EQ(hash, planned) << call.text();
      }
    }
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// On a machine where payloads of 4 KiB or more are written around the caches.
TEST_P(SmallCalls, GiveTheBitsOfCallsWithAPlanAroundTheCaches) {
  const Folder folder;
  const std::string speeds = folder / "speeds";
  {
    std::ofstream file(speeds);
    file << "tutti machine 2\n";
    for (const char* size : {"16K", "128K", "1M", "3M", "8M", "32M"})
      file << fmt::format("far_write_gbps_{0} 2\nstreamed_read_gbps_{0} 15\nstreamed_write_gbps_{0} 25\n", size);
  }
  const auto [ranks, layout] = GetParam();
  launch_ranks({.ranks = ranks, .layout = layout, .environment = {"TUTTI_MACHINE_FILE=" + speeds}}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    std::uint64_t seed = 0;
    for (const std::size_t count : {4096, 1021, 1024, 1500, 4096, 2053})
      for (int kind = 0; kind < kind_count; ++kind) {
        Call call{.kind = static_cast<Kind>(kind),
                  .type = seed % 2 == 0 ? tuttiFloat32 : tuttiBfloat16,
                  .values = Values::random,
                  .count = count,
                  .misaligned = seed % 3,
                  .seed = ++seed};
        std::uint64_t planned = 0, hash = 0;
        ASSERT_EQ(make(call, comm, seat, Grouped::everybody, planned), "") << call.text();
        ASSERT_EQ(make(call, comm, seat, Grouped::nobody, hash), "") << call.text();
        ASSERT_EQ(hash, planned) << call.text();
      }
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// Lets the others begin the call, and then take turns on the cores for longer than they wait without a plan.
void be_late(Seat& seat, std::uint64_t call) {
  for (int rank = 0; rank < seat.ranks(); ++rank)
    if (rank != seat.rank()) {
      EXPECT_TRUE(seat.board().wait_for(static_cast<std::size_t>(rank), call));
    }
  for (int turn = 0; turn < 1'000; ++turn) std::this_thread::yield();
}

/// What a rank has begun without a plan goes on with one where another rank is late.
TEST_P(SmallCalls, WaitForALateRank) {
  run([](Seat& seat, tuttiComm_t comm) {
    std::uint64_t made = 0;
    for (int kind = 0; kind < kind_count; ++kind)
      for (const auto in_place : {InPlace::none, InPlace::all}) {
        const Call call{.kind = static_cast<Kind>(kind), .count = 7, .in_place = in_place, .seed = 5};
        std::uint64_t hash = 0;
        ++made;
        if (seat.rank() == kind % 2) be_late(seat, made);
        seat.board().raise(static_cast<std::size_t>(seat.rank()), made);
        ASSERT_EQ(make(call, comm, seat, Grouped::nobody, hash), "") << call.text();
      }
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// A call of a stream may still be under way, or about to show that calls of its size are small.
TEST_P(SmallCalls, FollowCallsOfAStream) {
  run([](Seat& seat, tuttiComm_t comm) {
    tuttiStream_t stream = nullptr;
    ASSERT_TRUE(ok(tuttiStreamCreate(&stream)));
    for (std::size_t count = 1; count < 60; ++count) {
      const Call call{.kind = static_cast<Kind>(count % kind_count), .count = 334 + count, .seed = count};
      CallOnRank first(call, seat.rank(), seat.ranks()), second(call, seat.rank(), seat.ranks());
      first.fill(count);
      second.fill(count);
      ASSERT_TRUE(ok(first.submit(comm, stream)));
      ASSERT_TRUE(ok(second.submit(comm)));
      ASSERT_TRUE(ok(tuttiStreamSynchronize(stream)));
      ASSERT_EQ(first.check(), "") << call.text();
      ASSERT_EQ(second.check(), "") << call.text();
    }
    EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST_P(SmallCalls, WriteNothingWhereTheyDiffer) {
  run([](Seat& seat, tuttiComm_t comm) {
    Call call{.kind = Kind::all_reduce, .count = 6, .seed = 3};
    if (seat.rank() == 1) call.count = 5;
    ASSERT_TRUE(seat.meet());  // a rank that hears of it in its last first call would fail there
    CallOnRank mine(call, seat.rank(), seat.ranks());
    mine.fill(3);
    EXPECT_TRUE(fails(mine.submit(comm), tuttiInvalidUsage, "count=5", comm));
    EXPECT_TRUE(mine.untouched());
    EXPECT_TRUE(ok(tuttiCommAbort(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
