// Ranks that give up rights after the start, as daemons do: another user, or a process that nobody may trace. Calls and
// messages go on, through slots where the kernel or a descriptor server refuses a peer; so do communicators that are
// made afterwards.
#include <grp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "support/buffer.h"
#include "support/call.h"
#include "support/forbidden_calls.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

constexpr uid_t nobody = 65'534;

void become(uid_t user) {
  ASSERT_EQ(::setgroups(0, nullptr), 0);
  ASSERT_EQ(::setgid(user), 0);
  ASSERT_EQ(::setuid(user), 0);
}

enum class Drop {
  one_user,       ///< rank 1 becomes another user
  all_users,      ///< all ranks become the same other user
  several_users,  ///< each rank becomes a user of its own
  undumpable,     ///< ranks without privileges; rank 0 may not be traced any more
};

struct Way {
  const char* transport;
  Drop drop;
  bool hosts = false;  ///< of two ranks each, by name
};

std::string name_of(const Way& way) {
  constexpr std::array words = {"one_user", "all_users", "several_users", "undumpable"};
  return fmt::format("{}_{}{}", way.transport, words[static_cast<std::size_t>(way.drop)], way.hosts ? "_hosts" : "");
}

std::vector<Way> ways() {
  std::vector<Way> all;
  for (const Drop drop : {Drop::one_user, Drop::all_users, Drop::several_users, Drop::undumpable}) {
    for (const char* const transport : {"auto", "mapped", "cma"}) all.push_back({transport, drop});
    all.push_back({"auto", drop, true});
  }
  return all;
}

class Rights : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  }

  Team team() const {
    const Way& way = GetParam();
    Team team{.ranks = way.hosts ? 4 : 3, .environment = {fmt::format("TUTTI_TRANSPORT={}", way.transport)}};
    if (way.hosts)
      team.environment_of = [](int rank) { return std::vector{fmt::format("TUTTI_HOSTID=host {}", rank / 2)}; };
    return team;
  }

  /// Before the start.
  static void prepare() {
    if (GetParam().drop != Drop::undumpable) return;
    become(nobody);
    ASSERT_EQ(::prctl(PR_SET_DUMPABLE, 1), 0);  // which a change of user has taken away
  }
  static void drop(int rank) {
    switch (GetParam().drop) {
      case Drop::one_user: return rank == 1 ? become(nobody) : void();
      case Drop::all_users: return become(nobody);
      case Drop::several_users: return become(static_cast<uid_t>(1000 + rank));
      case Drop::undumpable:
        if (rank == 0) {
          ASSERT_EQ(::prctl(PR_SET_DUMPABLE, 0), 0);
        }
    }
  }

  /// Collectives of several sizes in several kinds of memory.
  static void call_all(tuttiComm_t comm, int rank, int ranks, std::uint64_t seed) {
    for (const Kind kind : {Kind::all_reduce, Kind::all_to_all, Kind::broadcast})
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{20'000}, std::size_t{200'000}})
        for (const Mix memory : {Mix::heap, Mix::mapped, Mix::by_rank}) {
          const Call call{.kind = kind,
                          .count = count_for(kind, tuttiFloat32, ranks, bytes),
                          .root = 1,
                          .memory = memory,
                          .seed = seed};
          CallOnRank mine(call, rank, ranks);
          mine.fill(seed);
          ASSERT_TRUE(ok(mine.submit(comm))) << call.text();
          ASSERT_EQ(mine.check(), "") << call.text();
        }
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, Rights, ::testing::ValuesIn(ways()),
                         [](const auto& tested) { return name_of(tested.param); });

TEST_P(Rights, CollectivesGoOnWithoutThem) {
  for (const bool called_before : {false, true})
    launch_ranks(team(), [&](Seat& seat) {
      prepare();
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      if (called_before) call_all(comm, seat.rank(), seat.ranks(), 1);
      drop(seat.rank());
      call_all(comm, seat.rank(), seat.ranks(), 2);
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
}

TEST_P(Rights, LaterCommunicatorsUseTheRightsOfTheirTime) {
  launch_ranks(team(), [&](Seat& seat) {
    prepare();
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    drop(seat.rank());
    tuttiComm_t later = nullptr;
    ASSERT_TRUE(ok(tuttiCommSplit(comm, 0, 0, &later, nullptr)));
    call_all(later, seat.rank(), seat.ranks(), 5);
    EXPECT_TRUE(ok(tuttiCommDestroy(later)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

constexpr std::size_t large = 300'000;  // bytes: not through slots where there is another way

std::byte byte_of(int from, std::size_t i) {
  return static_cast<std::byte>(static_cast<std::size_t>(from) * 37 + i * 11 + (i >> 8));
}

void write(std::span<std::byte> memory, int from) {
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = byte_of(from, i);
}

bool holds(std::span<const std::byte> memory, int from) {
  for (std::size_t i = 0; i < memory.size(); ++i)
    if (memory[i] != byte_of(from, i)) return false;
  return true;
}

/// The sender has said where its data lies before the receiver gives up the right to read it: the small message that
/// left before has arrived.
TEST_P(Rights, SendsThatHaveBegunArrive) {
  for (const Memory memory : {Memory::heap, Memory::mapped})
    launch_ranks(team(), [&](Seat& seat) {
      prepare();
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      const int rank = seat.rank();
      Buffer small(memory, 64), data(memory, large);
      if (rank == 0) {
        write({small.data(), small.bytes()}, 7);
        write({data.data(), large}, 0);
        ASSERT_TRUE(ok(tuttiGroupStart()));
        EXPECT_TRUE(ok(tuttiSend(small.data(), small.bytes(), tuttiUint8, 1, comm, nullptr)));
        EXPECT_TRUE(ok(tuttiSend(data.data(), large, tuttiUint8, 1, comm, nullptr)));
        ASSERT_TRUE(ok(tuttiGroupEnd()));
        drop(rank);
      } else if (rank == 1) {
        ASSERT_TRUE(ok(tuttiRecv(small.data(), small.bytes(), tuttiUint8, 0, comm, nullptr)));
        drop(rank);
        ASSERT_TRUE(ok(tuttiRecv(data.data(), large, tuttiUint8, 0, comm, nullptr)));
        EXPECT_TRUE(holds({data.data(), large}, 0));
      } else {
        drop(rank);
      }
      // Now in both directions, as if nothing had happened.
      Buffer back(memory, large);
      write({data.data(), large}, rank);
      const int next = (rank + 1) % seat.ranks(), before = (rank + seat.ranks() - 1) % seat.ranks();
      for (int round = 0; round < 2; ++round) {
        back.poison();
        ASSERT_TRUE(ok(tuttiGroupStart()));
        EXPECT_TRUE(ok(tuttiSend(data.data(), large, tuttiUint8, next, comm, nullptr)));
        EXPECT_TRUE(ok(tuttiRecv(back.data(), large, tuttiUint8, before, comm, nullptr)));
        ASSERT_TRUE(ok(tuttiGroupEnd()));
        EXPECT_TRUE(holds({back.data(), large}, before));
      }
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
}

/// As above, of messages with tags: a probe says that the offer is here.
TEST_P(Rights, MessagesThatWereOfferedArrive) {
  for (const Memory memory : {Memory::heap, Memory::mapped})
    launch_ranks(team(), [&](Seat& seat) {
      prepare();
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      const int rank = seat.rank();
      Buffer data(memory, large), back(memory, large);
      write({data.data(), large}, rank);
      const int next = (rank + 1) % seat.ranks(), before = (rank + seat.ranks() - 1) % seat.ranks();
      for (int round = 0; round < 3; ++round) {
        tuttiRequest_t sent = nullptr, received = nullptr;
        ASSERT_TRUE(ok(tuttiIsend(data.data(), large, tuttiUint8, next, 3, comm, &sent)));
        ASSERT_TRUE(ok(tuttiProbe(before, 3, comm, nullptr)));
        if (round == 0) {
          // Nobody reads before all have given up. Between hosts a rank that waits here would send nothing.
          if (!GetParam().hosts) seat.meet();
          drop(rank);
          if (!GetParam().hosts) seat.meet();
        }
        back.poison();
        ASSERT_TRUE(ok(tuttiIrecv(back.data(), large, tuttiUint8, before, 3, comm, &received)));
        ASSERT_TRUE(ok(tuttiWait(&received, nullptr)));
        ASSERT_TRUE(ok(tuttiWait(&sent, nullptr)));
        EXPECT_TRUE(holds({back.data(), large}, before));
      }
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
}

/// What a rank cannot know before it is refused: messages go on, a collective says what to do.
TEST(Filter, ThatForbidsCopiesAfterTheStartIsNamed) {
  launch_ranks({.ranks = 2, .environment = {"TUTTI_TRANSPORT=cma"}}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const int rank = seat.rank();
    if (rank == 1 && !forbid_calls({SYS_process_vm_readv}, EPERM)) GTEST_SKIP() << "no filters of system calls here";
    Buffer data(Memory::heap, large), back(Memory::heap, large);
    write({data.data(), large}, rank);
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE(ok(tuttiGroupStart()));
      EXPECT_TRUE(ok(tuttiSend(data.data(), large, tuttiUint8, 1 - rank, comm, nullptr)));
      EXPECT_TRUE(ok(tuttiRecv(back.data(), large, tuttiUint8, 1 - rank, comm, nullptr)));
      ASSERT_TRUE(ok(tuttiGroupEnd()));
      EXPECT_TRUE(holds({back.data(), large}, 1 - rank));
    }
    // Rank 1 has been refused by now, and says so.
    const std::size_t count = large / sizeof(float);
    EXPECT_TRUE(ok(tuttiAllReduce(data.data(), back.data(), count, tuttiUint32, tuttiSum, comm, nullptr)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
  launch_ranks({.ranks = 2, .environment = {"TUTTI_TRANSPORT=cma", "TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    if (!forbid_calls({SYS_process_vm_readv}, EPERM)) GTEST_SKIP() << "no filters of system calls here";
    Buffer data(Memory::heap, large), back(Memory::heap, large);
    const auto result =
        tuttiAllReduce(data.data(), back.data(), large / sizeof(float), tuttiUint32, tuttiSum, comm, nullptr);
    EXPECT_TRUE(fails(result, tuttiRemoteError, "TUTTI_TRANSPORT=slots", comm));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
