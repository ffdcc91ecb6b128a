/* Messages with tags. Part of tutti.h, which includes it. */
#ifndef TUTTI_MESSAGES_H
#define TUTTI_MESSAGES_H

#include <stddef.h>

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sends and receives that hold up no other call, and are not held up by any: each has a tag, and may come from any
 * rank. They are apart from tuttiSend and tuttiRecv, and in no order with other calls; groups and streams do not
 * concern them. Buffers are host memory.
 *
 * A receive takes the first message that fits its source and tag and that no receive before it takes; messages of one
 * rank fit in the order in which they were sent. Counts need not be equal: a receive's is the most that it takes. A
 * message that is longer, or of another type, is lost, and the receive gets tuttiInvalidUsage, which is no error of the
 * communicator.
 *
 * Messages are carried on by the functions below, and by any call of the communicator that waits. Up to 16 KiB are sent
 * without waiting for the receiver, as far as there is room; longer ones wait for the receive that takes them. Buffers
 * must not be touched (of a send: changed) before the request has ended. All requests must have ended before the
 * communicator is destroyed; otherwise they get tuttiInvalidUsage.
 *
 * All messages must have been received before the communicator ends, and a probe receives nothing. Otherwise
 * tuttiCommFinalize or tuttiCommDestroy says so by tuttiInvalidUsage on the rank to which such a message has come; and
 * on the sender where it leaves later, unless the news from another host comes too late. */
typedef struct tuttiRequest* tuttiRequest_t;

#define TUTTI_ANY_SOURCE (-1)
#define TUTTI_ANY_TAG (-1)

/* What a message was; of a send, what was sent. */
typedef struct {
  int source;
  int tag;
  size_t count; /* elements of `type` */
  tuttiDataType_t type;
  int cancelled; /* 1: nothing was sent or received */
  long long reserved[2];
} tuttiStatus_t;

/* Begins to send a message; the request ends when sendbuff may be changed. `tag`: 0 or more. Errors: invalidArgument,
 * systemError (more than 65536 requests), the communicator's. */
TUTTI_API tuttiResult_t tuttiIsend(const void* sendbuff, size_t count, tuttiDataType_t type, int peer, int tag,
                                   tuttiComm_t comm, tuttiRequest_t* request);
/* Begins to receive a message of at most `count` elements. `source` may be TUTTI_ANY_SOURCE and `tag` TUTTI_ANY_TAG.
 * Errors: as tuttiIsend. */
TUTTI_API tuttiResult_t tuttiIrecv(void* recvbuff, size_t count, tuttiDataType_t type, int source, int tag,
                                   tuttiComm_t comm, tuttiRequest_t* request);

/* Whether a request has ended. If so, frees it, sets *request to NULL and returns its result; `status` may be NULL.
 * Does not wait. A request that is NULL has ended. Errors: invalidArgument, and the message's: invalidUsage (it did not
 * fit), the communicator's. */
TUTTI_API tuttiResult_t tuttiTest(tuttiRequest_t* request, int* done, tuttiStatus_t* status);
/* Waits until it has. Errors: as tuttiTest. */
TUTTI_API tuttiResult_t tuttiWait(tuttiRequest_t* request, tuttiStatus_t* status);
/* Cancels a receive that no message has come for, or a send of which nothing has left: *cancelled is then 1, and the
 * request has ended. It must be tested or waited for in any case. */
TUTTI_API tuttiResult_t tuttiCancel(tuttiRequest_t request, int* cancelled);

/* Whether a message is there that a receive of this source and tag would take, and which; receives nothing. */
TUTTI_API tuttiResult_t tuttiIprobe(int source, int tag, tuttiComm_t comm, int* found, tuttiStatus_t* status);
/* Waits until one is. */
TUTTI_API tuttiResult_t tuttiProbe(int source, int tag, tuttiComm_t comm, tuttiStatus_t* status);

#ifdef __cplusplus
}
#endif
#endif
