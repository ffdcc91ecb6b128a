#include "perf/launch.h"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "perf/local_rank.h"

namespace perf {
namespace {

using Clock = std::chrono::steady_clock;
using Body = std::function<int(Rank&)>;

/// How long ranks may continue after one of them has failed, to report what they saw of the failure.
constexpr std::chrono::seconds kGrace{5};

/// The cores that this program may use, read before any rank is pinned.
std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

/// `number` counts the ranks that share these cores.
void pin(const std::vector<int>& cores, int number) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cores[static_cast<std::size_t>(number) % cores.size()], &set);
  ::sched_setaffinity(0, sizeof set, &set);  // optional: without pinning, times only vary more
}

/// The ranks of one process: initialises them and runs the body in a thread each, or in the main thread if there is
/// only one.
class RankProcess {
 public:
  RankProcess(const LaunchOptions& options, ControlPage& page, std::vector<int> cores, int process)
      : options_(options),
        page_(page),
        cores_(std::move(cores)),
        first_(process * options.threads_each()),
        process_(process) {}

  int run(const Body& body) {
    const int count = options_.threads_each();
    if (options_.on_gpu) {
      gpu_ = Gpu::open(process_ % options_.gpus);
      gpu_->make_current();
    }
    const tuttiUniqueId id = obtain_id();
    std::vector<tuttiComm_t> comms(static_cast<std::size_t>(count), nullptr);
    if (count == 1) return run_rank(id, 0, comms[0], body);

    if (!options_.parallel_init) init_together(id, comms);
    std::vector<int> codes(comms.size(), Exit::failed);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < comms.size(); ++i)
      threads.emplace_back([&, i] { codes[i] = run_rank(id, static_cast<int>(i), comms[i], body); });
    for (std::thread& thread : threads) thread.join();
    return *std::ranges::max_element(codes);
  }

 private:
  tuttiUniqueId obtain_id() {
    if (first_ == 0) {
      expect_success(tuttiGetUniqueId(&page_.id), nullptr, 0, "tuttiGetUniqueId");
      page_.id_ready.store(true);
    }
    while (!page_.id_ready.load()) {
      page_.leave_if_abandoned();
      ::sched_yield();
    }
    return page_.id;
  }

  void init_together(const tuttiUniqueId& id, std::vector<tuttiComm_t>& comms) {
    expect_success(tuttiGroupStart(), nullptr, first_, "tuttiGroupStart");
    for (std::size_t i = 0; i < comms.size(); ++i)
      expect_success(tuttiCommInitRank(&comms[i], options_.ranks(), id, first_ + static_cast<int>(i)), nullptr,
                     first_ + static_cast<int>(i), "tuttiCommInitRank");
    expect_success(tuttiGroupEnd(), nullptr, first_, "tuttiGroupEnd of the initialisation");
  }

  int run_rank(const tuttiUniqueId& id, int index, tuttiComm_t comm, const Body& body) {
    const int number = first_ + index;
    if (options_.pin) pin(cores_, number);
    if (gpu_) gpu_->make_current();
    if (comm == nullptr)
      expect_success(tuttiCommInitRank(&comm, options_.ranks(), id, number), nullptr, number, "tuttiCommInitRank");
    const auto exchange = exchange_by_page(page_, number, options_.ranks());
    Rank rank{number, options_.ranks(), comm, *exchange, gpu_.get()};
    const int code = body(rank);
    expect_success(tuttiCommDestroy(comm), nullptr, number, "tuttiCommDestroy");
    return code;
  }

  const LaunchOptions& options_;
  ControlPage& page_;
  std::vector<int> cores_;
  int first_;
  int process_;
  std::shared_ptr<const Gpu> gpu_;
};

/// Forks the rank processes and watches them until they end.
class Supervisor {
 public:
  Supervisor(const LaunchOptions& options, std::string_view program, ControlPage& page)
      : options_(options),
        program_(program),
        page_(page),
        deadline_(Clock::now() + std::chrono::seconds(options.timeout_s)) {
    ::sigemptyset(&watched_);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&watched_, signal);
  }

  int run(const Body& body) {
    sigset_t before;
    ::sigprocmask(SIG_BLOCK, &watched_, &before);
    const std::vector<int> cores = allowed_cores();
    const pid_t parent = ::getpid();
    std::fflush(nullptr);
    for (int process = 0; process < options_.processes(); ++process) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(Exit::failed);
        ::sigprocmask(SIG_SETMASK, &before, nullptr);
        std::exit(RankProcess(options_, page_, cores, process).run(body));
      }
      if (pid < 0) {
        fmt::print(stderr, "{}: cannot start process {}: {}\n", program_, process, std::strerror(errno));
        note(Exit::failed);
        break;
      }
      children_.push_back({pid, process});
    }
    watch();
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return code_;
  }

 private:
  struct Child {
    pid_t pid;
    int process;
  };

  void watch() {
    while (!children_.empty()) {
      const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline_ - Clock::now());
      if (left.count() <= 0) return give_up();
      const timespec limit{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
      const int signal = ::sigtimedwait(&watched_, nullptr, &limit);
      if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) {
        code_ = Exit::interrupted;
        return kill_all();
      }
      if (signal == SIGCHLD) reap();
    }
  }

  void reap() {
    std::erase_if(children_, [this](const Child& child) {
      int status = 0;
      if (::waitpid(child.pid, &status, WNOHANG) != child.pid) return false;
      if (WIFSIGNALED(status)) {
        fmt::print(stderr, "{}: {} was killed by signal {} ({})\n", program_, describe(child), WTERMSIG(status),
                   ::strsignal(WTERMSIG(status)));
        note(Exit::failed);
      } else if (WEXITSTATUS(status) == Exit::wrong_values) {
        code_ = std::max<int>(code_, Exit::wrong_values);
      } else if (WEXITSTATUS(status) != Exit::ok) {
        note(WEXITSTATUS(status));
      }
      return true;
    });
  }

  /// A rank cannot continue: the others get a moment to report what they saw.
  void note(int code) {
    code_ = std::max(code_, code);
    page_.abandoned.store(true);
    deadline_ = std::min(deadline_, Clock::now() + kGrace);
  }

  void give_up() {
    if (code_ < Exit::failed) {
      fmt::print(stderr, "{}: not finished after {} s (--timeout); ending all ranks\n", program_, options_.timeout_s);
      code_ = Exit::timed_out;
    }
    kill_all();
  }

  void kill_all() {
    for (const Child& child : children_) ::kill(child.pid, SIGKILL);
    for (const Child& child : children_) ::waitpid(child.pid, nullptr, 0);
    children_.clear();
  }

  std::string describe(const Child& child) const {
    const int each = options_.threads_each();
    if (each == 1) return fmt::format("rank {} (pid {})", child.process, child.pid);
    return fmt::format("the process of ranks {} to {} (pid {})", child.process * each, (child.process + 1) * each - 1,
                       child.pid);
  }

  const LaunchOptions& options_;
  std::string_view program_;
  ControlPage& page_;
  Clock::time_point deadline_;
  sigset_t watched_;
  std::vector<Child> children_;
  int code_ = Exit::ok;
};

/// Runs as one rank of a launcher, which describes the other ranks in the environment.
int run_launched(const LaunchOptions& options, const Body& body) {
  ::signal(SIGALRM, [](int) {
    constexpr std::string_view kText = "perf: not finished within --timeout; ending this rank\n";
    if (::write(STDERR_FILENO, kText.data(), kText.size()) < 0) ::_exit(Exit::failed);
    ::_exit(Exit::timed_out);
  });
  ::alarm(static_cast<unsigned>(options.timeout_s));
  const std::shared_ptr<const Gpu> gpu = options.on_gpu ? Gpu::open() : nullptr;
  if (gpu) gpu->make_current();
  tuttiComm_t comm = nullptr;
  int number = 0;
  int count = 0;
  expect_success(tuttiCommInitFromEnv(&comm, nullptr), nullptr, -1, "tuttiCommInitFromEnv");
  expect_success(tuttiCommUserRank(comm, &number), comm, -1, "tuttiCommUserRank");
  expect_success(tuttiCommCount(comm, &count), comm, number, "tuttiCommCount");
  // Cores are those of this host. Without word of the launcher, ranks are taken as if there were one host.
  if (options.pin) pin(allowed_cores(), local_rank(number).value_or(number));
  const auto exchange = exchange_by_tutti(comm, number, count);
  Rank rank{number, count, comm, *exchange, gpu.get()};
  const int code = body(rank);
  expect_success(tuttiCommDestroy(comm), nullptr, number, "tuttiCommDestroy");
  return code;
}

}  // namespace

int launch(const LaunchOptions& options, std::string_view program, const Body& body) {
  if (!options.launcher().empty()) return run_launched(options, body);
  const auto page = ControlPage::create();
  if (page == nullptr) {
    fmt::print(stderr, "{}: cannot map a shared page: {}\n", program, std::strerror(errno));
    return Exit::failed;
  }
  return Supervisor(options, program, *page).run(body);
}

void expect_success(tuttiResult_t result, tuttiComm_t comm, int rank, std::string_view call) {
  if (result == tuttiSuccess) return;
  const std::string why = tuttiGetLastError(comm);
  fail(rank, fmt::format("{}: {}{}{}", call, tuttiGetErrorString(result), why.empty() ? "" : ": ", why));
}

void fail(int rank, std::string_view what) {
  const std::string who = rank < 0 ? std::string("this rank") : fmt::format("rank {}", rank);
  fmt::print(stderr, "{} (pid {}): {}\n", who, ::getpid(), what);
  std::fflush(nullptr);
  ::_exit(Exit::failed);
}

}  // namespace perf
