// The fake libibverbs between processes: bytes, wakes, keys and deaths.
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <thread>

#include "support/fake_verbs/loaded.h"

namespace tutti::testing {
namespace {

using verbs::DoneOpcode;
using verbs::Status;
namespace send_flag = verbs::send_flag;

/// A forked process with a socket to tell each other addresses. It passes unless an expectation fails in it.
class Other {
 public:
  explicit Other(const std::function<void(int)>& body) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      body(ends[1]);
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    ::close(ends[1]);
    socket = ends[0];
  }
  ~Other() {
    int status = 0;
    ::close(socket);
    ::waitpid(pid_, &status, 0);
    EXPECT_TRUE(killed_ || status == 0) << status;
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;

  /// It has ended when this returns, but stays a zombie.
  void kill() {
    killed_ = true;
    siginfo_t ended{};
    ::kill(pid_, SIGKILL);
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT), 0);
  }

  int socket = -1;

 private:
  pid_t pid_ = -1;
  bool killed_ = false;
};

template <typename Value>
void tell(int socket, const Value& value) {
  ASSERT_EQ(::send(socket, &value, sizeof value, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof value));
}

template <typename Value>
Value hear(int socket) {
  Value value{};
  EXPECT_EQ(::recv(socket, &value, sizeof value, 0), static_cast<ssize_t>(sizeof value));
  return value;
}

/// Connects with the end on the other side of the socket.
EndAddress meet(End& end, int socket) {
  tell(socket, end.address());
  const auto peer = hear<EndAddress>(socket);
  end.connect(peer);
  tell(socket, 'c');
  (void)hear<char>(socket);  // it is ready, too
  return peer;
}

class FakeVerbsProcesses : public ::testing::Test {
 protected:
  FakeVerbsProcesses() : path_(::testing::TempDir() + "fake_verbs." + std::to_string(::getpid())) {
    ::setenv("FAKE_VERBS_FABRIC", path_.c_str(), 1);
  }
  ~FakeVerbsProcesses() override {
    ::unsetenv("FAKE_VERBS_FABRIC");
    ::unlink(path_.c_str());
  }

 private:
  std::string path_;
};

constexpr EndShape roomy{.entries = 4096, .sends = 1024};

/// One side's messages and the checks of the other's, until so many rounds are over or something failed.
Status play(End& own, const EndAddress& peer, std::uint64_t rounds, bool first) {
  std::uint64_t sent = 0;
  const auto send = [&](std::uint64_t round) {
    own.bytes[0] = own.bytes[999] = static_cast<char>(round);
    return own.post(own.write(peer, 1000, 2000, send_flag::signaled)) == 0;
  };
  for (std::uint64_t round = 0; round < rounds; ++round) {
    if (first && !send(round)) return Status::general;
    verbs::Completion done = own.next();
    for (; done.status == Status::success && done.opcode == DoneOpcode::rdma_write; done = own.next()) ++sent;
    if (done.status != Status::success) return done.status;
    EXPECT_EQ(own.bytes[2000], static_cast<char>(round));
    EXPECT_EQ(own.bytes[2999], static_cast<char>(round));
    EXPECT_EQ(own.post_receive(round), 0);
    if (!first && !send(round)) return Status::general;
  }
  for (; sent < rounds; ++sent)
    if (const verbs::Completion done = own.next(); done.status != Status::success) return done.status;
  return Status::success;
}

void take_part(int socket, std::uint64_t rounds, bool first, Status expected) {
  End own(roomy);
  EXPECT_EQ(own.post_receive(0), 0);
  EXPECT_EQ(own.post_receive(1), 0);
  const EndAddress peer = meet(own, socket);
  EXPECT_EQ(play(own, peer, rounds, first), expected);
  if (expected != Status::success) return;
  tell(socket, 'e');  // whoever ends first takes its memory along
  (void)hear<char>(socket);
}

TEST_F(FakeVerbsProcesses, ExchangeMessages) {
  constexpr std::uint64_t rounds = 300;
  const Other other([](int socket) { take_part(socket, rounds, false, Status::success); });
  take_part(other.socket, rounds, true, Status::success);
}

TEST_F(FakeVerbsProcesses, ExchangeTheSameScrambled) {
  const Variable scrambled("FAKE_VERBS_SEED", "3");
  constexpr std::uint64_t rounds = 100;
  const Other other([](int socket) { take_part(socket, rounds, false, Status::success); });
  take_part(other.socket, rounds, true, Status::success);
}

TEST_F(FakeVerbsProcesses, ASleeperIsWokenByAnother) {
  const Other other([](int socket) {
    End own;
    EXPECT_EQ(own.post_receive(4), 0);
    EXPECT_EQ(own.context->ops.req_notify_cq(own.cq, 0), 0);
    (void)meet(own, socket);
    verbs::Cq* cq = nullptr;
    void* context = nullptr;
    EXPECT_EQ(VERBS(ibv_get_cq_event)(own.channel, &cq, &context), 0);
    EXPECT_EQ(cq, own.cq);
    VERBS(ibv_ack_cq_events)(cq, 1);
    EXPECT_EQ(own.next().wr_id, 4u);
    tell(socket, 'e');
  });
  End own;
  const EndAddress peer = meet(own, other.socket);
  ASSERT_EQ(own.post(own.write(peer, 10, 0, 0)), 0);
  (void)hear<char>(other.socket);
}

TEST_F(FakeVerbsProcesses, AReceiveThatComesLateIsFoundWithoutPolls) {
  const Other other([](int socket) {
    End own;
    (void)meet(own, socket);
    (void)hear<char>(socket);  // it was posted, and waits
    EXPECT_EQ(own.post_receive(4), 0);
    EXPECT_EQ(own.next().wr_id, 4u);
    tell(socket, 'e');
  });
  End own;
  const EndAddress peer = meet(own, other.socket);
  ASSERT_EQ(own.post(own.write(peer, 10, 0, 0)), 0);
  tell(other.socket, 'p');
  (void)hear<char>(other.socket);  // this side polls nothing
}

TEST_F(FakeVerbsProcesses, AKeyOfNobodyStopsBoth) {
  const Other other([](int socket) {
    End own;
    EXPECT_EQ(own.post_receive(4), 0);
    (void)meet(own, socket);
    EXPECT_EQ(own.next().status, Status::flushed);
    tell(socket, 'e');
  });
  End own;
  EndAddress peer = meet(own, other.socket);
  peer.rkey += 1;
  ASSERT_EQ(own.post(own.write(peer, 10, 0, 0)), 0);
  EXPECT_EQ(own.next().status, Status::remote_access_error);
  (void)hear<char>(other.socket);
}

TEST_F(FakeVerbsProcesses, TheDeadDoNotAnswer) {
  Other other([](int socket) {
    End own;
    EXPECT_EQ(own.post_receive(4), 0);
    (void)meet(own, socket);
    ::pause();
  });
  End own;
  const EndAddress peer = meet(own, other.socket);
  other.kill();
  ASSERT_EQ(own.post(own.write(peer, 0, 0, 0)), 0);
  ASSERT_EQ(own.post(own.write(peer, 10, 0, 0)), 0);
  EXPECT_EQ(own.next().status, Status::retries_exceeded);
  EXPECT_EQ(own.next().status, Status::flushed);
}

/// Sends without end, as the other side does, until something fails.
Status stream(End& own, const EndAddress& peer) {
  constexpr int most = 8;
  for (int under_way = 0;;) {
    for (; under_way < most; ++under_way)
      if (own.post(own.write(peer, 1000, 2000, send_flag::signaled)) != 0) return Status::general;
    const verbs::Completion done = own.next();
    if (done.status != Status::success) return done.status;
    if (done.opcode == DoneOpcode::rdma_write)
      --under_way;
    else if (own.post_receive(0) != 0)
      return Status::general;
  }
}

TEST_F(FakeVerbsProcesses, AreKilledAnywhereWithoutHarmToOthers) {
  for (int kill = 0; kill < 10; ++kill) {
    const auto take_place = [](End& own, int socket) {
      for (std::uint64_t id = 0; id < 16; ++id) EXPECT_EQ(own.post_receive(id), 0);
      return meet(own, socket);
    };
    Other victim([&](int socket) {
      End own(roomy);
      (void)stream(own, take_place(own, socket));
    });
    {
      End own(roomy);
      const EndAddress peer = take_place(own, victim.socket);
      std::thread killer([&] {
        for (int turn = 0; turn < 50 * kill; ++turn) std::this_thread::yield();
        victim.kill();
      });
      EXPECT_EQ(stream(own, peer), Status::retries_exceeded);
      killer.join();
    }
    const Other other([](int socket) { take_part(socket, 10, false, Status::success); });
    take_part(other.socket, 10, true, Status::success);
  }
}

}  // namespace
}  // namespace tutti::testing
