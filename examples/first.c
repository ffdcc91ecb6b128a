/* The first program: every rank contributes its number, every rank gets the sum. */
#include <stdio.h>
#include <tutti/tutti.h>

int main(void) {
  tuttiComm_t comm = NULL;
  float *mine = NULL, *sum = NULL;
  const size_t count = 1 << 20;
  int rank = 0, ranks = 0;

  tuttiResult_t result = tuttiCommInitFromEnv(&comm, NULL);
  if (result == tuttiSuccess) result = tuttiCommUserRank(comm, &rank);
  if (result == tuttiSuccess) result = tuttiCommCount(comm, &ranks);
  if (result == tuttiSuccess) result = tuttiMemAlloc((void**)&mine, count * sizeof(float));
  if (result == tuttiSuccess) result = tuttiMemAlloc((void**)&sum, count * sizeof(float));
  if (result == tuttiSuccess) {
    for (size_t i = 0; i < count; ++i) mine[i] = (float)(rank + 1);
    result = tuttiAllReduce(mine, sum, count, tuttiFloat32, tuttiSum, comm, NULL);
  }

  if (result == tuttiSuccess)
    printf("rank %d of %d: the sum is %g\n", rank, ranks, sum[count - 1]);
  else
    fprintf(stderr, "rank %d: %s\n", rank, tuttiGetLastError(comm));

  tuttiMemFree(mine);
  tuttiMemFree(sum);
  if (comm != NULL) tuttiCommDestroy(comm);
  return result == tuttiSuccess ? 0 : 1;
}
