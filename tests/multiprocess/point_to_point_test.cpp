// Sends and receives: the k-th from a to b meets the k-th on b from a, in groups of any mix and alone.
#include <algorithm>
#include <random>

#include "support/call.h"
#include "support/launch_ranks.h"
#include "support/reference_reduce.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

struct Setup {
  int ranks;
  Layout layout;
  const char* transport;
};

class PointToPoint : public ::testing::TestWithParam<Setup> {
 protected:
  Team team() const {
    const auto& p = GetParam();
    return {.ranks = p.ranks, .layout = p.layout, .environment = {std::string("TUTTI_TRANSPORT=") + p.transport}};
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, PointToPoint,
                         ::testing::Values(Setup{1, Layout::threads, "auto"}, Setup{2, Layout::processes, "auto"},
                                           Setup{3, Layout::threads, "auto"}, Setup{4, Layout::pairs, "auto"},
                                           Setup{5, Layout::processes, "slots"}, Setup{4, Layout::one_thread, "auto"},
                                           Setup{4, Layout::processes, "cma"}, Setup{9, Layout::threads, "mapped"},
                                           Setup{3, Layout::processes, "socket"}, Setup{6, Layout::pairs, "socket"},
                                           Setup{3, Layout::processes, "rdma"}, Setup{6, Layout::pairs, "rdma"}),
                         [](const auto& test) {
                           return std::string(name(test.param.layout)) + std::to_string(test.param.ranks) +
                                  test.param.transport;
                         });

struct Message {
  int from;
  int to;
  tuttiDataType_t type;
  std::size_t count;
  Memory send_memory;
  Memory recv_memory;
  std::uint64_t seed;
};

std::size_t random_bytes(std::mt19937_64& random) {
  constexpr std::array<std::size_t, 7> sizes = {0, 1, 100, 5'000, 65'536, 200'000, 1 << 20};
  const std::size_t below = sizes[random() % sizes.size()];
  return below == 0 ? 0 : random() % 4 == 0 ? below : random() % below;
}

/// Up to three messages for a random half of all pairs, a rank's with itself included.
std::vector<Message> random_traffic(int ranks, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Message> all;
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to) {
      if (random() % 2 == 0 && ranks > 1) continue;
      for (std::uint64_t n = 1 + random() % 3; n > 0; --n) {
        Message message{.from = from, .to = to, .type = type_at(random() % real_type_count)};
        message.count = random_bytes(random) / size_of(message.type);
        message.send_memory = random() % 2 == 0 ? Memory::mapped : Memory::heap;
        message.recv_memory = random() % 2 == 0 ? Memory::mapped : Memory::heap;
        message.seed = random();
        all.push_back(message);
      }
    }
  return all;
}

Inputs inputs_of(const Message& message) {
  return {.type = message.type, .values = Values::bits, .seed = message.seed};
}

/// One side of a message on the rank that has it.
struct End {
  const Message* message;
  bool send;
  int on;
  std::unique_ptr<Buffer> buffer;
};

std::vector<End> ends_of(const std::vector<Message>& traffic, const std::vector<int>& here, std::uint64_t seed) {
  std::vector<End> ends;
  for (const auto& message : traffic)
    for (const int rank : here)
      for (const bool send : {true, false}) {
        if (rank != (send ? message.from : message.to)) continue;
        const std::size_t bytes = message.count * size_of(message.type);
        auto buffer =
            std::make_unique<Buffer>(send ? message.send_memory : message.recv_memory, bytes, message.seed % 9);
        if (send) write_inputs(inputs_of(message), 0, buffer->data(), 0, message.count);
        ends.push_back({.message = &message, .send = send, .on = rank, .buffer = std::move(buffer)});
      }
  // Any order, as long as it stays as it is for each pair and direction.
  std::ranges::stable_sort(ends, {}, [seed](const End& end) {
    return mix(seed, static_cast<std::uint64_t>(end.message->from) * 100 + static_cast<std::uint64_t>(end.message->to),
               end.on * 2 + end.send);
  });
  return ends;
}

void check(const std::vector<End>& ends) {
  for (const auto& end : ends) {
    const Message& m = *end.message;
    EXPECT_EQ(check_copied(inputs_of(m), 0, end.buffer->data(), 0, m.count), "")
        << (end.send ? "sent" : "received") << " " << m.from << " -> " << m.to << ", " << m.count << " x "
        << name(m.type);
    EXPECT_TRUE(end.buffer->guards_intact());
  }
}

tuttiResult_t post(const End& end, tuttiComm_t comm, tuttiStream_t stream = nullptr) {
  const Message& m = *end.message;
  return end.send ? tuttiSend(end.buffer->data(), m.count, m.type, m.to, comm, stream)
                  : tuttiRecv(end.buffer->data(), m.count, m.type, m.from, comm, stream);
}

TEST_P(PointToPoint, AnyMixInAGroupArrives) {
  launch_ranks(team(), [](Seat& seat) {
    const auto comms = seat.init();
    ASSERT_FALSE(comms.empty());
    const auto rounds = static_cast<std::uint64_t>(share_of(12));
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      seat.doing("round " + std::to_string(round));
      const auto traffic = random_traffic(seat.ranks(), round);
      const auto ends = ends_of(traffic, seat.here(), round * 31 + static_cast<std::uint64_t>(seat.here().front()));
      ASSERT_TRUE(ok(tuttiGroupStart()));
      for (const auto& end : ends) ASSERT_TRUE(ok(post(end, comms[end.on - seat.here().front()])));
      ASSERT_TRUE(ok(tuttiGroupEnd()));
      check(ends);
    }
    for (const auto comm : comms) EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// The same with the group queued on a stream.
TEST_P(PointToPoint, AnyMixOnAStreamArrives) {
  launch_ranks(team(), [](Seat& seat) {
    const auto comms = seat.init();
    ASSERT_FALSE(comms.empty());
    tuttiStream_t stream = nullptr;
    ASSERT_TRUE(ok(tuttiStreamCreate(&stream)));
    std::vector<std::vector<Message>> traffic;
    const auto rounds = static_cast<std::uint64_t>(share_of(4, 2));  // one waits for the other
    for (std::uint64_t round = 1; round <= rounds; ++round) traffic.push_back(random_traffic(seat.ranks(), round));
    std::vector<std::vector<End>> ends;
    for (std::size_t round = 0; round < traffic.size(); ++round) {
      ends.push_back(ends_of(traffic[round], seat.here(), round));
      ASSERT_TRUE(ok(tuttiGroupStart()));
      for (const auto& end : ends.back()) ASSERT_TRUE(ok(post(end, comms[end.on - seat.here().front()], stream)));
      ASSERT_TRUE(ok(tuttiGroupEnd()));
    }
    ASSERT_TRUE(ok(tuttiStreamSynchronize(stream)));
    for (const auto& round : ends) check(round);
    EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
    for (const auto comm : comms) EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

class Alone : public ::testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, Alone, ::testing::Values(Layout::threads, Layout::processes),
                         [](const auto& test) { return name(test.param); });

TEST_P(Alone, PingPongOfAllSizes) {
  launch_ranks({.ranks = 2, .layout = GetParam()}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const int me = seat.rank();
    for (const std::size_t bytes : {0, 1, 8, 4'096, 65'472, 65'536, 65'537, 300'001, 1 << 20}) {
      seat.doing(std::to_string(bytes) + " bytes");
      const Message there{.from = 0,
                          .to = 1,
                          .type = tuttiUint8,
                          .count = bytes,
                          .send_memory = Memory::heap,
                          .recv_memory = Memory::mapped,
                          .seed = bytes};
      const Message back{.from = 1,
                         .to = 0,
                         .type = tuttiUint8,
                         .count = bytes,
                         .send_memory = Memory::mapped,
                         .recv_memory = Memory::heap,
                         .seed = bytes + 1};
      for (int time = 0; time < 3; ++time) {
        const std::vector<Message> there_alone = {there};
        const std::vector<Message> back_alone = {back};
        const auto first = ends_of(there_alone, {me}, 0);
        const auto second = ends_of(back_alone, {me}, 0);
        ASSERT_TRUE(ok(post(first.front(), comm)));
        ASSERT_TRUE(ok(post(second.front(), comm)));
        check(first);
        check(second);
      }
    }
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// One way only, so that the sender gets ahead as far as it can.
TEST_P(Alone, ManyOneWay) {
  launch_ranks({.ranks = 2, .layout = GetParam()}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const auto messages = static_cast<std::uint64_t>(share_of(2'000));
    for (std::uint64_t i = 0; i < messages; ++i) {
      std::uint64_t value = i;
      if (seat.rank() == 0) {
        ASSERT_TRUE(ok(tuttiSend(&value, 1, tuttiUint64, 1, comm, nullptr)));
      } else {
        value = ~i;
        ASSERT_TRUE(ok(tuttiRecv(&value, 1, tuttiUint64, 0, comm, nullptr)));
        ASSERT_EQ(value, i);
      }
    }
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST_P(Alone, SizesThatDifferAreAnError) {
  for (const std::size_t bytes : {100, 300'000})
    launch_ranks({.ranks = 2, .layout = GetParam()}, [bytes](Seat& seat) {
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      Buffer buffer(Memory::mapped, bytes);
      if (seat.rank() == 0) {
        // A small message may be on its way before the receiver looks at it; then the next call says what happened.
        auto result = tuttiSend(buffer.data(), bytes, tuttiUint8, 1, comm, nullptr);
        if (result == tuttiSuccess) result = tuttiBarrier(comm, nullptr);
        EXPECT_TRUE(fails(result, tuttiInvalidUsage, "rank 1", comm));
      } else {
        const auto result = tuttiRecv(buffer.data(), bytes - 1, tuttiUint8, 0, comm, nullptr);
        EXPECT_TRUE(fails(result, tuttiInvalidUsage, "rank 1 receives " + std::to_string(bytes - 1), comm));
        EXPECT_TRUE(buffer.poisoned(0, bytes));
      }
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
}

/// One of two ranks sends a message that the other never receives; then both leave, one after the other.
void leave_a_message(Seat& seat, int sender, bool receiver_leaves_first, bool shares_memory) {
  const auto comm = seat.init_one();
  ASSERT_NE(comm, nullptr);
  const int other = 1 - seat.rank();
  const bool sends = seat.rank() == sender, leaves_last = sends == receiver_leaves_first;
  Buffer buffer(Memory::heap, 4096);
  if (sends) {
    // The first one opens the connection, so that the second one need not wait for the other rank.
    ASSERT_TRUE(ok(tuttiSend(buffer.data(), 4096, tuttiUint8, other, comm, nullptr)));
    ASSERT_TRUE(ok(tuttiSend(buffer.data(), 1024, tuttiFloat32, other, comm, nullptr)));
  } else {
    ASSERT_TRUE(ok(tuttiRecv(buffer.data(), 4096, tuttiUint8, other, comm, nullptr)));
  }
  ASSERT_TRUE(seat.meet());
  if (leaves_last) {
    ASSERT_TRUE(seat.meet());
  }
  const auto left = tuttiCommDestroy(comm);
  if (sends && !leaves_last) {
    EXPECT_TRUE(ok(left)) << "the receiver may still want it";
  } else if (!sends || shares_memory || left != tuttiSuccess) {  // over a wire the news may come too late

    EXPECT_TRUE(fails(left, tuttiInvalidUsage, "rank " + std::to_string(sender) + " sent 1024 x float32"));
  }
  if (!leaves_last) {
    ASSERT_TRUE(seat.meet());
  }
}

TEST(PointToPoint, AMessageThatNobodyReceivesIsAnErrorOnEveryWire) {
  for (const std::string transport : {"auto", "slots", "cma", "mapped", "socket", "rdma"})
    for (const int sender : {0, 1})
      for (const bool receiver_first : {true, false})
        EXPECT_TRUE(launch_ranks({.ranks = 2, .environment = {std::string("TUTTI_TRANSPORT=") + transport}},
                                 [&](Seat& seat) {
                                   leave_a_message(seat, sender, receiver_first,
                                                   transport != "socket" && transport != "rdma");
                                 }))
            << transport << ", from rank " << sender << (receiver_first ? ", receiver first" : ", sender first");
}

TEST(PointToPoint, ASendToARankThatHasLeftIsAnError) {
  for (const char* transport : {"auto", "slots", "socket"}) {
    const Team team{.ranks = 2, .environment = {std::string("TUTTI_TRANSPORT=") + transport}};
    EXPECT_TRUE(launch_ranks(team, [](Seat& seat) {
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      if (seat.rank() == 1) {
        EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      }
      ASSERT_TRUE(seat.meet());
      if (seat.rank() == 1) return;
      const char byte = 1;
      EXPECT_TRUE(fails(tuttiSend(&byte, 1, tuttiUint8, 1, comm, nullptr), tuttiRemoteError, "rank 1", comm));
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    })) << transport;
  }
}

TEST_P(Alone, PeerThatLeftIsAnError) {
  for (const bool receive : {true, false})
    launch_ranks({.ranks = 2, .layout = GetParam()}, [receive](Seat& seat) {
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      if (seat.rank() == 1) {
        EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
        ASSERT_TRUE(seat.meet());
        return;
      }
      Buffer buffer(Memory::heap, 1 << 20);
      const auto result = receive ? tuttiRecv(buffer.data(), buffer.bytes(), tuttiUint8, 1, comm, nullptr)
                                  : tuttiSend(buffer.data(), buffer.bytes(), tuttiUint8, 1, comm, nullptr);
      EXPECT_TRUE(fails(result, tuttiRemoteError, "rank 1", comm));
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      ASSERT_TRUE(seat.meet());
    });
}

}  // namespace
}  // namespace tutti::testing
