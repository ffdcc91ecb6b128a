/* tutti: collective communication for host memory, GPUs and sockets.
 *
 * C99; includes nothing but the headers below. Names, order of arguments and results follow NCCL's interface.
 *
 * Rules for all calls:
 * - Every function returns a tuttiResult_t. A call with a bad argument is refused at once and changes nothing.
 * - A failure during a call (a lost peer, a mismatch between ranks) becomes the communicator's first error: every
 *   later call returns it, and tuttiGetLastError says which peer failed and why. The receive buffers of the failed
 *   call are undefined.
 * - A rank whose process ends without tuttiCommDestroy (it returns from main, calls _exit or exec, or is killed) is
 *   lost to the others; tuttiCommGetAsyncError says so at once. Calls that it had completed still succeed on all other
 *   ranks, even on those that enter them later, and messages that it had sent are still received: where a broadcast's
 *   root has returned and ended, those who come later get its data. What needs more of it fails, and so does every
 *   later collective call. Sends and receives between other ranks go on, and a receive from any rank waits as long as
 *   a rank is left that could send. Between hosts nobody knows which calls it had completed: there, a collective call
 *   that begins more than two seconds after the loss fails. By RDMA what a process has not finished sending ends with
 *   it, so destroy the communicator first.
 * - Mismatches: all ranks must make the same collective calls in the same order, with equal counts, types, operators
 *   and roots. A call with one count and the same call with a count per rank (tuttiAllGather, tuttiAllGatherV) are two
 *   different calls, even where all counts are equal: all ranks make the one or all the other. If they do not, every
 *   rank gets tuttiInvalidUsage with a message that names both calls: from the call itself, or within a second from its
 *   next call, finalize or destroy. No call succeeds with data that it did not receive. Where ranks share memory and
 *   wait for each other in the call, nothing has been written (the message says so); otherwise the receive buffers of
 *   that call and of all later ones are undefined. A rank that leaves while others make one more call is a mismatch.
 * - Counts are in elements. A count of zero, counts above 2^31 and any alignment are legal.
 * - One thread at a time may use a communicator, except for tuttiCommAbort, tuttiCommGetAsyncError and
 *   tuttiGetLastError, which any thread may call at any time. Different communicators may be used in parallel. Where
 *   one thread drives several ranks of its process, their calls go between tuttiGroupStart and tuttiGroupEnd.
 * - With stream NULL, the call returns when it is complete on this rank, after the calls queued before it on the same
 *   communicator. With a tuttiStream_t, the call is queued and runs in the background, in order.
 * - No call is a cancellation point. A thread that is cancelled (pthread_cancel, deferred) inside a call finishes the
 *   call and ends at its next cancellation point after it. To finish, the call still needs its peers, or
 *   tuttiCommAbort from another thread.
 * - Buffers are host memory or, in a communicator whose ranks have GPUs (tuttiCommDevice), device memory. tutti finds
 *   out which from the pointers; see "Device memory" below.
 * - In place means send == recv or, where one buffer is larger, the rank's own block of the larger buffer (documented
 *   at each call). Any other overlap of the two buffers is an invalid argument.
 * - A reduction gives the same bits on every rank. Sum, product, min and max propagate NaN; min and max treat -0 as
 *   less than +0. 16-bit and 8-bit floats accumulate in float32 within one pass; see tuttiSum and tuttiAvg for what
 *   that means where a call takes several.
 */
#ifndef TUTTI_H
#define TUTTI_H

#include <stddef.h>
#include <stdint.h>

#include "config.h"   /* tuttiConfig_t */
#include "counts.h"   /* collectives with a count per rank */
#include "messages.h" /* messages with tags */
#include "types.h"    /* handles, results, element types, operators */

#define TUTTI_MAJOR 0
#define TUTTI_MINOR 1
#define TUTTI_PATCH 0
#define TUTTI_VERSION (TUTTI_MAJOR * 10000 + TUTTI_MINOR * 100 + TUTTI_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Identity ---------------------------------------------------------------------------------------------------- */

#define TUTTI_UNIQUE_ID_BYTES 128
/* Identifies a communicator that is to be made. It contains the secret that admits ranks: send it to them over a
 * connection that you trust. */
typedef struct {
  char internal[TUTTI_UNIQUE_ID_BYTES];
} tuttiUniqueId;

/* The TUTTI_VERSION of the loaded library. */
TUTTI_API tuttiResult_t tuttiGetVersion(int* version);

/* Makes an id. This process listens for the id's ranks and must live until all of them are initialised. If it ends
 * before, or their start fails, ranks that come later get an error after about a second. */
TUTTI_API tuttiResult_t tuttiGetUniqueId(tuttiUniqueId* id);
/* Makes `count` ids, for as many communicators, or none. They share one socket to listen on. */
TUTTI_API tuttiResult_t tuttiGetUniqueIds(tuttiUniqueId* ids, size_t count);

/* Stops listening for the ranks of an id that this process made and that will not be used; ranks already waiting there
 * get tuttiRemoteError. Not needed for an id whose ranks have all connected. tuttiInvalidArgument: this process did not
 * make the id, or all its ranks have connected. */
TUTTI_API tuttiResult_t tuttiDropUniqueId(const tuttiUniqueId* id);

/* A short static text for a result; never NULL. */
TUTTI_API const char* tuttiGetErrorString(tuttiResult_t result);

/* The last error of `comm` in a sentence, "" if there was none. NULL: the last error of this thread outside any
 * communicator. Valid until this thread's next tutti call. */
TUTTI_API const char* tuttiGetLastError(tuttiComm_t comm);

/* tuttiCommGetAsyncError and tuttiGetLastError in one: *error is the first error of `comm`, or tuttiSuccess, and text
 * says it in a sentence, "" if there was none. NULL: the last error of this thread. Any thread; another thread's calls
 * cannot come in between. Like snprintf: writes at most `capacity` bytes to `text`, the last of them 0, and sets
 * *length (unless NULL) to the length of the whole text; text may be NULL where capacity is 0. Errors: invalidArgument.
 */
TUTTI_API tuttiResult_t tuttiGetError(tuttiComm_t comm, tuttiResult_t* error, char* text, size_t capacity,
                                      size_t* length);

/* ---- Communicators ----------------------------------------------------------------------------------------------- */

/* Joins the communicator of `id` as `rank` of `nranks`. Blocks until all ranks have joined; inside a group the handle
 * is set at tuttiGroupEnd instead. The rank's GPU is the one in the config, else, where this process uses CUDA, the one
 * of the thread's current CUDA context (after cudaSetDevice); else the rank uses host memory only. A communicator made
 * from another one takes its GPU. A process that becomes another user or undumpable afterwards goes on through slower
 * copies (docs/transports.md). Errors: timeout (names the missing ranks), invalidUsage (duplicate rank; ranks that
 * disagree on nranks, version or settings), remoteError, systemError; invalidArgument (no such GPU),
 * unhandledCudaError (a GPU was requested, but there is no working driver). A rank that fails by itself, by its
 * settings too (but for its secret or address), fails the start on all of them: the others get its code, its number and
 * its reason. Only a rank, nranks or config that is refused as such changes nothing, and the call can be made again; a
 * device that does not exist fails the start. */
TUTTI_API tuttiResult_t tuttiCommInitRank(tuttiComm_t* comm, int nranks, tuttiUniqueId id, int rank);
TUTTI_API tuttiResult_t tuttiCommInitRankConfig(tuttiComm_t* comm, int nranks, tuttiUniqueId id, int rank,
                                                const tuttiConfig_t* config);

/* Makes ndev ranks in this process and thread: comms[i] is rank i, on GPU devlist[i]. Several ranks may share a GPU.
 * devlist NULL: each rank's GPU is chosen as by tuttiCommInitRank without a config. */
TUTTI_API tuttiResult_t tuttiCommInitAll(tuttiComm_t* comms, int ndev, const int* devlist);

/* Takes rank, size and meeting point from the environment of the launcher that started this process. The first one
 * found is used: TUTTI_RANK and TUTTI_NRANKS; torchrun's RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (+1 is used);
 * PMIx; Open MPI's OMPI_COMM_WORLD_*; MPICH's PMI_RANK, PMI_SIZE, PMI_FD; SLURM_* in a step. The secret comes from
 * TUTTI_COMM_SECRET or TUTTI_COMM_SECRET_FILE with the address in TUTTI_COMM_ID; else through PMIx or PMI; else from an
 * abstract unix socket on this host whose uid is checked. All ranks of the job must call it, equally often. See
 * docs/launchers.md. Errors: invalidUsage (no launcher, or an incomplete one: the message names what is missing),
 * invalidArgument, timeout, remoteError, and those of tuttiCommInitRank. */
TUTTI_API tuttiResult_t tuttiCommInitFromEnv(tuttiComm_t* comm, const tuttiConfig_t* config);

#define TUTTI_SPLIT_NOCOLOR (-1)
/* Collective over comm: the ranks of one color form a communicator, ordered by (key, rank). Ranks that pass
 * TUTTI_SPLIT_NOCOLOR get NULL. The cheapest way to many communicators: ranks that share memory exchange all that they
 * must know over comm, and neither listen nor connect. If one of them is refused the GPU of its config, all of its
 * color get an error, and comm goes on; likewise for tuttiCommCreateGroup. */
TUTTI_API tuttiResult_t tuttiCommSplit(tuttiComm_t comm, int color, int key, tuttiComm_t* newcomm,
                                       const tuttiConfig_t* config);

/* Called by the listed ranks of comm only; rank i of the new communicator is ranks[i]. What happens to a rank that is
 * not listed does not matter: if comm has failed, or fails meanwhile, because such a rank was lost or aborted it, the
 * listed ranks still get their communicator, unless sends and receives between them were under way then. Every other
 * failure of comm, and a listed rank that is killed, is stopped for TUTTI_SILENCE_MS, aborts comm or fails, ends the
 * call on the other listed ranks, with an error that names that rank. */
TUTTI_API tuttiResult_t tuttiCommCreateGroup(tuttiComm_t comm, const int* ranks, int nranks, tuttiComm_t* newcomm,
                                             const tuttiConfig_t* config);

/* Waits until everything queued on comm has completed. Afterwards only tuttiCommDestroy is useful. Errors: the
 * communicator's; invalidUsage if other ranks are seen to have made other calls, or if a message has come
 * that no receive took. The check waits at most half a second, and only if some rank has not reached the last call yet.
 */
TUTTI_API tuttiResult_t tuttiCommFinalize(tuttiComm_t comm);
/* Finishes what is queued, then frees comm; within a second if a peer is gone. Errors: invalidUsage as for finalize,
 * unless a call has already returned it; comm is freed in any case. */
TUTTI_API tuttiResult_t tuttiCommDestroy(tuttiComm_t comm);
/* Ends all operations, on all other ranks with an error, and frees comm. Any thread; takes less than a second. */
TUTTI_API tuttiResult_t tuttiCommAbort(tuttiComm_t comm);

/* The communicator's first error, or tuttiSuccess. Once a peer is lost that is tuttiRemoteError, although calls that it
 * had completed still succeed. Any thread. */
TUTTI_API tuttiResult_t tuttiCommGetAsyncError(tuttiComm_t comm, tuttiResult_t* asyncError);
TUTTI_API tuttiResult_t tuttiCommCount(tuttiComm_t comm, int* count);
TUTTI_API tuttiResult_t tuttiCommUserRank(tuttiComm_t comm, int* rank);
/* The number of this rank's GPU; -1: host memory only. */
TUTTI_API tuttiResult_t tuttiCommDevice(tuttiComm_t comm, int* device);

/* Sets the time limit, in milliseconds, of the calls on comm that this rank makes from now on; 0: no limit. Calls that
 * are queued already keep theirs; those of a group have the limit at the first of them. So a limit for one call is set
 * before it, which costs next to nothing. The limit is this rank's alone and is on waiting without any progress: a call
 * that takes long but moves data does not exceed it. It runs from the last progress, or from the beginning of the call.
 * A call that exceeds it gets tuttiTimeout, which becomes the communicator's error on all ranks; tuttiGetLastError
 * names the rank that the call waited for and, where that one waits itself, the rank that holds up both. A peer that
 * comes after the limit comes too late, however loaded the machine is. Kernels that wait on a GPU have the limit of
 * TUTTI_TIMEOUT_MS instead. Errors: invalidArgument (negative). */
TUTTI_API tuttiResult_t tuttiCommSetTimeout(tuttiComm_t comm, int timeoutMs);

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

/* recvbuff[i] = op over all ranks of sendbuff[i]; both buffers have count elements. In place: sendbuff == recvbuff. */
TUTTI_API tuttiResult_t tuttiAllReduce(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type,
                                       tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream);
/* As tuttiAllReduce, with the result on root only; recvbuff is ignored on other ranks. In place on root:
 * sendbuff == recvbuff. */
TUTTI_API tuttiResult_t tuttiReduce(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type,
                                    tuttiRedOp_t op, int root, tuttiComm_t comm, tuttiStream_t stream);
/* Copies root's sendbuff to every rank's recvbuff; sendbuff is ignored on other ranks. In place on root:
 * sendbuff == recvbuff. */
TUTTI_API tuttiResult_t tuttiBroadcast(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type,
                                       int root, tuttiComm_t comm, tuttiStream_t stream);
/* recvbuff (nranks*sendcount) = the sendbuffs of ranks 0, 1, ... In place: sendbuff == recvbuff + rank*sendcount. */
TUTTI_API tuttiResult_t tuttiAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, tuttiDataType_t type,
                                       tuttiComm_t comm, tuttiStream_t stream);
/* recvbuff (recvcount) = block `rank` of the reduction over all sendbuffs (nranks*recvcount).
 * In place: recvbuff == sendbuff + rank*recvcount; the other blocks are kept. Or, in host memory, recvbuff == sendbuff:
 * the result replaces block 0 (costs a copy of the result). */
TUTTI_API tuttiResult_t tuttiReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, tuttiDataType_t type,
                                           tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream);
/* Block r of recvbuff = block `rank` of rank r's sendbuff; both buffers have nranks*count elements.
 * In place: sendbuff == recvbuff (costs a copy of the buffer). */
TUTTI_API tuttiResult_t tuttiAllToAll(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type,
                                      tuttiComm_t comm, tuttiStream_t stream);
/* root's recvbuff (nranks*sendcount) = the sendbuffs of ranks 0, 1, ...
 * In place on root: sendbuff == recvbuff + root*sendcount. */
TUTTI_API tuttiResult_t tuttiGather(const void* sendbuff, void* recvbuff, size_t sendcount, tuttiDataType_t type,
                                    int root, tuttiComm_t comm, tuttiStream_t stream);
/* recvbuff = block `rank` of root's sendbuff (nranks*recvcount).
 * In place on root: recvbuff == sendbuff + root*recvcount. */
TUTTI_API tuttiResult_t tuttiScatter(const void* sendbuff, void* recvbuff, size_t recvcount, tuttiDataType_t type,
                                     int root, tuttiComm_t comm, tuttiStream_t stream);

/* Prefix reduction: rank r's recvbuff[i] = op over ranks 0 to r of sendbuff[i], combined in the order of ranks, so `op`
 * need not be commutative, only associative; both buffers have count elements. Rank 0 gets its input as it is. A rank
 * may return before higher ranks have made the call. Host memory only. In place: sendbuff == recvbuff. Errors:
 * invalidArgument (also for tuttiAvg, as each rank combines another number of inputs, and for device memory). */
TUTTI_API tuttiResult_t tuttiScan(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type,
                                  tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream);
/* As tuttiScan, over ranks 0 to r-1: rank 1 gets rank 0's input. On rank 0 recvbuff is ignored and stays as it is; the
 * last rank's sendbuff counts for nothing, but must be there. In place: sendbuff == recvbuff (costs a copy of large
 * buffers). */
TUTTI_API tuttiResult_t tuttiExScan(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type,
                                    tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream);

/* No rank returns (or completes, on a stream) before all ranks have entered. */
TUTTI_API tuttiResult_t tuttiBarrier(tuttiComm_t comm, tuttiStream_t stream);

/* ---- Point to point ---------------------------------------------------------------------------------------------- */

/* The k-th send from a to b matches the k-th receive on b from a; their counts and types must be equal. A send may wait
 * for its receive: ranks that send to each other do so in a group. A message that b never receives is an error at one
 * of the two: where the send does not wait, when b leaves (invalidUsage from tuttiCommFinalize or tuttiCommDestroy). */
TUTTI_API tuttiResult_t tuttiSend(const void* sendbuff, size_t count, tuttiDataType_t type, int peer, tuttiComm_t comm,
                                  tuttiStream_t stream);
TUTTI_API tuttiResult_t tuttiRecv(void* recvbuff, size_t count, tuttiDataType_t type, int peer, tuttiComm_t comm,
                                  tuttiStream_t stream);

/* Calls between the two are submitted together at tuttiGroupEnd, so no mix of sends and receives can deadlock. Groups
 * may nest. */
TUTTI_API tuttiResult_t tuttiGroupStart(void);
TUTTI_API tuttiResult_t tuttiGroupEnd(void);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Host memory that peers can map, which is the fastest kind for tutti. Page aligned (2 MiB when large), zeroed, on the
 * caller's NUMA node. */
TUTTI_API tuttiResult_t tuttiMemAlloc(void** ptr, size_t bytes);
/* Zeroed memory of GPU `device` that the ranks of this process can reach. Errors: invalidArgument (no such GPU),
 * unhandledCudaError (no driver; no memory). */
TUTTI_API tuttiResult_t tuttiMemAllocDevice(void** ptr, size_t bytes, int device);
/* Frees memory of tuttiMemAlloc or tuttiMemAllocDevice. */
TUTTI_API tuttiResult_t tuttiMemFree(void* ptr);
/* [buff, buff + bytes) stays mapped until tuttiCommDeregister, so RDMA devices may use it in place. With
 * TUTTI_REGISTER=mapped peers on the same host map it until then (or until the communicator ends), as memory of
 * tuttiMemAlloc. Not to be taken back while a call uses it, and not to be freed before. Errors: invalidArgument (NULL,
 * no bytes; no such handle). */
TUTTI_API tuttiResult_t tuttiCommRegister(tuttiComm_t comm, void* buff, size_t bytes, void** handle);
TUTTI_API tuttiResult_t tuttiCommDeregister(tuttiComm_t comm, void* handle);

/* ---- Device memory -----------------------------------------------------------------------------------------------
 *
 * In a communicator whose ranks have GPUs, a collective accepts device memory (of this rank's GPU) or managed memory,
 * on all ranks alike. `stream` is then a cudaStream_t (or CUstream) of that GPU, converted by tuttiCudaStream; NULL is
 * CUDA's default stream. The call returns once it is queued on the stream, which happens when all ranks of the
 * communicator on this GPU have made it: ranks of one GPU that one thread drives must be in a group.
 *
 * If all ranks share one GPU and process, one kernel carries a call without a count per rank out. If all GPUs of a host
 * reach each other's memory, kernels of each rank do: with the conditions of TUTTI_GPU_P2P by kernels that wait for
 * each other, all collectives, and sends and receives if no two ranks share a process and a GPU; otherwise collectives
 * from 64 KiB in a group on, by kernels between which the stream waits for the host. In all these cases the buffers of
 * reductions must be aligned to their element's size. All other calls are host-staged: the stream copies to pinned
 * memory, waits for the call there, and copies back. Where sends and receives go by kernels, both ranks must use device
 * memory, and a send completes when the receiver has room for it, at the latest when it receives.
 *
 * Calls of all kinds, also on host memory, run in the order in which they were made. So a call by one kernel, or on
 * host memory without a stream, returns only after the other calls on device memory made before it. In one group, all
 * calls of a communicator must be by one kernel, or none. Calls by kernels that wait for each other are outside this
 * order, except that of their streams and among themselves: nothing waits for them, and a group may have them and
 * others, of which the kind that comes first is queued first. All ranks must then have the same groups. Within a group
 * sends and receives by kernels come after the collectives of their communicator, and if every rank has a GPU of its
 * own, the kernels of several communicators are queued in one order on all ranks. If a call fails
 * or the communicator is aborted, a waiting stream continues at once. Calls on host memory work as in other
 * communicators; pinned memory is host memory. tuttiBarrier is queued if it gets a CUDA stream; without one it is a
 * host barrier. A rank that has no elements in a call with a count per rank shows by what it passes as buffers that it
 * means device memory, or by a CUDA stream. A call of no elements on all ranks does nothing in a communicator in which
 * some rank has a GPU, on ranks without one, too.
 *
 * While a stream is captured, the call becomes part of the graph. The graph keeps all that it needs, also after the
 * communicator is destroyed. Ranks that share a GPU must be captured together: their streams forked from one capture,
 * their calls in one group. The caller must order replays and other calls of one communicator. Only calls by one kernel
 * and by kernels that wait for each other can be captured; each replay is one call, which all ranks must make or
 * replay.
 *
 * Errors: invalidArgument (one buffer in host memory and the other on the GPU; memory or a stream of another GPU; a
 * buffer of a reduction that is not aligned to its elements; cudaStreamPerThread for one kernel of several ranks; a
 * tuttiStream_t with device memory, or a cudaStream_t with host memory); invalidUsage (ranks that differ; some streams
 * captured and others not; another call on a captured stream, or on a GPU whose streams cannot wait; a group whose
 * calls on one communicator are of both kinds); timeout (TUTTI_MEET_TIMEOUT_MS: a thread waits for a rank that it
 * drives itself); unhandledCudaError (with CUDA's name of its error, and whether anything will work after it). All but
 * invalidArgument become the communicator's error. If a kernel waits in vain (until TUTTI_TIMEOUT_MS, or
 * tuttiCommAbort), tuttiCommGetAsyncError and the next call report rank, peer, channel and step. */

/* Converts a cudaStream_t or CUstream to the `stream` argument of calls on device memory. */
static inline tuttiStream_t tuttiCudaStream(void* cudaStream) {
  return (tuttiStream_t)cudaStream;
}

/* ---- Host streams ------------------------------------------------------------------------------------------------ */

/* An ordered queue with its own thread. */
TUTTI_API tuttiResult_t tuttiStreamCreate(tuttiStream_t* stream);
/* Waits for all queued calls; returns the first error that any of them met since the last synchronisation. */
TUTTI_API tuttiResult_t tuttiStreamSynchronize(tuttiStream_t stream);
/* tuttiSuccess when idle, tuttiInProgress while working, or an error as returned by tuttiStreamSynchronize. */
TUTTI_API tuttiResult_t tuttiStreamQuery(tuttiStream_t stream);
/* Once everything queued before it has ended, the stream's thread calls callback(context, result) with the first error
 * met since the last synchronisation, or tuttiSuccess. The callback must return soon and must not call tutti. */
TUTTI_API tuttiResult_t tuttiStreamAddCallback(tuttiStream_t stream,
                                               void (*callback)(void* context, tuttiResult_t result), void* context);
TUTTI_API tuttiResult_t tuttiStreamDestroy(tuttiStream_t stream);

/* ---- Reduction --------------------------------------------------------------------------------------------------- */

/* A sum whose inputs are first multiplied by this rank's *scalar (of `type`, rounded to it). Host scalars only; no
 * complex ones. */
TUTTI_API tuttiResult_t tuttiRedOpCreatePreMulSum(tuttiRedOp_t* op, void* scalar, tuttiDataType_t type,
                                                  tuttiScalarResidence_t residence, tuttiComm_t comm);
/* inout[i] = in[i] op inout[i] for `count` elements. `in` is from lower ranks than `inout`, or from ranks on the way
 * between those; both are aligned to a cache line. `context`: as given to tuttiRedOpCreate. */
typedef void (*tuttiRedOpFunction_t)(const void* in, void* inout, size_t count, tuttiDataType_t type, void* context);
/* An operator of the program, for calls in host memory on elements of `type`. It must be associative and, but for
 * tuttiScan and tuttiExScan, commutative: inputs are combined in any order, and in pieces. The function is called by
 * the thread that waits in the call, or by a stream's thread, of each rank, perhaps by several at once where ranks are
 * threads; it must not call tutti and not leave by an exception or longjmp. All ranks pass operators that do the same.
 * Errors: invalidArgument. */
TUTTI_API tuttiResult_t tuttiRedOpCreate(tuttiRedOp_t* op, tuttiRedOpFunction_t function, void* context,
                                         tuttiDataType_t type, tuttiComm_t comm);
/* Frees an operator of either kind; calls that are queued may still use it. */
TUTTI_API tuttiResult_t tuttiRedOpDestroy(tuttiRedOp_t op, tuttiComm_t comm);

/* ---- Insight ----------------------------------------------------------------------------------------------------- */

/* The algorithm and transport of the last completed collective on comm, e.g. "two_shot" and "mapped". Transports:
 * inline, mapped, cma, slots; rdma or socket (where not all ranks share memory); gpu, p2p (docs/paths.md). Valid until
 * the next call on comm; while calls are in flight, the names may be those of any of them. */
TUTTI_API tuttiResult_t tuttiCommLastAlgorithm(tuttiComm_t comm, const char** algorithm, const char** transport);

/* Explains which algorithm a call would use and why. For each access that the call could use, lists the algorithms with
 * their predicted times (of float32 sums), steps and bytes, fastest first; a star marks the one used. `collective`:
 * "all_reduce", "allreduce", "AllReduce", ...; `count` and `type` as in that call; root 0. Like snprintf: writes at
 * most `capacity` bytes to `text`, the last of them 0, and sets *length (unless NULL) to the length of the whole text;
 * text may be NULL where capacity is 0. Moves no data and needs no other rank, but takes milliseconds: it is for
 * diagnosis, not for every call. Errors: invalidArgument. */
TUTTI_API tuttiResult_t tuttiCommExplain(tuttiComm_t comm, const char* collective, size_t count, tuttiDataType_t type,
                                         char* text, size_t capacity, size_t* length);

#ifdef __cplusplus
}
#endif
#endif
