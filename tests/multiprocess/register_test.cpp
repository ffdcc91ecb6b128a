// Ordinary memory that tuttiCommRegister makes mappable: right results before, during and after, by the faster way, and
// the caller's own memory again in the end.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "support/folder.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

constexpr std::size_t count = 100'000;

struct Free {
  void operator()(void* at) const { std::free(at); }
};
using Floats = std::unique_ptr<float[], Free>;

Floats floats() {
  return Floats(static_cast<float*>(std::malloc(count * sizeof(float))));
}

/// Whether an all-reduce from one buffer to the other gives the sums.
bool sums_up(Seat& seat, tuttiComm_t comm, float* from, float* to, float seed) {
  for (std::size_t i = 0; i < count; ++i)
    from[i] = seed + static_cast<float>(i % 100 + static_cast<std::size_t>(seat.rank()));
  std::fill_n(to, count, -1.F);
  if (!ok(tuttiAllReduce(from, to, count, tuttiFloat32, tuttiSum, comm, nullptr))) return false;
  const int ranks = seat.ranks();
  for (std::size_t i = 0; i < count; ++i) {
    const auto expected =
        static_cast<float>(ranks) * (seed + static_cast<float>(i % 100)) + static_cast<float>(ranks * (ranks - 1) / 2);
    if (to[i] != expected) return false;
  }
  return true;
}

std::string log_of(const Folder& folder, int rank) {
  std::ifstream file(folder / ("log." + std::to_string(rank)));
  return {std::istreambuf_iterator<char>(file), {}};
}

class Registered : public ::testing::TestWithParam<std::tuple<Layout, bool>> {
 protected:
  /// `body(seat, comm)`, and then how often a rank has begun to use mapped memory.
  static void run(const std::function<void(Seat&, tuttiComm_t)>& body) {
    const auto [layout, mapped] = GetParam();
    const Folder folder;
    launch_ranks({.ranks = 3,
                  .layout = layout,
                  .environment = {std::string("TUTTI_REGISTER=") + (mapped ? "mapped" : "ordinary"), "TUTTI_DEBUG=INFO",
                                  "TUTTI_DEBUG_SUBSYS=COLL"},
                  .environment_of =
                      [&](int rank) {
                        return std::vector<std::string>{"TUTTI_DEBUG_FILE=" + folder / ("log." + std::to_string(rank))};
                      }},
                 [&](Seat& seat) {
                   const auto comm = seat.init_one();
                   ASSERT_NE(comm, nullptr);
                   body(seat, comm);
                 });
    if (layout == Layout::threads) return;  // they reach each other's memory anyway
    for (int rank = 0; rank < 3; ++rank)
      EXPECT_EQ(log_of(folder, rank).find("over mapped") != std::string::npos, mapped) << log_of(folder, rank);
  }
};

INSTANTIATE_TEST_SUITE_P(Memory, Registered,
                         ::testing::Combine(::testing::Values(Layout::threads, Layout::processes), ::testing::Bool()),
                         [](const auto& test) {
                           return std::string(name(std::get<0>(test.param))) +
                                  (std::get<1>(test.param) ? "_mapped" : "_ordinary");
                         });

TEST_P(Registered, IsUsedUntilItIsDeregistered) {
  run([](Seat& seat, tuttiComm_t comm) {
    const Floats from = floats(), to = floats();
    EXPECT_TRUE(sums_up(seat, comm, from.get(), to.get(), 1));
    for (int round = 0; round < 3; ++round) {
      void *sent = nullptr, *received = nullptr;
      ASSERT_TRUE(ok(tuttiCommRegister(comm, from.get(), count * sizeof(float), &sent)));
      ASSERT_TRUE(ok(tuttiCommRegister(comm, to.get(), count * sizeof(float), &received)));
      if (round == 0) {
        EXPECT_NE(to[7], 0.F) << "it keeps its content";
      }
      EXPECT_TRUE(sums_up(seat, comm, from.get(), to.get(), 2));
      EXPECT_TRUE(ok(tuttiCommDeregister(comm, sent)));
      EXPECT_TRUE(sums_up(seat, comm, from.get(), to.get(), 4)) << "one buffer is mapped";
      EXPECT_TRUE(ok(tuttiCommDeregister(comm, received)));
      EXPECT_TRUE(sums_up(seat, comm, from.get(), to.get(), 5));
      EXPECT_EQ(tuttiCommDeregister(comm, received), tuttiInvalidArgument);
    }
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// A communicator that ends gives back what is still registered, so that freed memory is used anew like any other.
TEST_P(Registered, EndsWithTheCommunicator) {
  run([](Seat& seat, tuttiComm_t comm) {
    tuttiComm_t other = nullptr;
    ASSERT_TRUE(ok(tuttiCommSplit(comm, 0, seat.rank(), &other, nullptr)));
    for (int round = 0; round < 2; ++round) {
      const Floats from = floats(), to = floats();
      const tuttiComm_t now = round == 0 ? other : comm;
      for (float* const buffer : {from.get(), to.get()}) {
        void* handle = nullptr;
        ASSERT_TRUE(ok(tuttiCommRegister(now, buffer, count * sizeof(float), &handle)));
      }
      EXPECT_TRUE(sums_up(seat, now, from.get(), to.get(), 6));
      EXPECT_TRUE(ok(tuttiCommDestroy(now)));
    }
  });
}

}  // namespace
}  // namespace tutti::testing
