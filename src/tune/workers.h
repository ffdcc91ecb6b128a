// One or two threads on separate cores that do the same work at once, as ranks do.
#pragma once

#include <sched.h>

#include <functional>
#include <thread>
#include <vector>

#include "transport/flag.h"

namespace tutti {

/// Works in the calling thread and one helper, which is stopped and joined at the end. Meanwhile the calling thread
/// runs on the first core of `cpus`, the helper on the second; with one core there is no helper.
class Workers {
 public:
  /// `until_ns` (real_system().now_ns()): when measuring must be over, whatever takes the cores.
  Workers(const cpu_set_t& cpus, std::int64_t until_ns);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int members() const { return helper_.joinable() ? 2 : 1; }
  /// That time has come: what is still measured says nothing.
  bool late() const;

  struct Sample {
    double seconds = 0;
    bool undisturbed = true;  ///< no other thread had a member's core meanwhile, and it was not late
  };
  /// The time until all members have done `work(member)`, from a common start.
  Sample run(const std::function<void(int)>& work);

  /// The time of one way between the two, on average over `rounds` round trips. Requires two members.
  Sample hop(int rounds);

 private:
  void serve(int cpu);
  bool await(const Flag& flag, std::uint64_t value) const;

  std::int64_t until_ns_;
  cpu_set_t before_{};
  std::vector<int> cores_;
  const std::function<void(int)>* work_ = nullptr;
  int rounds_ = 0;
  bool leaving_ = false;
  std::uint64_t round_ = 0;
  long preempted_ = 0;  // how often the helper was preempted, from its start to the end of the last round
  Flag here_{}, there_{}, ping_{}, pong_{};
  std::thread helper_;
};

}  // namespace tutti
