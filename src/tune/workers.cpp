#include "tune/workers.h"

#include <sys/resource.h>

#include <system_error>

#include "base/blocked_signal.h"
#include "base/system.h"

namespace tutti {
namespace {

/// Another program may be using the core that the other member needs.
bool gives_way(int& spins) {
  if (++spins <= 10'000) return false;
  sched_yield();
  return true;
}

void await_end(const Flag& flag, std::uint64_t value) {
  for (int spins = 0; flag.load() < value;) gives_way(spins);
}

void move_to(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  (void)::sched_setaffinity(0, sizeof one, &one);  // if this is not permitted, the thread stays where it is
}

double seconds() {
  return static_cast<double>(real_system().now_ns()) * 1e-9;  // real time of the machine: it is being measured
}

/// How often another thread has taken this thread's core.
long times_preempted() {
  rusage usage{};
  return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

}  // namespace

Workers::Workers(const cpu_set_t& cpus, std::int64_t until_ns) : until_ns_(until_ns) {
  if (::sched_getaffinity(0, sizeof before_, &before_) != 0) CPU_ZERO(&before_);
  for (int cpu = 0; cpu < CPU_SETSIZE && cores_.size() < 2; ++cpu)
    if (CPU_ISSET(cpu, &cpus)) cores_.push_back(cpu);
  if (!cores_.empty()) move_to(cores_[0]);
  if (cores_.size() < 2) return;
  try {
    const AllSignalsBlocked for_the_helper;
    helper_ = std::thread([this] { serve(cores_[1]); });
  } catch (const std::system_error&) {  // no thread available: numbers that need two are not measured
  }
}

Workers::~Workers() {
  if (helper_.joinable()) {
    leaving_ = true;
    here_.store(++round_);
    helper_.join();
  }
  if (CPU_COUNT(&before_) > 0) (void)::sched_setaffinity(0, sizeof before_, &before_);
}

bool Workers::late() const {
  return real_system().now_ns() >= until_ns_;
}

/// False: it is late.
bool Workers::await(const Flag& flag, std::uint64_t value) const {
  for (int spins = 0; flag.load() < value;)
    if (gives_way(spins) && late()) return false;
  return true;
}

void Workers::serve(int cpu) {
  move_to(cpu);
  for (std::uint64_t round = 1;; ++round) {
    await_end(here_, round);
    if (leaving_) return;
    if (rounds_ > 0) {
      const std::uint64_t first = pong_.load();
      for (int i = 1; i <= rounds_; ++i) {
        (void)await(ping_, first + static_cast<std::uint64_t>(i));
        pong_.store(first + static_cast<std::uint64_t>(i));
      }
    } else {
      (*work_)(1);
    }
    preempted_ = times_preempted();
    there_.store(round);
  }
}

Workers::Sample Workers::run(const std::function<void(int)>& work) {
  work_ = &work;
  rounds_ = 0;
  const long before = preempted_ + times_preempted();
  const double begin = seconds();
  if (members() > 1) here_.store(++round_);
  work(0);
  if (members() > 1) await_end(there_, round_);
  const double spent = seconds() - begin;
  return {.seconds = spent, .undisturbed = preempted_ + times_preempted() == before && !late()};
}

Workers::Sample Workers::hop(int rounds) {
  rounds_ = rounds;
  const long before = preempted_ + times_preempted();
  const std::uint64_t first = ping_.load();
  here_.store(++round_);
  const double begin = seconds();
  bool in_time = true;
  for (int i = 1; i <= rounds && in_time; ++i) {
    ping_.store(first + static_cast<std::uint64_t>(i));
    in_time = await(pong_, first + static_cast<std::uint64_t>(i));
  }
  const double spent = seconds() - begin;
  ping_.store(first + static_cast<std::uint64_t>(rounds));  // lets the helper go on to its end
  await_end(there_, round_);
  return {.seconds = spent / (2.0 * rounds), .undisturbed = in_time && preempted_ + times_preempted() == before};
}

}  // namespace tutti
