/* Does the installed library work for a program that knows only its header? */
#include <stdio.h>
#include <tutti/tutti.h>

static int check(tuttiResult_t result, const char* what) {
  if (result != tuttiSuccess) printf("%s: %s: %s\n", what, tuttiGetErrorString(result), tuttiGetLastError(NULL));
  return result == tuttiSuccess;
}

int main(void) {
  int version = 0;
  float numbers[3] = {1, 2, 3}, sums[3] = {0, 0, 0};
  tuttiUniqueId id;
  tuttiComm_t comm = NULL;
  if (!check(tuttiGetVersion(&version), "version") || version != TUTTI_VERSION) return 1;
  if (!check(tuttiGetUniqueId(&id), "id") || !check(tuttiCommInitRank(&comm, 1, id, 0), "init")) return 1;
  if (!check(tuttiAllReduce(numbers, sums, 3, tuttiFloat32, tuttiSum, comm, NULL), "all-reduce")) return 1;
  if (!check(tuttiCommDestroy(comm), "destroy")) return 1;
  printf("tutti %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
  return sums[0] == 1 && sums[1] == 2 && sums[2] == 3 ? 0 : 1;
}
