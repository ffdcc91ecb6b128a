#include "support/launch_ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include <fmt/format.h>

namespace tutti::testing {
namespace {

using Clock = std::chrono::steady_clock;

/// What is left of a team gets this long once one of it has failed.
constexpr std::chrono::seconds grace{3};

/// Process → thread → ranks.
std::vector<std::vector<std::vector<int>>> places(const Team& team) {
  std::vector<std::vector<std::vector<int>>> processes;
  for (int rank = 0; rank < team.ranks; ++rank) {
    const bool opens =
        team.layout == Layout::processes || (team.layout == Layout::pairs && rank % team.threads == 0) || rank == 0;
    if (opens) processes.emplace_back();
    if (team.layout != Layout::one_thread || rank == 0) processes.back().emplace_back();
    processes.back().back().push_back(rank);
  }
  return processes;
}

}  // namespace

const char* name(Layout layout) {
  switch (layout) {
    case Layout::threads: return "threads";
    case Layout::processes: return "processes";
    case Layout::pairs: return "pairs";
    case Layout::one_thread: return "one_thread";
  }
  return "?";
}

int Seat::rank() const {
  assert(here_.size() == 1);
  return here_.front();
}

bool mount_own_proc(unsigned long namespaces) {
  constexpr unsigned long own_proc = CLONE_NEWPID | CLONE_NEWNS;
  return (namespaces & own_proc) != own_proc || (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                                                 ::mount("proc", "/proc", "proc", 0, nullptr) == 0);
}

bool Seat::meet() {
  return board_.meet(team_.layout == Layout::one_thread ? 1 : team_.ranks);
}

tuttiUniqueId Seat::next_id() {
  return board_.share_id(ids_++, here_.front() == 0);
}

std::vector<tuttiComm_t> Seat::init(const tuttiConfig_t* config) {
  const tuttiUniqueId id = next_id();
  std::vector<tuttiComm_t> comms(here_.size());
  if (here_.size() == 1) {
    const auto made = ok(tuttiCommInitRankConfig(comms.data(), ranks(), id, here_.front(), config));
    EXPECT_TRUE(made) << "rank " << here_.front();
    if (!made) comms.clear();
    return comms;
  }
  EXPECT_TRUE(ok(tuttiGroupStart()));
  for (std::size_t i = 0; i < here_.size(); ++i)
    EXPECT_TRUE(ok(tuttiCommInitRankConfig(&comms[i], ranks(), id, here_[i], config)));
  const auto made = ok(tuttiGroupEnd());
  EXPECT_TRUE(made);
  if (!made) comms.clear();
  return comms;
}

tuttiComm_t Seat::init_one(const tuttiConfig_t* config) {
  assert(here_.size() == 1);
  const auto comms = init(config);
  return comms.empty() ? nullptr : comms.front();
}

void Seat::doing(const std::string& what) {
  for (const int rank : here_) board_.doing(rank, what);
}

Workers::Workers(Team team, const std::function<void(Seat&)>& body)
    : team_(std::move(team)), board_(Board::make(team_.words)) {
  assert(team_.ranks <= Board::ranks_max);
  if (RdmaFabric::wanted(team_.environment)) {
    fabric_.emplace();
    for (auto& set : fabric_->environment()) team_.environment.push_back(std::move(set));
  }
  for (auto& seats : places(team_)) children_.push_back({.seats = std::move(seats)});
  std::fflush(nullptr);
  for (auto& child : children_) fork_one(child, body);
  look_ = [this] {
    for (auto& child : children_)
      if (!child.ended) reap(child);
    if (all_ended()) board_->end();
  };
  Board::looks().push_back(&look_);
}

void Workers::fork_one(Child& child, const std::function<void(Seat&)>& body) {
  const pid_t parent = ::getpid();
  int named[2] = {-1, -1};
  if (::pipe2(named, O_CLOEXEC) != 0) std::abort();
  // As fork, which knows no namespaces.
  child.pid = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD | team_.namespaces, nullptr, nullptr, nullptr, nullptr));
  assert(child.pid >= 0);
  if (child.pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if ((team_.namespaces & CLONE_NEWPID) == 0 && ::getppid() != parent) std::_Exit(1);
    ::close(named[1]);
    char nothing = 0;
    while (::read(named[0], &nothing, 1) < 0) {
    }
    ::close(named[0]);
    if ((team_.namespaces & CLONE_NEWUSER) != 0 && (::setresgid(0, 0, 0) != 0 || ::setresuid(0, 0, 0) != 0))
      std::_Exit(1);
    if (!mount_own_proc(team_.namespaces)) {
      std::perror("mount /proc for a PID namespace");
      std::_Exit(1);
    }
    run_child(child, body);
  }
  if ((team_.namespaces & CLONE_NEWUSER) != 0) name_users(child);
  ::close(named[0]);
  ::close(named[1]);
  child.pidfd = static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0));
}

/// Root inside is this test's user outside, or one that no other process has.
void Workers::name_users(const Child& child) const {
  const unsigned other = 100'000U + static_cast<unsigned>(child.seats.front().front());
  const auto write = [&](const char* file, const std::string& text) {
    std::ofstream(fmt::format("/proc/{}/{}", child.pid, file)) << text;
  };
  if (::geteuid() != 0) write("setgroups", "deny");  // or the next but one is refused
  write("uid_map", fmt::format("0 {} 1", team_.users ? other : ::geteuid()));
  write("gid_map", fmt::format("0 {} 1", team_.users ? other : ::getegid()));
}

void Workers::run_child(const Child& child, const std::function<void(Seat&)>& body) {
  Board::looks().clear();  // of its parent
  auto environment = team_.environment;
  if (team_.environment_of)
    for (auto& setting : team_.environment_of(child.seats.front().front())) environment.push_back(std::move(setting));
  for (const auto& setting : environment) {
    const auto equals = setting.find('=');
    ::setenv(setting.substr(0, equals).c_str(), setting.substr(equals + 1).c_str(), 1);
  }
  const auto sit = [&](const std::vector<int>& here) {
    SCOPED_TRACE(::testing::Message() << "rank " << here.front() << " of " << team_.ranks << ", " << name(team_.layout)
                                      << ", " << ::testing::PrintToString(team_.environment));
    Seat seat(team_, *board_, here);
    body(seat);
    if (::testing::Test::HasFailure()) board_->end();
  };
  if (child.seats.size() == 1) {
    sit(child.seats.front());
  } else {
    std::vector<std::thread> threads;
    for (const auto& here : child.seats) threads.emplace_back([&sit, &here] { sit(here); });
    for (auto& thread : threads) thread.join();
  }
  std::fflush(nullptr);
  std::exit(::testing::Test::HasFailure() ? 1 : 0);
}

Workers::~Workers() {
  std::erase(Board::looks(), &look_);
  if (!finished_) {
    for (auto& child : children_)
      if (!child.ended) ::kill(child.pid, SIGKILL);
    wait_until(Clock::now() + std::chrono::hours(1));
  }
  for (const auto& child : children_)
    if (child.pidfd >= 0) ::close(child.pidfd);
  Board::free(board_);
}

pid_t Workers::pid_of(int rank) const {
  for (const auto& child : children_)
    for (const auto& seat : child.seats)
      if (std::ranges::find(seat, rank) != seat.end()) return child.pid;
  return -1;
}

void Workers::kill(int rank) {
  for (auto& child : children_)
    if (child.pid == pid_of(rank)) child.killed = true;
  ::kill(pid_of(rank), SIGKILL);
}

bool Workers::all_ended() const {
  return std::ranges::all_of(children_, &Child::ended);
}

std::string Workers::who(const Child& child) const {
  std::string text = "rank";
  for (const auto& seat : child.seats)
    for (const int rank : seat) text += fmt::format(" {} ({})", rank, board_->doing(rank));
  return text;
}

void Workers::reap(Child& child) {
  int status = 0;
  if (::waitpid(child.pid, &status, WNOHANG) != child.pid) return;
  child.ended = true;
  const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (well || child.killed) return;
  failed_ = true;
  board_->end();
  if (WIFSIGNALED(status))
    ADD_FAILURE() << who(child) << " died: " << ::strsignal(WTERMSIG(status));
  else
    ADD_FAILURE() << who(child) << " failed: exit status " << WEXITSTATUS(status);
}

/// Until all have ended; sooner once one has failed, after the grace.
void Workers::wait_until(Clock::time_point deadline) {
  bool hurried = false;
  for (;;) {
    for (auto& child : children_)
      if (!child.ended) reap(child);
    if (all_ended()) return;
    if (board_->over() && !std::exchange(hurried, true)) deadline = std::min(deadline, Clock::now() + grace);
    if (Clock::now() >= deadline) return;
    std::vector<pollfd> items;
    for (const auto& child : children_)
      if (!child.ended) items.push_back({.fd = child.pidfd, .events = POLLIN, .revents = 0});
    ::poll(items.data(), items.size(), 50);
  }
}

bool Workers::finish() {
  // A load that comes up meanwhile moves the limit.
  constexpr double patience_max = 8;  // or nobody would hear who hangs before the program's own limit
  const auto start = Clock::now();
  while (!all_ended() && !board_->over()) {
    const auto limit = team_.limit * std::min(patience(), patience_max);
    const auto deadline = start + std::chrono::duration_cast<Clock::duration>(limit);
    if (Clock::now() >= deadline) break;
    wait_until(deadline);
  }
  finished_ = true;
  if (!all_ended()) {
    const bool late = !board_->over();
    for (auto& child : children_) {
      if (child.ended) continue;
      failed_ = true;
      ADD_FAILURE() << who(child)
                    << (late ? fmt::format(" did not end in {} s, stretched by the load: killed", team_.limit.count())
                             : " did not end after another rank had failed: killed");
      child.killed = true;
      ::kill(child.pid, SIGKILL);
    }
    wait_until(Clock::now() + std::chrono::hours(1));
  }
  return !failed_;
}

bool launch_ranks(const Team& team, const std::function<void(Seat&)>& body) {
  Workers workers(team, body);
  return workers.finish();
}

::testing::AssertionResult ok(tuttiResult_t result) {
  if (result == tuttiSuccess) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << tuttiGetErrorString(result) << ": " << tuttiGetLastError(nullptr);
}

::testing::AssertionResult fails(tuttiResult_t result, tuttiResult_t expected, const std::string& part,
                                 tuttiComm_t comm) {
  const std::string words = tuttiGetLastError(comm);
  if (result == expected && words.find(part) != std::string::npos && !words.empty())
    return ::testing::AssertionSuccess() << words;
  return ::testing::AssertionFailure() << "got " << result << " (" << tuttiGetErrorString(result) << ") \"" << words
                                       << "\"; expected " << expected << " (" << tuttiGetErrorString(expected)
                                       << ") with \"" << part << "\"";
}

double patience() {
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  const char* const slowness = std::getenv("TUTTI_TEST_PATIENCE");
  const double crowd = std::max(1.0, load / std::max(1u, std::thread::hardware_concurrency())) *
                       std::max(1.0, slowness == nullptr ? 1.0 : std::atof(slowness));
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 5 * crowd;
#else
  return crowd;
#endif
}

}  // namespace tutti::testing
