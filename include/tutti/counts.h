/* Collectives with a count per rank. Part of tutti.h, which includes it. */
#ifndef TUTTI_COUNTS_H
#define TUTTI_COUNTS_H

#include <stddef.h>

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Collectives with a count per rank ----
 *
 * Counts and displacements are arrays with one size_t per rank, in elements. Displacements count from the start of the
 * buffer; NULL means that the blocks lie one after another in rank order. The arrays are read before the call returns,
 * also on a stream. The displacement of an empty block is ignored, and a buffer without elements may be NULL. Blocks of
 * a receive buffer must not overlap; blocks that are only read may. Nothing between the blocks is read or written.
 *
 * Sender and receiver of each block must pass the same number of elements. If any pair does not, all ranks get
 * invalidUsage with a message that names the sender, the receiver and both counts, and nothing is written. Each rank
 * chooses its displacements freely. Errors: invalidArgument for everything else. */

/* Block r of every recvbuff, recvcounts[r] elements at rdispls[r], = the sendbuff of rank r. On each rank sendcount ==
 * recvcounts[rank]; all ranks pass the same recvcounts. In place: sendbuff == recvbuff + rdispls[rank]. */
TUTTI_API tuttiResult_t tuttiAllGatherV(const void* sendbuff, size_t sendcount, void* recvbuff,
                                        const size_t* recvcounts, const size_t* rdispls, tuttiDataType_t type,
                                        tuttiComm_t comm, tuttiStream_t stream);
/* recvbuff = the reduction over all ranks of block `rank`, which is sendcounts[rank] elements at sdispls[rank] of
 * sendbuff. On each rank recvcount == sendcounts[rank]; all ranks pass the same sendcounts. In place: recvbuff ==
 * sendbuff + sdispls[rank]; the other blocks are kept. Or, in host memory, recvbuff == sendbuff: the result replaces
 * what is at the start of the buffer (costs a copy of the result). */
TUTTI_API tuttiResult_t tuttiReduceScatterV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                                            void* recvbuff, size_t recvcount, tuttiDataType_t type, tuttiRedOp_t op,
                                            tuttiComm_t comm, tuttiStream_t stream);
/* Block r of recvbuff, recvcounts[r] elements at rdispls[r], = block `rank` of rank r's sendbuff, which is
 * sendcounts[rank] elements there. In place: sendbuff == recvbuff, with the same counts and displacements for both
 * (costs a copy of the buffer). */
TUTTI_API tuttiResult_t tuttiAllToAllV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                                       void* recvbuff, const size_t* recvcounts, const size_t* rdispls,
                                       tuttiDataType_t type, tuttiComm_t comm, tuttiStream_t stream);
/* As tuttiAllToAllV, with a type per rank and displacements in bytes: sender and receiver of each block must pass the
 * same number of bytes. In place as there. */
TUTTI_API tuttiResult_t tuttiAllToAllW(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                                       const tuttiDataType_t* sendtypes, void* recvbuff, const size_t* recvcounts,
                                       const size_t* rdispls, const tuttiDataType_t* recvtypes, tuttiComm_t comm,
                                       tuttiStream_t stream);
/* Block r of root's recvbuff, recvcounts[r] elements at rdispls[r], = the sendbuff of rank r, which is sendcount
 * elements there. recvbuff, recvcounts and rdispls are ignored on other ranks.
 * In place on root: sendbuff == recvbuff + rdispls[root]. */
TUTTI_API tuttiResult_t tuttiGatherV(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t* recvcounts,
                                     const size_t* rdispls, tuttiDataType_t type, int root, tuttiComm_t comm,
                                     tuttiStream_t stream);
/* recvbuff, recvcount elements, = block `rank` of root's sendbuff, which is sendcounts[rank] elements at sdispls[rank]
 * there. sendbuff, sendcounts and sdispls are ignored on other ranks.
 * In place on root: recvbuff == sendbuff + sdispls[root]. */
TUTTI_API tuttiResult_t tuttiScatterV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                                      void* recvbuff, size_t recvcount, tuttiDataType_t type, int root,
                                      tuttiComm_t comm, tuttiStream_t stream);

/* The same calls with counts and displacements as ints, of at most 2^31 - 1 elements. Ranks may mix them with those
 * above. Errors also: invalidArgument (a negative number). */
TUTTI_API tuttiResult_t tuttiAllGatherV32(const void* sendbuff, int sendcount, void* recvbuff, const int* recvcounts,
                                          const int* rdispls, tuttiDataType_t type, tuttiComm_t comm,
                                          tuttiStream_t stream);
TUTTI_API tuttiResult_t tuttiReduceScatterV32(const void* sendbuff, const int* sendcounts, const int* sdispls,
                                              void* recvbuff, int recvcount, tuttiDataType_t type, tuttiRedOp_t op,
                                              tuttiComm_t comm, tuttiStream_t stream);
TUTTI_API tuttiResult_t tuttiAllToAllV32(const void* sendbuff, const int* sendcounts, const int* sdispls,
                                         void* recvbuff, const int* recvcounts, const int* rdispls,
                                         tuttiDataType_t type, tuttiComm_t comm, tuttiStream_t stream);
TUTTI_API tuttiResult_t tuttiGatherV32(const void* sendbuff, int sendcount, void* recvbuff, const int* recvcounts,
                                       const int* rdispls, tuttiDataType_t type, int root, tuttiComm_t comm,
                                       tuttiStream_t stream);
TUTTI_API tuttiResult_t tuttiScatterV32(const void* sendbuff, const int* sendcounts, const int* sdispls, void* recvbuff,
                                        int recvcount, tuttiDataType_t type, int root, tuttiComm_t comm,
                                        tuttiStream_t stream);

/* The general form of broadcast, scatter, gather, all-gather and all-to-all. Every rank of comm calls it with the same
 * two lists, each of distinct ranks. Each source has totalcount elements in its sendbuff. Destination j of its list
 * receives from every source the unitcount elements that start at (j * unitcount) mod totalcount. The elements from
 * source k of its list go to k * unitcount in recvbuff (nsources*unitcount). Buffers of ranks that are not in a list
 * are ignored. unitcount must divide totalcount.
 *
 *   one source, unitcount == totalcount                   a broadcast to the destinations
 *   one source, unitcount * ndestinations == totalcount   a scatter
 *   one destination                                       a gather
 *   unitcount == totalcount                               an all-gather
 *   unitcount * ndestinations == totalcount               an all-to-all
 *
 * If the lists are all ranks in order, or all ranks in order and one root, the call runs as that collective and may be
 * in place where that collective may; otherwise the buffers must not overlap. Errors: invalidArgument (a list that is
 * empty, is NULL, or names a rank twice or a rank that does not exist; unitcount); invalidUsage (ranks disagree). */
TUTTI_API tuttiResult_t tuttiScatterGather(const void* sendbuff, void* recvbuff, const int* sources, int nsources,
                                           const int* destinations, int ndestinations, size_t unitcount,
                                           size_t totalcount, tuttiDataType_t type, tuttiComm_t comm,
                                           tuttiStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
