// What RDMA devices say of themselves over the fake ones: a device that dies ends what used it at once, the end whose
// port is down is the one that is named, and what does not use RDMA although it could says so.
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/call.h"
#include "support/fake_verbs/fake_verbs.h"
#include "support/launch_ranks.h"
#include "support/log_file.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double told_limit_s = 0.5;
constexpr std::size_t never = 1;  // a word of the board that nobody raises
constexpr int odd = 1;            // the rank whose device has the fault

/// A function of this process's fake library, which is there once a communicator has used it.
template <class Function>
Function* fake(const char* name) {
  void* const library = ::dlopen(TUTTI_FAKE_VERBS, RTLD_NOW | RTLD_NOLOAD);
  EXPECT_NE(library, nullptr);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}

class RdmaFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (RdmaFabric::by_devices()) GTEST_SKIP() << "devices of this machine have no faults on demand";
  }
  /// Ranks that are each a host of its own, joined by fake devices.
  static Team hosts(const RdmaFabric& fabric, std::vector<std::string> more = {}) {
    Team team{.ranks = 2, .environment = fabric.environment()};
    team.environment.insert(team.environment.end(), more.begin(), more.end());
    team.environment_of = [](int rank) { return std::vector{"TUTTI_HOSTID=host" + std::to_string(rank)}; };
    return team;
  }
};

/// All-reduces until one fails; the result and the words of that one.
std::pair<tuttiResult_t, std::string> until_failure(tuttiComm_t comm, std::vector<float>& values) {
  for (int call = 0; call < 1'000'000; ++call) {
    const auto result =
        tuttiAllReduce(values.data(), values.data(), values.size(), tuttiFloat32, tuttiMax, comm, nullptr);
    if (result != tuttiSuccess) return {result, tuttiGetLastError(comm)};
  }
  return {tuttiSuccess, ""};
}

class DeadDevice : public RdmaFaults, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Says, DeadDevice, ::testing::Values("device_fatal", "cq_error", "qp_fatal"),
                         [](const auto& fault) { return std::string(fault.param); });

TEST_P(DeadDevice, EndsWhatUsedItAtOnceAndIsNamedByBothEnds) {
  Workers workers({.ranks = 2, .environment = {"TUTTI_TRANSPORT=rdma", "TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    std::vector<float> values(100'000);
    EXPECT_TRUE(ok(tuttiAllReduce(values.data(), values.data(), values.size(), tuttiFloat32, tuttiMax, comm, nullptr)));
    if (seat.rank() == odd) {
      EXPECT_EQ(fake<int(const char*)>("fake_verbs_fault")((std::string(GetParam()) + ":50").c_str()), 0);
    }
    const auto begun = Clock::now();
    const auto [result, words] = until_failure(comm, values);
    EXPECT_LT(std::chrono::duration<double>(Clock::now() - begun).count(), told_limit_s * patience()) << words;
    EXPECT_NE(words.find("its RDMA device fake0 has failed: "), std::string::npos) << words;
    EXPECT_EQ(words.find("rank 1/2"), words.find("rank ")) << words;
    EXPECT_EQ(result, tuttiSystemError) << words;
    EXPECT_TRUE(ok(tuttiCommAbort(comm)));
  });
  EXPECT_TRUE(workers.finish());
}

TEST_F(RdmaFaults, TheEndWhosePortIsDownIsNamed) {
  Workers workers({.ranks = 2, .environment = {"TUTTI_TRANSPORT=rdma", "TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    std::vector<float> values(100'000);
    EXPECT_TRUE(ok(tuttiAllReduce(values.data(), values.data(), values.size(), tuttiFloat32, tuttiMax, comm, nullptr)));
    if (seat.rank() == odd) fake<void(int, int)>("fake_verbs_set_port")(0, 0);
    const auto [result, words] = until_failure(comm, values);
    EXPECT_EQ(result, tuttiRemoteError) << words;
    EXPECT_NE(words.find("[peer 1]"), std::string::npos) << words;
    EXPECT_TRUE(ok(tuttiCommAbort(comm)));
  });
  EXPECT_TRUE(workers.finish());
}

/// What a device does not take is the fault of its own end.
TEST_F(RdmaFaults, TheEndWhoseDeviceTakesNoMoreIsNamed) {
  // Not ENOMEM of post_send, by which devices also say that a queue is full until requests under way have ended.
  for (const char* const fault : {"post_send:60:EIO", "post_recv:60:ENOMEM", "poll_cq:300:EIO"}) {
    SCOPED_TRACE(fault);
    launch_ranks({.ranks = 2, .environment = {"TUTTI_TRANSPORT=rdma", "TUTTI_DEBUG=NONE"}}, [fault](Seat& seat) {
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      std::vector<float> values(100'000);
      EXPECT_TRUE(
          ok(tuttiAllReduce(values.data(), values.data(), values.size(), tuttiFloat32, tuttiMax, comm, nullptr)));
      ASSERT_TRUE(seat.meet());
      if (seat.rank() == odd) {
        EXPECT_EQ(fake<int(const char*)>("fake_verbs_fault")(fault), 0);
      }
      const auto [result, words] = until_failure(comm, values);
      EXPECT_EQ(result, tuttiSystemError) << words;
      EXPECT_NE(words.find("[peer 1]"), std::string::npos) << words;
      EXPECT_NE(words.find("error: rank 1/2 "), std::string::npos) << words;
      EXPECT_TRUE(ok(tuttiCommAbort(comm)));
    });
  }
}

/// Elastic training makes its next communicator in the same process.
TEST_F(RdmaFaults, APortThatComesUpIsUsedByTheNextCommunicator) {
  Workers workers({.ranks = 2, .environment = {"TUTTI_TRANSPORT=rdma", "TUTTI_DEBUG=NONE", "FAKE_VERBS_PORT_DOWN=0"}},
                  [](Seat& seat) {
                    const tuttiUniqueId first = seat.next_id();
                    tuttiComm_t comm = nullptr;
                    const auto refused = tuttiCommInitRank(&comm, 2, first, seat.rank());
                    EXPECT_NE(refused, tuttiSuccess);
                    EXPECT_NE(std::string(tuttiGetLastError(nullptr)).find("fake0 port 1: down"), std::string::npos)
                        << tuttiGetLastError(nullptr);
                    fake<void(int, int)>("fake_verbs_set_port")(0, 1);
                    ::unsetenv("FAKE_VERBS_PORT_DOWN");
                    ASSERT_TRUE(seat.meet());
                    // When ports are looked up again.
                    EXPECT_FALSE(seat.board().wait_for(never, 1, std::chrono::milliseconds(1'100)));
                    comm = seat.init_one();
                    ASSERT_NE(comm, nullptr);
                    EXPECT_EQ(run_call({.count = 1000, .seed = 5}, seat.here(), seat.ranks(), {comm}), "");
                    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
                  });
  EXPECT_TRUE(workers.finish());
}

struct Unmet {
  const char* name;
  std::vector<std::string> environment;
  std::string warning;
};

/// The rank that connects has nothing to send afterwards, so a first write that its peer's device overlooked would stay
/// so, and the peer says nothing before it has seen that write.
TEST_F(RdmaFaults, AWriteThatADeviceOverlooksWhileItConnectsHoldsNobodyUp) {
  Workers workers(
      {.ranks = 2, .environment = {"TUTTI_TRANSPORT=rdma", "FAKE_VERBS_LINK=iwarp", "FAKE_VERBS_DEAF_MS=50"}},
      [](Seat& seat) {
        const auto comm = seat.init_one();
        ASSERT_NE(comm, nullptr);
        std::vector<float> values(3, static_cast<float>(7 - seat.rank()));
        EXPECT_TRUE(ok(tuttiBroadcast(values.data(), values.data(), 3, tuttiFloat32, 0, comm, nullptr)));
        EXPECT_EQ(values, std::vector<float>(3, 7.0F));
        EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      });
  EXPECT_TRUE(workers.finish());
}

class Warned : public RdmaFaults, public ::testing::WithParamInterface<Unmet> {};
INSTANTIATE_TEST_SUITE_P(
    Of, Warned,
    ::testing::Values(Unmet{"a_filter", {"TUTTI_IB_HCA=mlx5_0"}, "TUTTI_IB_HCA=mlx5_0 decides which may be"},
                      Unmet{"a_port_filter", {"TUTTI_IB_HCA=fake0:2"}, "TUTTI_IB_HCA=fake0:2 decides which may be"},
                      Unmet{"a_gid", {"TUTTI_IB_GID_INDEX=9"}, "has no GID 9 (TUTTI_IB_GID_INDEX)"},
                      Unmet{"no_rights", {"FAKE_VERBS_FAULT=open_device:1:EACCES"}, "/dev/infiniband must be visible"},
                      Unmet{"refused_windows", {"FAKE_VERBS_WINDOWS=2"}, "fake0 opens no memory windows: "},
                      Unmet{"a_short_queue", {"FAKE_VERBS_MAX_CQE=150"}, "TUTTI_TRANSPORT=rdma makes this an error"}),
    [](const auto& unmet) { return std::string(unmet.param.name); });

/// The calls are right by other means, and there is one warning.
TEST_P(Warned, WhoCouldUseRdmaAndDoesNot) {
  const RdmaFabric fabric;
  Workers workers(hosts(fabric, GetParam().environment), [](Seat& seat) {
    const LogFile log;
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    EXPECT_EQ(run_call({.count = 1'000'000, .seed = 5}, seat.here(), seat.ranks(), {comm}), "");
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    const std::string text = log.text();
    const auto at = text.find(GetParam().warning);
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_NE(text.substr(0, at).rfind("WARN"), std::string::npos) << text;
    EXPECT_EQ(text.find(GetParam().warning, at + 1), std::string::npos) << "once: " << text;
  });
  EXPECT_TRUE(workers.finish());
}

TEST_F(RdmaFaults, WhereRdmaIsDemandedAChannelThatFallsBackIsAnError) {
  Workers workers({.ranks = 2, .environment = {"TUTTI_TRANSPORT=rdma", "TUTTI_DEBUG=NONE", "FAKE_VERBS_MAX_CQE=150"}},
                  [](Seat& seat) {
                    const auto comm = seat.init_one();
                    ASSERT_NE(comm, nullptr);
                    std::vector<float> values(1'000'000);
                    const auto result = tuttiAllReduce(values.data(), values.data(), values.size(), tuttiFloat32,
                                                       tuttiMax, comm, nullptr);
                    const std::string words = tuttiGetLastError(comm);
                    EXPECT_NE(result, tuttiSuccess);
                    EXPECT_NE(words.find("as TUTTI_TRANSPORT=rdma demands"), std::string::npos) << words;
                    EXPECT_TRUE(ok(tuttiCommAbort(comm)));
                  });
  EXPECT_TRUE(workers.finish());
}

}  // namespace
}  // namespace tutti::testing
