// Keeps a thread from being cancelled (pthread_cancel) in the middle of work that must be finished.
#pragma once

#include <pthread.h>

namespace tutti {

/// A cancelled thread is unwound from the system call in which it waits, through all its callers: a communicator would
/// be left in an inconsistent state, and the first noexcept function ends the process. So an object of this class
/// surrounds all code that reaches such a call (the system's cancellation points: poll, send, close, ...). Where its
/// cost would be too high, on the fast path of the smallest calls, only the slow paths that reach a cancellation point
/// have one. The cancellation takes effect at the thread's next cancellation point afterwards. Costs some 10 ns; may be
/// nested.
class Uncancelled {
 public:
  Uncancelled() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() {
    if (before_ == PTHREAD_CANCEL_ENABLE) ::pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
  }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_DISABLE;
};

}  // namespace tutti
