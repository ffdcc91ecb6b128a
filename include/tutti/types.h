/* Handles, results, element types and operators. Part of tutti.h, which includes it. */
#ifndef TUTTI_TYPES_H
#define TUTTI_TYPES_H

#include <stddef.h>

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

/* What makes a communicator, or a start, fail has one code on all ranks that hear of it: that of its first cause. So a
 * rank may get tuttiTimeout because the limit of another one has passed, or tuttiSystemError because another one lacks
 * descriptors; tuttiGetLastError says at which rank it began. */
typedef enum {
  tuttiSuccess = 0,
  tuttiUnhandledCudaError = 1, /* a CUDA call failed */
  tuttiSystemError = 2,        /* the system refused memory, a descriptor or a socket */
  tuttiInternalError = 3,      /* a bug in tutti */
  tuttiInvalidArgument = 4,    /* an argument is wrong: see tuttiGetLastError */
  tuttiInvalidUsage = 5,       /* calls that do not fit together: see "Mismatches" in tutti.h */
  tuttiRemoteError = 6,        /* a peer left or was killed, or the network to it failed */
  tuttiInProgress = 7,         /* not an error: the operation is still under way */
  tuttiTimeout = 8,            /* a time limit passed: see the TUTTI_*_TIMEOUT_MS settings, tuttiCommSetTimeout */
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
  /* Reduced in host memory alone, and moved wherever the others are. */
  tuttiInt16 = 64,
  tuttiUint16 = 65,
  tuttiComplex64 = 66,  /* two float32: real part, imaginary part */
  tuttiComplex128 = 67, /* two float64 */
  tuttiNumTypes = 68    /* above all of them; those from 12 to 63 are no types yet */
} tuttiDataType_t;

/* Max and min are for all types but complex ones. Bitwise and logical operators are for integers and for host memory
 * alone; logical ones take every number but 0 for true, and give 0 or 1 (one rank alone: its input). A product of
 * complex numbers is made of their parts, whatever infinities it meets. tuttiRedOpCreatePreMulSum and tuttiRedOpCreate
 * return values from tuttiNumOps on; 5 is no operator. */
typedef enum {
  /* Floats of 16 and 8 bits: within one pass over memory a sum is made in float32, but what ranks pass on to each other
   * is of the element's type. So a sum may be infinite (float8_e4m3: NaN) on its way although the result would fit, and
   * whether it is depends on the algorithm, that is, on size, ranks and transport. It is the same on all ranks.
   * Integers wrap. */
  tuttiSum = 0,
  tuttiProd = 1,
  tuttiMax = 2,
  tuttiMin = 3,
  /* Sum, then one division by the number of ranks. Of floats it is finite wherever the inputs are: sums on the way are
   * kept at a power of two of what they are. Integers: the sum wraps, its quotient truncates. */
  tuttiAvg = 4,
  tuttiBitAnd = 6,
  tuttiBitOr = 7,
  tuttiBitXor = 8,
  tuttiLogicalAnd = 9,
  tuttiLogicalOr = 10,
  tuttiLogicalXor = 11,
  tuttiNumOps = 12,
  tuttiMaxRedOp = 0x7fffffff
} tuttiRedOp_t;

typedef enum { tuttiScalarDevice = 0, tuttiScalarHostImmediate = 1 } tuttiScalarResidence_t;

#ifdef __cplusplus
}
#endif
#endif
