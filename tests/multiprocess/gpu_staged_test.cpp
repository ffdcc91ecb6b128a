// Calls on device memory that go through the host, or by a kernel of each rank to the memory of others' GPUs: ranks in
// several processes, in threads, in one thread, on hosts of their own, with GPUs of their own; every collective, counts
// per rank, sends and receives.
#include <set>

#include "support/counts_call.h"
#include "support/gpu_calls.h"
#include "support/random.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

/// private_peers: peers of other processes cannot map what the program allocates, but what the library does.
enum class Way { host, peers, private_peers };

struct Ranks {
  int ranks;
  Layout layout;
  const char* transport = "auto";
  bool one_queue = false;  ///< streams share a queue of the hardware
  Way way = Way::host;
};

std::string name(const Ranks& r) {
  return std::string(name(r.layout)) + "_" + std::to_string(r.ranks) + "_" + r.transport +
         (r.one_queue ? "_one_queue" : "") +
         (r.way == Way::host    ? ""
          : r.way == Way::peers ? "_peers"
                                : "_private_peers");
}

/// Where kernels that meet would serve, they are left out.
Team team_of(const Ranks& r, const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings{std::string("TUTTI_TRANSPORT=") + r.transport};
  if (r.way != Way::host)
    settings.emplace_back("TUTTI_GPU_P2P=always");
  else if (real_library != nullptr || r.layout == Layout::threads || r.layout == Layout::one_thread || r.ranks == 1)
    settings.emplace_back("TUTTI_GPU_STAGED=always");
  settings.insert(settings.end(), more.begin(), more.end());
  return launch_group(r.ranks, r.layout, settings);
}

class GpuStaged : public ::testing::TestWithParam<Ranks> {
 protected:
  using Body = std::function<void(Seat&, CudaUser&, const std::vector<tuttiComm_t>&)>;
  /// `plain`: some of it are collectives with one count, which alone go to kernels.
  static void run(const Body& body, bool plain = true) {
    launch_ranks(team_of(GetParam()), [&](Seat& seat) {
      set_up_fake();
      CudaUser user(library);
      const auto comms = seat.init();
      ASSERT_FALSE(comms.empty());
      if (!seat.meet()) return;
      if (GetParam().way == Way::private_peers) user.allocate_pooled(true);
      body(seat, user, comms);
      const bool launched = launches() > 0;
      EXPECT_EQ(launched, real_library != nullptr || (plain && GetParam().way != Way::host));
      destroy(comms);
    });
  }
  static void set_up_fake() {
    fake_cuda(library).set_one_queue(GetParam().one_queue);
    fake_cuda(library).set_shareable(GetParam().way != Way::host);
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, GpuStaged,
                         ::testing::Values(Ranks{1, Layout::processes}, Ranks{2, Layout::processes},
                                           Ranks{3, Layout::processes, "socket"}, Ranks{3, Layout::processes, "slots"},
                                           Ranks{4, Layout::pairs}, Ranks{3, Layout::threads},
                                           Ranks{4, Layout::one_thread}, Ranks{4, Layout::pairs, "auto", true},
                                           Ranks{3, Layout::threads, "auto", true},
                                           Ranks{3, Layout::one_thread, "auto", true},
                                           Ranks{2, Layout::processes, "auto", true, Way::peers},
                                           Ranks{3, Layout::processes, "mapped", false, Way::private_peers},
                                           Ranks{4, Layout::pairs, "auto", false, Way::peers},
                                           Ranks{5, Layout::pairs, "auto", false, Way::private_peers},
                                           Ranks{3, Layout::threads, "auto", false, Way::peers},
                                           Ranks{7, Layout::threads, "auto", false, Way::peers}),
                         [](const auto& test) { return name(test.param); });

TEST_P(GpuStaged, EveryCollective) {
  run([](Seat& seat, CudaUser& user, const std::vector<tuttiComm_t>& comms) {
    auto* const stream = user.stream();
    std::uint64_t nth = 0;
    for (int kind = 0; kind < device_kind_count; ++kind)
      for (const auto& [type, op] : {std::pair{tuttiInt8, Op::sum}, std::pair{tuttiFloat32, Op::avg},
                                     std::pair{tuttiBfloat16, Op::pre_mul_sum}, std::pair{tuttiInt64, Op::max}})
        for (const std::size_t count : {3u, 5'000u}) {
          if (!in_share(static_cast<int>(++nth))) continue;
          const Call call{.kind = static_cast<Kind>(kind),
                          .type = type,
                          .op = op,
                          .count = kind == static_cast<int>(Kind::barrier) ? 0 : count,
                          .root = static_cast<int>(nth) % seat.ranks(),
                          .in_place = static_cast<InPlace>(nth % 3),
                          .memory = Mix::device,
                          .misaligned = nth % 2,
                          .seed = nth};
          seat.doing(call.text());
          ASSERT_EQ(run_on_gpu(call, seat, comms, user, stream, 2), "") << call.text();
        }
  });
}

TEST_P(GpuStaged, CountsPerRank) {
  run(
      [](Seat& seat, CudaUser& user, const std::vector<tuttiComm_t>& comms) {
        auto* const stream = user.stream();
        for (std::uint64_t seed = 1; seed <= 16; ++seed) {
          CountsCall call = random_counts_call(seed, seat.ranks());
          call.memory = Mix::device;
          call.large = 5'000;
          seat.doing(call.text());
          ASSERT_EQ(run_counts_on_gpu(call, seat, comms, user, stream), "") << call.text();
        }
      },
      /*plain=*/false);
}

/// A subset of ranks sends to another, through which lists that are no other collective's go.
TEST_P(GpuStaged, ScatterGather) {
  run(
      [](Seat& seat, CudaUser& user, const std::vector<tuttiComm_t>& comms) {
        auto* const stream = user.stream();
        constexpr std::size_t count = 500;
        const int last = seat.ranks() - 1;
        ASSERT_TRUE(ok(tuttiGroupStart()));
        std::vector<std::int32_t*> outputs;
        for (std::size_t i = 0; i < comms.size(); ++i) {
          outputs.push_back(user.put(std::vector<std::int32_t>(count, -1)));
          ASSERT_TRUE(ok(tuttiScatterGather(user.put(numbers(count, seat.here()[i])), outputs.back(), &last, 1, &last,
                                            1, count, count, tuttiInt32, comms[i], tuttiCudaStream(stream))));
        }
        ASSERT_TRUE(ok(tuttiGroupEnd()));
        user.synchronize(stream);
        for (std::size_t i = 0; i < comms.size(); ++i)
          EXPECT_EQ(user.get(outputs[i], count),
                    seat.here()[i] == last ? numbers(count, last) : std::vector<std::int32_t>(count, -1));
      },
      /*plain=*/false);
}

/// A stream that waits for another process may hold up what a stream there waits for: see docs/gpus.md.
bool may_hold_up(const Ranks& r) {
  return r.one_queue && r.layout == Layout::pairs;
}

/// Around a ring, and to itself, several messages each, on one stream.
TEST_P(GpuStaged, SendsAndReceives) {
  if (may_hold_up(GetParam())) GTEST_SKIP() << "too few queues";
  run(
      [](Seat& seat, CudaUser& user, const std::vector<tuttiComm_t>& comms) {
        auto* const stream = user.stream();
        constexpr std::array<std::size_t, 4> counts = {1, 0, 1000, 60'000};
        const int ranks = seat.ranks();
        std::vector<std::vector<std::int32_t*>> received(comms.size());
        for (int round = 0; round < 2; ++round) {
          ASSERT_TRUE(ok(tuttiGroupStart()));
          for (std::size_t i = 0; i < comms.size(); ++i) {
            const int rank = seat.here()[i];
            received[i].clear();
            for (const int distance : {1, 0})
              for (const std::size_t count : counts) {
                received[i].push_back(user.put(std::vector<std::int32_t>(count + 1, -1)));
                ASSERT_TRUE(ok(tuttiRecv(received[i].back(), count, tuttiInt32, (rank + ranks - distance) % ranks,
                                         comms[i], tuttiCudaStream(stream))));
                auto* const sent = user.put(numbers(count + 1, rank, round));
                ASSERT_TRUE(ok(
                    tuttiSend(sent, count, tuttiInt32, (rank + distance) % ranks, comms[i], tuttiCudaStream(stream))));
              }
          }
          ASSERT_TRUE(ok(tuttiGroupEnd()));
          user.synchronize(stream);
          for (std::size_t i = 0; i < comms.size(); ++i) {
            std::size_t nth = 0;
            for (const int distance : {1, 0})
              for (const std::size_t count : counts) {
                auto expected = numbers(count + 1, (seat.here()[i] + ranks - distance) % ranks, round);
                expected.back() = -1;
                EXPECT_EQ(user.get(received[i][nth++], count + 1), expected) << count;
              }
          }
        }
      },
      /*plain=*/false);
}

/// Without a group, in an order that cannot deadlock; on two streams of a rank.
TEST_P(GpuStaged, OneMessageAfterAnother) {
  if (GetParam().ranks < 2 || GetParam().layout == Layout::one_thread) GTEST_SKIP() << "needs two threads";
  run(
      [](Seat& seat, CudaUser& user, const std::vector<tuttiComm_t>& comms) {
        auto* const to = user.stream();
        auto* const from = user.stream();
        constexpr std::size_t count = 20'000;
        for (int round = 0; round < 5 && seat.rank() < 2; ++round) {
          auto* const sent = user.put(numbers(count, seat.rank(), round));
          auto* const received = user.put(std::vector<std::int32_t>(count, -1));
          for (const int sender : {0, 1})
            if (seat.rank() == sender)
              ASSERT_TRUE(ok(tuttiSend(sent, count, tuttiInt32, 1 - sender, comms[0], tuttiCudaStream(to))));
            else
              ASSERT_TRUE(ok(tuttiRecv(received, count, tuttiInt32, sender, comms[0], tuttiCudaStream(from))));
          user.synchronize(from);
          EXPECT_EQ(user.get(received, count), numbers(count, 1 - seat.rank(), round));
        }
        ASSERT_TRUE(seat.meet());
      },
      /*plain=*/false);
}

/// Nothing waits for the GPU, and nothing is read before the stream has come to it.
TEST_P(GpuStaged, CallsAreQueued) {
  run([](Seat& seat, CudaUser& user, const std::vector<tuttiComm_t>& comms) {
    auto& fake = fake_cuda(library);
    for (const std::size_t count : {1u, 1000u, 200'000u}) {
      const auto ranks = make_ranks(user, seat, comms, count);
      std::vector<std::int32_t*> fresh;
      for (const OneRank& one : ranks) fresh.push_back(user.put(numbers(count, one.rank, 1)));
      if (count == 1) all_reduce(ranks);  // brings what all calls need to the GPU, and waits for that
      for (const OneRank& one : ranks) user.synchronize(one.stream);
      if (!seat.meet()) return;
      fake.hold();
      if (!seat.meet()) return;
      for (int call = 0; call < 3; ++call) {
        for (std::size_t i = 0; i < ranks.size(); ++i)  // what is read is there only once the stream has come so far
          user.call<int(cuda::Address, cuda::Address, std::size_t, cuda::Stream)>(
              "cuMemcpyAsync", reinterpret_cast<cuda::Address>(ranks[i].input),
              reinterpret_cast<cuda::Address>(fresh[i]), count * sizeof(std::int32_t), ranks[i].stream);
        all_reduce(ranks);
      }
      if (!seat.meet()) return;
      fake.release();
      for (const OneRank& one : ranks) {
        user.synchronize(one.stream);
        EXPECT_EQ(user.get(one.output, count), sums(count, seat.ranks(), 1));
      }
    }
  });
}

/// Each thread's own default stream: the thread that makes a call queues it.
TEST_P(GpuStaged, TheStreamOfEachThread) {
  run([](Seat& seat, CudaUser& user, const std::vector<tuttiComm_t>& comms) {
    auto* const stream = reinterpret_cast<cuda::Stream>(cuda::stream_per_thread);  // NOLINT: as CUDA does
    for (const std::size_t count : {7u, 50'000u}) {
      const Call call{.kind = Kind::all_reduce,
                      .type = tuttiInt32,
                      .op = Op::sum,
                      .count = count,
                      .memory = Mix::device,
                      .seed = count};
      ASSERT_EQ(run_on_gpu(call, seat, comms, user, stream, 2), "") << call.text();
    }
  });
}

/// Each call of a group reads what the one before it wrote; sends and receives beside them.
TEST_P(GpuStaged, CollectivesOfAGroupAreInOrder) {
  if (may_hold_up(GetParam())) GTEST_SKIP() << "too few queues";
  run([](Seat& seat, CudaUser& user, const std::vector<tuttiComm_t>& comms) {
    constexpr std::size_t count = 3000;
    const int ranks = seat.ranks();
    const auto all = make_ranks(user, seat, comms, count);
    std::vector<std::int32_t*> twice, received;
    ASSERT_TRUE(ok(tuttiGroupStart()));
    for (const OneRank& one : all) {
      twice.push_back(user.put(std::vector<std::int32_t>(count, -1)));
      received.push_back(user.put(std::vector<std::int32_t>(count, -1)));
      auto* const stream = tuttiCudaStream(one.stream);
      ASSERT_TRUE(ok(tuttiRecv(received.back(), count, tuttiInt32, (one.rank + 1) % ranks, one.comm, stream)));
      ASSERT_TRUE(ok(one.all_reduce()));
      ASSERT_TRUE(ok(tuttiAllReduce(one.output, twice.back(), count, tuttiInt32, tuttiSum, one.comm, stream)));
      ASSERT_TRUE(ok(tuttiSend(one.input, count, tuttiInt32, (one.rank + ranks - 1) % ranks, one.comm, stream)));
    }
    ASSERT_TRUE(ok(tuttiGroupEnd()));
    auto expected = sums(count, ranks);
    for (auto& value : expected) value *= ranks;
    for (std::size_t i = 0; i < all.size(); ++i) {
      user.synchronize(all[i].stream);
      EXPECT_EQ(user.get(twice[i], count), expected);
      EXPECT_EQ(user.get(received[i], count), numbers(count, (all[i].rank + 1) % ranks));
    }
  });
}

/// Calls on host memory and on device memory of one communicator take turns, in the order in which they were made.
TEST_P(GpuStaged, BesideCallsOnTheHost) {
  run([](Seat& seat, CudaUser& user, const std::vector<tuttiComm_t>& comms) {
    constexpr std::size_t count = 700;
    const auto all = make_ranks(user, seat, comms, count);
    tuttiStream_t queue = nullptr;
    ASSERT_TRUE(ok(tuttiStreamCreate(&queue)));
    std::vector<std::vector<std::int32_t>> host(comms.size());
    for (int round = 0; round < 6; ++round) {
      for (auto& buffer : host) buffer = numbers(count, 3, round);
      for (const OneRank& one : all) user.write(one.input, numbers(count, one.rank, round));
      all_reduce(all);
      auto* const stream = round % 2 == 0 ? nullptr : queue;
      ASSERT_TRUE(ok(tuttiGroupStart()));
      for (std::size_t i = 0; i < comms.size(); ++i)
        ASSERT_TRUE(ok(tuttiAllReduce(host[i].data(), host[i].data(), count, tuttiInt32, tuttiSum, comms[i], stream)));
      ASSERT_TRUE(ok(tuttiGroupEnd()));
      all_reduce(all);
      ASSERT_TRUE(ok(tuttiStreamSynchronize(queue)));
      for (const auto& buffer : host) EXPECT_EQ(buffer[9], seat.ranks() * numbers(count, 3, round)[9]);
      for (const OneRank& one : all) {
        user.synchronize(one.stream);
        EXPECT_EQ(user.get(one.output, count), sums(count, seat.ranks(), round));
      }
    }
    EXPECT_TRUE(ok(tuttiStreamDestroy(queue)));
  });
}

/// Destroyed while calls are queued: they are finished first. And nothing is left behind.
TEST_P(GpuStaged, DestructionFinishesWhatIsQueued) {
  launch_ranks(team_of(GetParam()), [](Seat& seat) {
    set_up_fake();
    CudaUser user(library);
    if (!seat.meet()) return;
    const auto before = fake_cuda(library).live();
    if (!seat.meet()) return;
    {
      CudaUser own(library);
      constexpr std::size_t count = 100'000;
      const auto comms = seat.init();
      ASSERT_FALSE(comms.empty());
      const auto all = make_ranks(own, seat, comms, count);
      for (int call = 0; call < 3; ++call) all_reduce(all);
      destroy(comms);
      for (const OneRank& one : all) {
        own.synchronize(one.stream);
        EXPECT_EQ(own.get(one.output, count), sums(count, seat.ranks()));
      }
    }
    user.make_current();
    if (!seat.meet()) return;
    EXPECT_EQ(fake_cuda(library).live(), before);
    if (!seat.meet()) return;
  });
}

}  // namespace
}  // namespace tutti::testing
