// Ranks that are bound to a core: do the library's threads leave it, and are those of other ranks left alone?
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "support/call.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

using Cpus = std::set<int>;

/// Of "0-3,8".
Cpus cpus_of(const std::string& list) {
  Cpus cpus;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string run = list.substr(at, end - at);
    const std::size_t dash = run.find('-');
    for (int cpu = std::stoi(run); cpu <= std::stoi(dash == std::string::npos ? run : run.substr(dash + 1)); ++cpu)
      cpus.insert(cpu);
    at = end + 1;
  }
  return cpus;
}

/// The core of a CPU, which it may have to itself.
Cpus core_of(int cpu) {
  std::string list;
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
  std::getline(file, list);
  Cpus core = cpus_of(list);
  core.insert(cpu);
  return core;
}

Cpus own_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  Cpus cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.insert(cpu);
  return cpus;
}

void bind_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ASSERT_EQ(::sched_setaffinity(0, sizeof set, &set), 0);
}

struct Thread {
  std::string name;
  Cpus cpus;
};

std::set<std::string> thread_ids() {
  std::set<std::string> ids;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ids.insert(task.path().filename());
  return ids;
}

/// This process's threads but those of these numbers.
std::vector<Thread> threads_but(const std::set<std::string>& known) {
  std::vector<Thread> threads;
  for (const std::string& id : thread_ids()) {
    if (known.contains(id)) continue;
    std::ifstream file("/proc/self/task/" + id + "/status");
    Thread thread;
    for (std::string line; std::getline(file, line);) {
      const auto value = line.substr(std::min(line.size(), line.find('\t') + 1));
      if (line.starts_with("Name:")) thread.name = value;
      if (line.starts_with("Cpus_allowed_list:")) thread.cpus = cpus_of(value);
    }
    threads.push_back(thread);
  }
  return threads;
}

bool meet(const Cpus& one, const Cpus& other) {
  return std::ranges::any_of(one, [&](int cpu) { return other.contains(cpu); });
}

/// Threads are placed when they begin, which may be a while after the call that starts them.
template <class Condition>
bool becomes(Condition&& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(static_cast<int>(10 * patience()));
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    ::sched_yield();
  }
  return true;
}

/// A communicator, and a call on a stream, so that the library has a service thread and a stream's thread; `look` gets
/// a function that says where the library's threads may run.
void with_threads(Seat& seat, const std::function<void(const std::function<std::vector<Thread>()>&)>& look) {
  const auto known = thread_ids();  // also of a sanitizer
  tuttiComm_t comm = seat.init_one();
  ASSERT_NE(comm, nullptr);
  tuttiStream_t stream = nullptr;
  ASSERT_TRUE(ok(tuttiStreamCreate(&stream)));
  float x = 1;
  EXPECT_TRUE(ok(tuttiAllReduce(&x, &x, 1, tuttiFloat32, tuttiSum, comm, stream)));
  EXPECT_TRUE(ok(tuttiStreamSynchronize(stream)));
  look([&] { return threads_but(known); });
  EXPECT_TRUE(seat.meet());  // another rank's communicator is not to end before this one has looked
  EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
  EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
}

class Affinity : public ::testing::Test {
 protected:
  void SetUp() override {
    const Cpus all = own_cpus();
    if (std::ranges::all_of(all, [&](int cpu) { return core_.contains(cpu); })) GTEST_SKIP() << "one core";
  }
  const int cpu_ = *own_cpus().begin();
  const Cpus core_ = core_of(cpu_);
};

TEST_F(Affinity, ThreadsOfABoundRankLeaveItsCore) {
  launch_ranks({.ranks = 1}, [&](Seat& seat) {
    bind_to(cpu_);
    with_threads(seat, [&](const auto& threads) {
      EXPECT_TRUE(becomes([&] {
        const auto now = threads();
        const auto elsewhere = [&](const Thread& thread) { return !meet(thread.cpus, core_); };
        return now.size() == 2 && std::ranges::all_of(now, elsewhere);
      }));
      EXPECT_EQ(own_cpus(), Cpus{cpu_}) << "the rank itself stays";
    });
  });
}

TEST_F(Affinity, ThreadsStayThereIfTheyAreTold) {
  launch_ranks({.ranks = 1, .environment = {"TUTTI_AFFINITY=off"}}, [&](Seat& seat) {
    bind_to(cpu_);
    with_threads(seat, [&](const auto& threads) {
      for (const Thread& thread : threads()) EXPECT_EQ(thread.cpus, Cpus{cpu_}) << thread.name;
    });
  });
}

TEST_F(Affinity, ThreadsOfARankThatIsNotBoundKeepAllCpus) {
  launch_ranks({.ranks = 2}, [&](Seat& seat) {
    const Cpus all = own_cpus();
    if (seat.rank() == 0) bind_to(cpu_);
    with_threads(seat, [&](const auto& threads) {
      if (seat.rank() == 0)
        EXPECT_TRUE(becomes([&] {
          return std::ranges::none_of(threads(), [&](const Thread& thread) { return meet(thread.cpus, core_); });
        }));
      else
        for (const Thread& thread : threads()) EXPECT_EQ(thread.cpus, all) << thread.name;
    });
  });
}

}  // namespace
}  // namespace tutti::testing
