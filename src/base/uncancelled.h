// Keeps a thread from being cancelled (pthread_cancel) in the middle of what must be finished.
#pragma once

#include <pthread.h>

namespace tutti {

/// A cancelled thread is unwound from the system call it waits in, through whatever called that: a communicator would
/// be left half-way, and the first noexcept function ends the process. So it stands around all that reaches such a call
/// (the system's cancellation points: poll, send, close, ...), but where it would cost a call of the smallest kind more
/// than it may: those reach one on their slow ways alone, which have one of their own. The cancellation comes to pass
/// at the thread's next cancellation point behind it. Some 10 ns; may be nested.
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
