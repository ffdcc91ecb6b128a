/* Loaded before MPICH on UCX: ranks that wait in MPICH let others have the core, which MPICH itself never does. With
 * more ranks than cores each of its calls would otherwise take as long as the scheduler lets the waiting ones run. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

typedef unsigned progress_t(void* worker);

/* What MPICH's loop of progress calls in libucp. */
unsigned ucp_worker_progress(void* worker) {
  static progress_t* theirs;
  static _Thread_local unsigned in_vain;
  if (!theirs) theirs = (progress_t*)dlsym(RTLD_NEXT, "ucp_worker_progress");
  const unsigned done = theirs(worker);
  if (done) {
    in_vain = 0;
  } else if (++in_vain >= 20) {
    in_vain = 0;
    sched_yield();
  }
  return done;
}
