/* tutti: collective communication for every memory, every wire and every machine.
 *
 * C99; needs no other header. Shape, names, argument order and result numbers follow NCCL's interface.
 *
 * Rules for all calls:
 * - Every function returns a tuttiResult_t. A bad argument is refused at the call and changes nothing.
 * - A failure on the way (a lost peer, a mismatch between ranks) becomes the communicator's first error: every later
 * call returns it, tuttiGetLastError says in words which peer and why. Receive buffers of the failed call are
 * undefined.
 * - Mismatches: ranks must make the same collective calls in the same order. Where they do not, every rank gets
 *   tuttiInvalidUsage, in the call itself or within a second of its next call, finalize or destroy, with both calls in
 *   words. No call succeeds with data that it did not get. What was written: on ranks that share memory and wait for
 * each other in the call nothing (the message says so); otherwise the receive buffers of that call and of all later
 * ones are undefined. A rank that leaves while others make one call more is a mismatch too.
 * - Counts are elements; zero is legal, more than 2^31 is legal, any alignment is legal.
 * - A communicator is used by one thread at a time, except tuttiCommAbort, tuttiCommGetAsyncError and
 * tuttiGetLastError: any thread, any time. Different communicators may be used in parallel. Several ranks of one
 * process driven by one thread: wrap their calls in tuttiGroupStart / tuttiGroupEnd.
 * - stream NULL: the call returns when it is complete on this rank, after those queued before on the same communicator.
 *   A tuttiStream_t: the call is queued, and runs in the background in order.
 * - No call is a cancellation point: a thread that is cancelled (pthread_cancel, in its deferred way) while it is in a
 *   call finishes the call, and ends at its next cancellation point behind it. What it waits for has to come:
 *   its peers, or tuttiCommAbort from another thread.
 * - Buffers are host memory, or, in a communicator whose ranks have GPUs (tuttiCommDevice), device memory: which one is
 *   found out from the pointers; see "Device memory" below.
 * - In place means send == recv, or, where one buffer is larger, the rank's own block of it (documented at each call).
 * Any other overlap of the two is an invalid argument.
 * - Every rank gets the same bits for a reduction. Sum and product propagate NaN, and so do min and max; min and max
 *   take -0 as less than +0. 16- and 8-bit floats accumulate in float32 within one pass.
 */
#ifndef TUTTI_H
#define TUTTI_H

#include <stddef.h>
#include <stdint.h>

#define TUTTI_MAJOR 0
#define TUTTI_MINOR 1
#define TUTTI_PATCH 0
#define TUTTI_VERSION (TUTTI_MAJOR * 10000 + TUTTI_MINOR * 100 + TUTTI_PATCH)

#if defined(__GNUC__)
#define TUTTI_API __attribute__((visibility("default")))
#else
#define TUTTI_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tuttiComm* tuttiComm_t;
typedef struct tuttiStream* tuttiStream_t;

typedef enum {
  tuttiSuccess = 0,
  tuttiUnhandledCudaError = 1, /* a CUDA call failed */
  tuttiSystemError = 2,        /* the system refused: memory, descriptors, sockets */
  tuttiInternalError = 3,      /* a mistake in tutti itself */
  tuttiInvalidArgument = 4,    /* an argument is wrong: see tuttiGetLastError */
  tuttiInvalidUsage = 5,       /* calls that do not fit together: see "Mismatches" below */
  tuttiRemoteError = 6,        /* a peer failed, left or was killed */
  tuttiInProgress = 7,         /* not an error: the operation is still under way */
  tuttiTimeout = 8,            /* a limit passed: see the TUTTI_*_TIMEOUT_MS settings */
  tuttiNumResults = 9
} tuttiResult_t;

typedef enum {
  tuttiInt8 = 0,
  tuttiChar = 0,
  tuttiUint8 = 1,
  tuttiInt32 = 2,
  tuttiInt = 2,
  tuttiUint32 = 3,
  tuttiInt64 = 4,
  tuttiUint64 = 5,
  tuttiFloat16 = 6,
  tuttiHalf = 6,
  tuttiFloat32 = 7,
  tuttiFloat = 7,
  tuttiFloat64 = 8,
  tuttiDouble = 8,
  tuttiBfloat16 = 9,
  tuttiFloat8e4m3 = 10,
  tuttiFloat8e5m2 = 11,
  tuttiNumTypes = 12
} tuttiDataType_t;

/* Values from tuttiNumOps on are made by tuttiRedOpCreatePreMulSum. */
typedef enum {
  tuttiSum = 0,
  tuttiProd = 1,
  tuttiMax = 2,
  tuttiMin = 3,
  tuttiAvg = 4, /* sum, then one division by the number of ranks; integers truncate */
  tuttiNumOps = 5,
  tuttiMaxRedOp = 0x7fffffff
} tuttiRedOp_t;

typedef enum { tuttiScalarDevice = 0, tuttiScalarHostImmediate = 1 } tuttiScalarResidence_t;

/* ---- Identity ---------------------------------------------------------------------------------------------------- */

#define TUTTI_UNIQUE_ID_BYTES 128
/* Names a communicator to be and carries the secret that lets ranks into it: pass it on by a channel you trust. */
typedef struct {
  char internal[TUTTI_UNIQUE_ID_BYTES];
} tuttiUniqueId;

/* TUTTI_VERSION of the library at run time. */
TUTTI_API tuttiResult_t tuttiGetVersion(int* version);

/* Makes an id and starts listening for its ranks in this process, which must live until all ranks are initialised. */
TUTTI_API tuttiResult_t tuttiGetUniqueId(tuttiUniqueId* id);

/* Stops listening for the ranks of an id that this process made and nobody is going to use; ranks that wait there get
 * tuttiRemoteError. An id whose ranks have all met needs no such call. tuttiInvalidArgument: not an id of this process,
 * or all its ranks have met. */
TUTTI_API tuttiResult_t tuttiDropUniqueId(const tuttiUniqueId* id);

/* A short static text for a code; never NULL. */
TUTTI_API const char* tuttiGetErrorString(tuttiResult_t result);

/* What went wrong last on `comm` (NULL: in this thread, outside any communicator), in a sentence; "" if nothing did.
 * Valid until the next tutti call of this thread. */
TUTTI_API const char* tuttiGetLastError(tuttiComm_t comm);

/* ---- Communicators ----------------------------------------------------------------------------------------------- */

/* Fields are only ever appended. Fields beyond `size` are not read; TUTTI_CONFIG_UNDEF_INT and NULL mean unset. */
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;      /* reserved: calls block; unset or 1 */
  int deterministic; /* 1: only algorithms of one reduction order: the bits do not depend on size or transport */
  int timeoutMs;     /* init limit for this communicator, in place of TUTTI_INIT_TIMEOUT_MS */
  const char* name;  /* for log lines and errors; copied */
  int device;        /* number of this rank's GPU; -1: host memory alone; unset: see tuttiCommInitRank */
} tuttiConfig_t;

#define TUTTI_CONFIG_UNDEF_INT (-2147483647 - 1)
#define TUTTI_CONFIG_MAGIC 0x74757474u
#define TUTTI_CONFIG_INITIALIZER                                                                              \
  {                                                                                                           \
    sizeof(tuttiConfig_t), TUTTI_CONFIG_MAGIC, TUTTI_VERSION, TUTTI_CONFIG_UNDEF_INT, TUTTI_CONFIG_UNDEF_INT, \
        TUTTI_CONFIG_UNDEF_INT, NULL, TUTTI_CONFIG_UNDEF_INT                                                  \
  }

/* Joins the communicator of `id` as `rank` of `nranks`. Blocks until all ranks are in, unless inside a group: then the
 * handle is set at tuttiGroupEnd. The rank's GPU is that of the config, else that of the thread's current CUDA context
 * (after cudaSetDevice), where CUDA is in use in this process; else it knows host memory alone. Communicators made from
 * others take theirs. Errors: timeout (naming the missing ranks), invalidUsage (duplicate rank, ranks that disagree on
 * nranks, version or settings), remoteError, systemError; invalidArgument (no such GPU), unhandledCudaError (a GPU
 * asked for without a driver that works). */
TUTTI_API tuttiResult_t tuttiCommInitRank(tuttiComm_t* comm, int nranks, tuttiUniqueId id, int rank);
TUTTI_API tuttiResult_t tuttiCommInitRankConfig(tuttiComm_t* comm, int nranks, tuttiUniqueId id, int rank,
                                                const tuttiConfig_t* config);

/* ndev ranks in this process and thread: comms[i] is rank i, on GPU devlist[i]; one GPU may have several ranks. devlist
 * NULL: as tuttiCommInitRank without a config. */
TUTTI_API tuttiResult_t tuttiCommInitAll(tuttiComm_t* comms, int ndev, const int* devlist);

/* Rank, size and meeting point from what started this process, the first that is found: TUTTI_RANK and TUTTI_NRANKS;
 * torchrun's RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (+1 is used); PMIx; Open MPI's OMPI_COMM_WORLD_*; MPICH's
 * PMI_RANK, PMI_SIZE, PMI_FD; SLURM_* in a step. The secret comes from TUTTI_COMM_SECRET or TUTTI_COMM_SECRET_FILE with
 * the address in TUTTI_COMM_ID; else through PMIx or PMI; else from an abstract unix socket on this host whose uid is
 * checked. All ranks of the job call it, as often each. See docs/launchers.md. Errors: invalidUsage (no launcher, or
 * half of one: what is missing is named), invalidArgument, timeout, remoteError, and those of tuttiCommInitRank. */
TUTTI_API tuttiResult_t tuttiCommInitFromEnv(tuttiComm_t* comm, const tuttiConfig_t* config);

#define TUTTI_SPLIT_NOCOLOR (-1)
/* Collective over comm: ranks of one color form a communicator, ordered by (key, rank). NOCOLOR gets NULL. */
TUTTI_API tuttiResult_t tuttiCommSplit(tuttiComm_t comm, int color, int key, tuttiComm_t* newcomm,
                                       const tuttiConfig_t* config);

/* Called by the listed ranks of comm only; new rank i is ranks[i]. */
TUTTI_API tuttiResult_t tuttiCommCreateGroup(tuttiComm_t comm, const int* ranks, int nranks, tuttiComm_t* newcomm,
                                             const tuttiConfig_t* config);

/* Waits until everything queued on comm has completed. Then only tuttiCommDestroy is useful. Errors: the
 * communicator's; invalidUsage where other ranks are seen to have made other calls, for which it waits at most half a
 * second, and only where some rank has not come to the last call yet. */
TUTTI_API tuttiResult_t tuttiCommFinalize(tuttiComm_t comm);
/* Finishes what is queued, then frees; within a second when a peer is gone. Errors: invalidUsage as of finalize, unless
 * a call has returned it before; comm is freed all the same. */
TUTTI_API tuttiResult_t tuttiCommDestroy(tuttiComm_t comm);
/* Ends whatever is under way, on this rank and by an error on all others, and frees. Any thread; within a second. */
TUTTI_API tuttiResult_t tuttiCommAbort(tuttiComm_t comm);

/* The communicator's first error, or tuttiSuccess. Any thread. */
TUTTI_API tuttiResult_t tuttiCommGetAsyncError(tuttiComm_t comm, tuttiResult_t* asyncError);
TUTTI_API tuttiResult_t tuttiCommCount(tuttiComm_t comm, int* count);
TUTTI_API tuttiResult_t tuttiCommUserRank(tuttiComm_t comm, int* rank);
/* The number of this rank's GPU; -1: it knows host memory alone. */
TUTTI_API tuttiResult_t tuttiCommDevice(tuttiComm_t comm, int* device);

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

/* recvbuff[i] = op over all ranks of sendbuff[i]; both of count elements. In place: sendbuff == recvbuff. */
TUTTI_API tuttiResult_t tuttiAllReduce(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type,
                                       tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream);
/* The same, result on root alone; recvbuff is ignored elsewhere. In place on root: sendbuff == recvbuff. */
TUTTI_API tuttiResult_t tuttiReduce(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type,
                                    tuttiRedOp_t op, int root, tuttiComm_t comm, tuttiStream_t stream);
/* root's sendbuff to every rank's recvbuff; sendbuff is ignored elsewhere. In place on root: sendbuff == recvbuff. */
TUTTI_API tuttiResult_t tuttiBroadcast(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type,
                                       int root, tuttiComm_t comm, tuttiStream_t stream);
/* recvbuff (nranks*sendcount) = the sendbuffs of ranks 0, 1, ... In place: sendbuff == recvbuff + rank*sendcount. */
TUTTI_API tuttiResult_t tuttiAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, tuttiDataType_t type,
                                       tuttiComm_t comm, tuttiStream_t stream);
/* Block `rank` (recvcount elements) of the reduction over all sendbuffs (nranks*recvcount).
 * In place: recvbuff == sendbuff + rank*recvcount. */
TUTTI_API tuttiResult_t tuttiReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, tuttiDataType_t type,
                                           tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream);
/* Block r of recvbuff = block `rank` of rank r's sendbuff; both nranks*count. In place: sendbuff == recvbuff (costs a
 * copy of the buffer). */
TUTTI_API tuttiResult_t tuttiAllToAll(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type,
                                      tuttiComm_t comm, tuttiStream_t stream);
/* root's recvbuff (nranks*sendcount) = all sendbuffs. In place on root: sendbuff == recvbuff + root*sendcount. */
TUTTI_API tuttiResult_t tuttiGather(const void* sendbuff, void* recvbuff, size_t sendcount, tuttiDataType_t type,
                                    int root, tuttiComm_t comm, tuttiStream_t stream);
/* recvbuff = block `rank` of root's sendbuff (nranks*recvcount). In place on root: recvbuff == sendbuff +
 * root*recvcount. */
TUTTI_API tuttiResult_t tuttiScatter(const void* sendbuff, void* recvbuff, size_t recvcount, tuttiDataType_t type,
                                     int root, tuttiComm_t comm, tuttiStream_t stream);

/* ---- Collectives with a count per rank ----
 *
 * Counts and displacements are arrays of one size_t per rank, in elements; displacements are from the start of the
 * buffer, and NULL means that the blocks lie one after another in the order of ranks. The arrays are read before the
 * call returns, also on a stream. A block of no elements has no place: its displacement is ignored, and a buffer
 * without elements may be NULL. Blocks of a receive buffer must not overlap; blocks that are only read may. Nothing
 * between the blocks is read or written.
 *
 * The two ends of each exchange must name the same number of elements. If any do not, all ranks get invalidUsage, which
 * names who sends and who wants how many, and nothing is written. Displacements are each rank's own affair.
 * Errors: invalidArgument for all else. */

/* Block r of every recvbuff, recvcounts[r] elements at rdispls[r], = the sendbuff of rank r. On all ranks sendcount ==
 * recvcounts[rank], and all pass the same recvcounts. In place: sendbuff == recvbuff + rdispls[rank]. */
TUTTI_API tuttiResult_t tuttiAllGatherV(const void* sendbuff, size_t sendcount, void* recvbuff,
                                        const size_t* recvcounts, const size_t* rdispls, tuttiDataType_t type,
                                        tuttiComm_t comm, tuttiStream_t stream);
/* recvbuff = the reduction over all ranks of block `rank`, sendcounts[rank] elements at sdispls[rank] of sendbuff. On
 * all ranks recvcount == sendcounts[rank], and all pass the same sendcounts. In place: recvbuff == sendbuff +
 * sdispls[rank]; the other blocks are kept. */
TUTTI_API tuttiResult_t tuttiReduceScatterV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                                            void* recvbuff, size_t recvcount, tuttiDataType_t type, tuttiRedOp_t op,
                                            tuttiComm_t comm, tuttiStream_t stream);
/* Block r of recvbuff, recvcounts[r] elements at rdispls[r], = block `rank` of rank r's sendbuff, of sendcounts[rank]
 * there. In place: sendbuff == recvbuff, with the same counts and displacements for both (costs a copy of the buffer).
 */
TUTTI_API tuttiResult_t tuttiAllToAllV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                                       void* recvbuff, const size_t* recvcounts, const size_t* rdispls,
                                       tuttiDataType_t type, tuttiComm_t comm, tuttiStream_t stream);
/* Block r of root's recvbuff, recvcounts[r] elements at rdispls[r], = the sendbuff of rank r, of sendcount there.
 * recvbuff, recvcounts and rdispls are ignored on other ranks. In place on root: sendbuff == recvbuff + rdispls[root].
 */
TUTTI_API tuttiResult_t tuttiGatherV(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t* recvcounts,
                                     const size_t* rdispls, tuttiDataType_t type, int root, tuttiComm_t comm,
                                     tuttiStream_t stream);
/* recvbuff, recvcount elements, = block `rank` of root's sendbuff, of sendcounts[rank] at sdispls[rank] there.
 * sendbuff, sendcounts and sdispls are ignored on other ranks. In place on root: recvbuff == sendbuff + sdispls[root].
 */
TUTTI_API tuttiResult_t tuttiScatterV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                                      void* recvbuff, size_t recvcount, tuttiDataType_t type, int root,
                                      tuttiComm_t comm, tuttiStream_t stream);

/* The collective that broadcast, scatter, gather, all-gather and all-to-all are cases of. Every rank of comm calls it
 * with the same lists of distinct ranks. Each source has totalcount elements in its sendbuff. Destination j of the list
 * receives from every source the unitcount elements from (j * unitcount) mod totalcount on, and puts those of source k
 * of the list at k * unitcount of its recvbuff (nsources*unitcount). Buffers of ranks that are not in a list are
 * ignored. unitcount must divide totalcount.
 *
 *   one source, unitcount == totalcount                   a broadcast to the destinations
 *   one source, unitcount * ndestinations == totalcount   a scatter
 *   one destination                                       a gather
 *   unitcount == totalcount                               an all-gather
 *   unitcount * ndestinations == totalcount               an all-to-all
 *
 * Lists of all ranks in order, or of all ranks and one root, run as that collective, and may be in place as it may;
 * otherwise the buffers must not overlap. Errors: invalidArgument (a list that is empty, NULL or names a rank twice or
 * one that is none; unitcount); invalidUsage (ranks disagree). */
TUTTI_API tuttiResult_t tuttiScatterGather(const void* sendbuff, void* recvbuff, const int* sources, int nsources,
                                           const int* destinations, int ndestinations, size_t unitcount,
                                           size_t totalcount, tuttiDataType_t type, tuttiComm_t comm,
                                           tuttiStream_t stream);

/* No rank returns (or completes, on a stream) before all have entered. */
TUTTI_API tuttiResult_t tuttiBarrier(tuttiComm_t comm, tuttiStream_t stream);

/* ---- Point to point ---------------------------------------------------------------------------------------------- */

/* The k-th send from a to b meets the k-th receive on b from a; counts and types must agree. */
TUTTI_API tuttiResult_t tuttiSend(const void* sendbuff, size_t count, tuttiDataType_t type, int peer, tuttiComm_t comm,
                                  tuttiStream_t stream);
TUTTI_API tuttiResult_t tuttiRecv(void* recvbuff, size_t count, tuttiDataType_t type, int peer, tuttiComm_t comm,
                                  tuttiStream_t stream);

/* Calls between the two are submitted together at the end, so any mix of sends and receives cannot deadlock. May nest.
 */
TUTTI_API tuttiResult_t tuttiGroupStart(void);
TUTTI_API tuttiResult_t tuttiGroupEnd(void);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Host memory that peers can map: the fast path. Page aligned (2 MiB when large), zeroed, on the caller's NUMA node. */
TUTTI_API tuttiResult_t tuttiMemAlloc(void** ptr, size_t bytes);
/* Memory of GPU `device` that the ranks of this process can reach, zeroed. Errors: invalidArgument (no such GPU),
 * unhandledCudaError (no driver; no memory). */
TUTTI_API tuttiResult_t tuttiMemAllocDevice(void** ptr, size_t bytes, int device);
/* Of both. */
TUTTI_API tuttiResult_t tuttiMemFree(void* ptr);
/* Announces ordinary memory that will be used often. A hint; peers may still have to copy. */
TUTTI_API tuttiResult_t tuttiCommRegister(tuttiComm_t comm, void* buff, size_t bytes, void** handle);
TUTTI_API tuttiResult_t tuttiCommDeregister(tuttiComm_t comm, void* handle);

/* ---- Device memory -----------------------------------------------------------------------------------------------
 *
 * In a communicator whose ranks have GPUs, a collective may be given device memory (of this rank's GPU) or managed
 * memory, in all ranks alike. Then `stream` is a cudaStream_t (or CUstream) of that GPU, made to fit by
 * tuttiCudaStream; NULL is CUDA's default stream. The call returns once it is queued on the stream, when all ranks of
 * the communicator that are on this GPU have made it too: ranks of one GPU that one thread drives must be in a group.
 * Where all ranks share one GPU and process, kernels carry a call out; buffers of reductions then begin at multiples of
 * their element's size. All other calls go through the host: a communicator whose ranks are in several processes, on
 * several GPUs or hosts, calls with a count per rank, and sends and receives. The stream copies to pinned memory, waits
 * until a thread of the communicator has carried the call out there, and copies back. Calls of both kinds, and those on
 * host memory, take their turns in the order in which they were made; so a call by kernels, or on host memory without a
 * stream, returns after those through the host that were made before it. In one group, all calls of a communicator go
 * the same way. A stream that waits is let go on as soon as the call has failed or the communicator is aborted.
 * Calls on host memory go on as ever; pinned memory is host memory. tuttiBarrier is queued where it gets a stream of
 * CUDA's, and is one of the host without. A call of no elements does nothing in such a communicator.
 *
 * While a stream is captured, the call becomes part of the graph, which keeps all that it needs, also when the
 * communicator is destroyed. Ranks that share a GPU must be captured together: their streams forked from one capture,
 * their calls in one group. Replays and calls of one communicator must be ordered by the caller. Calls that go through
 * the host cannot be captured.
 *
 * Errors: invalidArgument (one buffer of the host and one of the GPU; memory or a stream of another GPU; a buffer of a
 * reduction that is not aligned to its elements; cudaStreamPerThread, where there are several ranks; a
 * tuttiStream_t with device memory, a cudaStream_t with host memory); invalidUsage (ranks that differ; some streams
 * captured and others not; a captured stream, or a GPU whose streams cannot wait for memory, where a call goes through
 * the host; a group whose calls on one communicator go different ways); timeout (TUTTI_MEET_TIMEOUT_MS: a thread waits
 * for a rank that it drives itself); unhandledCudaError (CUDA's name of its code, and whether anything will work after
 * it). They become the communicator's error, but for invalidArgument. A kernel that waited in vain (TUTTI_TIMEOUT_MS,
 * or tuttiCommAbort) is told by tuttiCommGetAsyncError and the next call: rank, peer, channel and step. */

/* For `stream` of calls on device memory: a cudaStream_t or CUstream as it is. */
static inline tuttiStream_t tuttiCudaStream(void* cudaStream) {
  return (tuttiStream_t)cudaStream;
}

/* ---- Host streams ------------------------------------------------------------------------------------------------ */

/* An ordered queue with a thread of its own. */
TUTTI_API tuttiResult_t tuttiStreamCreate(tuttiStream_t* stream);
/* Waits for all that is queued; returns the first error any of it met since the last synchronisation. */
TUTTI_API tuttiResult_t tuttiStreamSynchronize(tuttiStream_t stream);
/* tuttiSuccess when idle, tuttiInProgress while working, or the error as above. */
TUTTI_API tuttiResult_t tuttiStreamQuery(tuttiStream_t stream);
TUTTI_API tuttiResult_t tuttiStreamDestroy(tuttiStream_t stream);

/* ---- Reduction --------------------------------------------------------------------------------------------------- */

/* A sum whose inputs are multiplied by this rank's *scalar (of `type`, rounded to it) first. Host scalars only. */
TUTTI_API tuttiResult_t tuttiRedOpCreatePreMulSum(tuttiRedOp_t* op, void* scalar, tuttiDataType_t type,
                                                  tuttiScalarResidence_t residence, tuttiComm_t comm);
TUTTI_API tuttiResult_t tuttiRedOpDestroy(tuttiRedOp_t op, tuttiComm_t comm);

/* ---- Insight ----------------------------------------------------------------------------------------------------- */

/* What the last completed collective on comm used, e.g. "two_shot" and "window". Transports: line, window, pull, fifo
 * (through slots in shared memory), socket (where not all ranks share memory), gpu, p2p. Valid until the next call on
 * comm. */
TUTTI_API tuttiResult_t tuttiCommLastAlgorithm(tuttiComm_t comm, const char** algorithm, const char** transport);

/* Says what a call would use and why: for each way in which ranks may reach each other in it, the algorithms there are
 * with their predicted times (of float32 sums), steps and bytes, the fastest first, a star before the one used.
 * `collective`: "all_reduce", "allreduce", "AllReduce", ...; `count` and `type` as in that call; root 0. Like snprintf:
 * writes at most `capacity` bytes to `text`, the last of them 0, and sets *length (unless NULL) to the length of the
 * whole text; text may be NULL where capacity is 0. Moves nothing and needs no other rank, but takes milliseconds: use
 * it to understand, not on the way of calls. Errors: invalidArgument. */
TUTTI_API tuttiResult_t tuttiCommExplain(tuttiComm_t comm, const char* collective, size_t count, tuttiDataType_t type,
                                         char* text, size_t capacity, size_t* length);

#ifdef __cplusplus
}
#endif
#endif
