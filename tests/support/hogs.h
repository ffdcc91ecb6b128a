// Other programs that want the cores.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace tutti::testing {

/// Processes that do nothing but keep cores busy.
class Hogs {
 public:
  explicit Hogs(int count) {
    for (int i = 0; i < count; ++i) pids_.push_back(begin());
  }
  ~Hogs() {
    for (const pid_t pid : pids_) ::kill(pid, SIGKILL);
    for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
  }
  Hogs(const Hogs&) = delete;
  Hogs& operator=(const Hogs&) = delete;

 private:
  static pid_t begin() {
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    while (pid == 0 && ::getppid() == parent) {
    }
    if (pid == 0) ::_exit(0);
    return pid;
  }
  std::vector<pid_t> pids_;
};

}  // namespace tutti::testing
