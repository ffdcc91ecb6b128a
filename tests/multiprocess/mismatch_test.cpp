// Ranks that call different things: all of them hear it, with everybody's call, and nothing was written.
#include <memory>

#include "support/call.h"
#include "support/launch_ranks.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

enum class What { count, type, op, root, collective };

struct Case {
  What what;
  Kind kind;
  std::size_t count;
  Mix memory;
};

std::string name_of(const Case& c) {
  constexpr std::array names = {"Count", "Type", "Op", "Root", "Collective"};
  return std::string(names[static_cast<std::size_t>(c.what)]) + "_" + name(c.kind) + "_" + std::to_string(c.count) +
         (c.memory == Mix::mapped ? "_mapped" : "_heap");
}

Call usual_call(const Case& c) {
  return {.kind = c.kind, .type = tuttiFloat32, .count = c.count, .root = 0, .memory = c.memory, .seed = 9};
}

/// What the one odd rank calls.
Call odd_call(const Case& c) {
  Call call = usual_call(c);
  switch (c.what) {
    case What::count: call.count -= 1; break;
    case What::type: call.type = tuttiInt32; break;
    case What::op: call.op = Op::max; break;
    case What::root: call.root = 1; break;
    case What::collective: call.kind = c.kind == Kind::all_reduce ? Kind::all_gather : Kind::all_reduce; break;
  }
  return call;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (int k = 0; k < kind_count; ++k)
    for (const std::size_t count : {20u, 20'000u})
      for (const Mix memory : {Mix::mapped, Mix::heap}) {
        const auto kind = static_cast<Kind>(k);
        if (kind == Kind::barrier && (count != 20 || memory == Mix::heap)) continue;
        all.push_back({What::collective, kind, count, memory});
        if (kind == Kind::barrier) continue;
        all.push_back({What::count, kind, count, memory});
        all.push_back({What::type, kind, count, memory});
        if (reduces(kind)) all.push_back({What::op, kind, count, memory});
        if (kind == Kind::reduce || kind == Kind::broadcast || kind == Kind::gather || kind == Kind::scatter)
          all.push_back({What::root, kind, count, memory});
      }
  return all;
}

/// The name a message has for a kind.
std::string title(Kind kind) {
  std::string text;
  bool upper = true;
  for (const char c : std::string(name(kind))) {
    if (c != '_') text += upper ? static_cast<char>(std::toupper(c)) : c;
    upper = c == '_';
  }
  return text;
}

/// Through sockets each connection tells what both of its ends called, which is all that is known; data may have moved.
void expect_mismatch(Seat& seat, const Case& c, int odd_rank, bool sockets) {
  seat.doing(name_of(c));
  const auto comm = seat.init_one();
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(run_call({.count = 50, .seed = 1}, seat.here(), seat.ranks(), {comm}), "");
  ASSERT_TRUE(seat.meet());  // or the mismatch of those who are ahead would end the first call of others
  const Call call = seat.rank() == odd_rank ? odd_call(c) : usual_call(c);
  {
    CallOnRank mine(call, seat.rank(), seat.ranks());
    auto result = mine.submit(comm);
    if (result == tuttiSuccess) {
      // It needed nothing of the odd one, small as it was, or a leaf that only sends: the next call tells, or the one
      // after it where the others found out in the next call, of which this rank had all that it needed.
      EXPECT_TRUE(sockets || c.count < 100u) << name_of(c);
      for (int i = 0; i < 2 && result == tuttiSuccess; ++i) result = tuttiBarrier(comm, nullptr);
    } else {
      EXPECT_TRUE(sockets || mine.untouched()) << name_of(c);
    }
    EXPECT_TRUE(fails(result, tuttiInvalidUsage, "", comm)) << name_of(c);
    tuttiResult_t first = tuttiSuccess;
    EXPECT_TRUE(ok(tuttiCommGetAsyncError(comm, &first)));
    EXPECT_EQ(first, tuttiInvalidUsage);
    const std::string words = tuttiGetLastError(comm);
    EXPECT_NE(words.find("mismatch"), std::string::npos) << words;
    if (sockets) {
      EXPECT_NE(words.find("rank " + std::to_string(odd_rank) + ": #"), std::string::npos) << words;
    } else {
      EXPECT_NE(words.find(title(usual_call(c).kind)), std::string::npos) << words;
      EXPECT_NE(words.find(title(odd_call(c).kind)), std::string::npos) << words;
    }
    EXPECT_EQ(tuttiBarrier(comm, nullptr), tuttiInvalidUsage);
    // Peers look at this rank's lines for their message: all read before anybody leaves.
    ASSERT_TRUE(seat.meet());
  }
  EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
}

struct Setup {
  int ranks;
  Layout layout;
  const char* transport;
  int first;  ///< with which case the share of this setup begins
};

class Mismatch : public ::testing::TestWithParam<Setup> {};

INSTANTIATE_TEST_SUITE_P(
    Layouts, Mismatch,
    ::testing::Values(Setup{2, Layout::processes, "auto", 0}, Setup{5, Layout::processes, "auto", 1},
                      Setup{3, Layout::threads, "auto", 2}, Setup{3, Layout::processes, "slots", 3},
                      Setup{9, Layout::threads, "mapped", 0}, Setup{3, Layout::processes, "socket", 1},
                      Setup{3, Layout::processes, "rdma", 1}),
    [](const auto& test) {
      return std::string(name(test.param.layout)) + std::to_string(test.param.ranks) + test.param.transport;
    });

TEST_P(Mismatch, EveryRankHearsWhatEverybodyCalled) {
  const auto& setup = GetParam();
  launch_ranks({.ranks = setup.ranks,
                .layout = setup.layout,
                .environment = {std::string("TUTTI_TRANSPORT=") + setup.transport, "TUTTI_DEBUG=NONE"}},
               [&](Seat& seat) {
                 const std::string transport = setup.transport;
                 const bool across_hosts = transport == "socket" || transport == "rdma";
                 int odd = 0, nth = setup.first;
                 for (const auto& c : cases()) {
                   if (!in_share(nth++)) continue;
                   expect_mismatch(seat, c, odd++ % seat.ranks(), across_hosts);
                   if (::testing::Test::HasFailure()) return;
                 }
               });
}

/// A rank that makes more calls than the others must not wait for ever.
TEST(Calls, OneMoreThanTheOthersEndsWhenTheyLeave) {
  launch_ranks({.ranks = 3, .environment = {"TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    for (const std::size_t count : {1u, 100'000u}) {
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      std::vector<float> x(count);
      ASSERT_TRUE(ok(tuttiAllReduce(x.data(), x.data(), count, tuttiFloat32, tuttiSum, comm, nullptr)));
      // The error of one rank is everybody's: it must not come while somebody is still in the first call.
      ASSERT_TRUE(seat.meet());
      if (seat.rank() == 1) {
        const auto result = tuttiAllReduce(x.data(), x.data(), count, tuttiFloat32, tuttiSum, comm, nullptr);
        EXPECT_TRUE(fails(result, tuttiInvalidUsage, "#2 AllReduce", comm));
        EXPECT_TRUE(fails(result, tuttiInvalidUsage, "after #1 AllReduce", comm));
        EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      } else if (const auto left = tuttiCommDestroy(comm); left != tuttiSuccess) {
        // The call was there before this rank had left.
        EXPECT_TRUE(fails(left, tuttiInvalidUsage, "#2 AllReduce"));
      }
    }
  });
}

}  // namespace
}  // namespace tutti::testing
