// A lock in memory that processes share, which a killed process does not keep.
#pragma once

#include <pthread.h>

#include <cerrno>

namespace tutti::testing::fake_verbs {

/// Lies in zeroed shared memory; make() is called once, before others can see it. Meets std::lock_guard's needs.
/// What it guards is written so that it is whole after each store, as its owner may die at any.
class RobustLock {
 public:
  void make() {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex_, &kind);
    pthread_mutexattr_destroy(&kind);
  }
  void lock() {
    if (pthread_mutex_lock(&mutex_) == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
  }
  void unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_;
};

}  // namespace tutti::testing::fake_verbs
