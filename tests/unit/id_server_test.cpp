// Who asks for the id of a job: its ranks are told, other users are not.
#include "init/id_server.h"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "init/job_sockets.h"
#include "support/in_child.h"

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t patient_ns = 60'000 * ms;
const std::string word = "the word of rank 0";

/// A server for one other rank, and the thread that drives it as the service thread would.
class Serving {
 public:
  explicit Serving(IdServer::OnTwin on_twin = {}) : on_twin_(std::move(on_twin)) {
    const std::string job = "tutti-test-id-" + std::to_string(::getpid());
    auto listener = listen_for_job(job);
    EXPECT_TRUE(listener);
    const auto names = listeners_for_job(job);
    EXPECT_TRUE(names && names->size() == 1);
    name_ = names->front();
    thread_ = std::thread([this, fd = *std::move(listener)]() mutable { drive(std::move(fd)); });
  }
  ~Serving() {
    stop_ = true;
    thread_.join();
  }

  const std::string& name() const { return name_; }
  /// Until its rank has its answer.
  bool finish() const {
    while (!done_ && real_system().now_ns() < begin_ns_ + patient_ns) std::this_thread::yield();
    return done_;
  }
  bool done() const { return done_; }

 private:
  void drive(UniqueSocket listener) {
    System& system = real_system();
    IdServer server(system, std::move(listener), word, /*ranks=*/2, begin_ns_ + 2 * patient_ns, {}, on_twin_);
    std::vector<PollItem> items;
    while (!stop_ && !done_) {
      items.clear();
      (void)server.poll_set(items);
      system.poll(items, 20 * ms);
      done_ = !server.advance();
    }
  }

  std::string name_;
  const IdServer::OnTwin on_twin_;
  const std::int64_t begin_ns_ = real_system().now_ns();
  std::atomic<bool> stop_ = false;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

/// What rank 1 of two hears, asking as the user of this process; nothing where the server hangs up.
std::string answer_to_this_user(const std::string& name, JobCall::Outcome outcome, int rank = 1, int ranks = 2) {
  auto call = call_job(name);
  EXPECT_TRUE(call);
  EXPECT_EQ(call->outcome, outcome);
  const std::string question = write_question(rank, ranks);
  (void)::send(call->fd.get(), question.data(), question.size(), MSG_NOSIGNAL);  // it may have hung up already
  pollfd item{.fd = call->fd.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&item, 1, static_cast<int>(patient_ns / ms)), 1);
  std::string bytes(1000, '\0');
  const ssize_t got = ::recv(call->fd.get(), bytes.data(), bytes.size(), 0);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

/// Any process of the host can find the socket and ask. It does not pass for a rank that has its answer, either.
TEST(IdServer, TellsAnotherUserNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may be another user";
  const Serving serving;
  in_child([&] {
    ASSERT_EQ(::setresgid(65534, 65534, 65534), 0);
    ASSERT_EQ(::setresuid(65534, 65534, 65534), 0);
    for (int i = 0; i < 100; ++i)
      ASSERT_EQ(answer_to_this_user(serving.name(), JobCall::Outcome::other_user), "") << "time " << i;
  });
  EXPECT_FALSE(serving.done());
  EXPECT_EQ(answer_to_this_user(serving.name(), JobCall::Outcome::connected), word);
  EXPECT_TRUE(serving.finish());
}

/// One that was told of another number of ranks gets the id too, to join and to say so. The server waits for its own.
TEST(IdServer, AnswersRanksThatDisagree) {
  const Serving serving;
  EXPECT_EQ(answer_to_this_user(serving.name(), JobCall::Outcome::connected, 1, 3), word);
  EXPECT_EQ(answer_to_this_user(serving.name(), JobCall::Outcome::connected, 2, 3), word);
  EXPECT_EQ(answer_to_this_user(serving.name(), JobCall::Outcome::connected, -1, 3), "");
  EXPECT_FALSE(serving.done());
  EXPECT_EQ(answer_to_this_user(serving.name(), JobCall::Outcome::connected), word);
  EXPECT_TRUE(serving.finish());
}

/// From then on all ranks hear the error, those of both, and the server ends soon.
TEST(IdServer, GivesNobodyAnIdOnceThereAreTwoRanksZero) {
  std::atomic<int> told = 0;
  const Serving serving([&told] {
    ++told;
    return Error{.code = Code::invalid_usage, .what = "two of them"};
  });
  for (int time = 0; time < 2; ++time)
    EXPECT_EQ(answer_to_this_user(serving.name(), JobCall::Outcome::connected, 0), "") << "no question";
  for (int time = 0; time < 2; ++time) {
    const auto heard = read_answer(answer_to_this_user(serving.name(), JobCall::Outcome::connected));
    ASSERT_FALSE(heard);
    EXPECT_EQ(heard.error().code, Code::invalid_usage);
    EXPECT_NE(heard.error().what.find("two of them"), std::string::npos) << heard.error().what;
  }
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(serving.finish());
}

}  // namespace
}  // namespace tutti
