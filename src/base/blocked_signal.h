// Keeps signals away from code of the library: those that its own system calls raise, and those that ask for any thread
// of the process.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <ctime>

namespace tutti {

/// A write to a broken pipe raises SIGPIPE, one beyond `ulimit -f` SIGXFSZ. Either would end a program that has not
/// asked for it; the call fails with EPIPE or EFBIG anyway. While an object of this class lives, the signal waits; its
/// end takes back the one that this thread caused meanwhile, and leaves the mask as it was. A signal of that number
/// that waited before waits on. Keeps errno. May be nested.
class BlockedSignal {
 public:
  explicit BlockedSignal(int signal) {
    ::sigemptyset(&signal_);
    ::sigaddset(&signal_, signal);
    sigset_t waiting;
    waited_ = ::sigpending(&waiting) == 0 && ::sigismember(&waiting, signal) == 1;
    ::pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~BlockedSignal() {
    const int error = errno;
    const timespec now{};
    // Where none waits, this returns at once.
    while (!waited_ && ::sigtimedwait(&signal_, nullptr, &now) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  BlockedSignal(const BlockedSignal&) = delete;
  BlockedSignal& operator=(const BlockedSignal&) = delete;

 private:
  sigset_t signal_{};
  sigset_t before_{};
  bool waited_ = false;
};

/// For starting a thread: it inherits the mask, so that signals go to the program's threads.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace tutti
