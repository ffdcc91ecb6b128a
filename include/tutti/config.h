/* What a communicator can be told when it is made. Part of tutti.h, which includes it. */
#ifndef TUTTI_CONFIG_H
#define TUTTI_CONFIG_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* New fields are only ever appended. Fields beyond `size` are not read; TUTTI_CONFIG_UNDEF_INT and NULL mean unset. */
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;      /* reserved; unset or 1: calls block */
  int deterministic; /* 1: only algorithms with one reduction order: the bits do not depend on size or transport */
  int timeoutMs;     /* time limit of this communicator's init; replaces TUTTI_INIT_TIMEOUT_MS */
  const char* name;  /* for log lines and errors; copied */
  int device;        /* number of this rank's GPU; -1: host memory only; unset: see tuttiCommInitRank */
  /* Called with progressContext, again and again, by a thread that waits in a call of this communicator or in its init:
   * after some 10 microseconds without progress, then about as often, and at least every 0.1 ms if the system lets it.
   * For programs in which a peer may need something of this thread before it makes its call, such as messages of MPI.
   * Must return soon and must not call tutti; never called by a thread of the library. A communicator made from
   * another one takes over both fields where they are unset. */
  void (*progress)(void* progressContext);
  void* progressContext;
  /* Longest time in milliseconds that a call of this communicator waits without progress for a peer that is alive;
   * replaces TUTTI_TIMEOUT_MS; 0: no limit. See tuttiCommSetTimeout. A communicator made from another one takes over
   * the limit that this one has, where it is unset. */
  int callTimeoutMs;
} tuttiConfig_t;

#define TUTTI_CONFIG_UNDEF_INT (-2147483647 - 1)
#define TUTTI_CONFIG_MAGIC 0x74757474u
#define TUTTI_CONFIG_INITIALIZER                                                                              \
  {                                                                                                           \
    sizeof(tuttiConfig_t), TUTTI_CONFIG_MAGIC, TUTTI_VERSION, TUTTI_CONFIG_UNDEF_INT, TUTTI_CONFIG_UNDEF_INT, \
        TUTTI_CONFIG_UNDEF_INT, NULL, TUTTI_CONFIG_UNDEF_INT, NULL, NULL, TUTTI_CONFIG_UNDEF_INT              \
  }

#ifdef __cplusplus
}
#endif
#endif
