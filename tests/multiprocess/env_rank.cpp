// A rank as a launcher starts it: all it knows is in its environment. Exit status 0 when two communicators made from it
// work and are as expected; else 1, and what the library said on stdout.
//
// Usage: env_rank [RANK RANKS]        without: says which rank of how many it is
#include <cstdio>
#include <cstdlib>

#include "tutti/tutti.h"

namespace {

bool said(tuttiResult_t result) {
  if (result == tuttiSuccess) return false;
  std::printf("%d %s\n", result, tuttiGetLastError(nullptr));
  return true;
}

/// A negative rank is not known beforehand; it is then what the first communicator says.
bool works(int& rank, int& ranks) {
  tuttiComm_t comm = nullptr;
  if (said(tuttiCommInitFromEnv(&comm, nullptr))) return false;
  int is_rank = -1;
  int is_ranks = -1;
  if (said(tuttiCommUserRank(comm, &is_rank)) || said(tuttiCommCount(comm, &is_ranks))) return false;
  if (rank < 0) {
    rank = is_rank;
    ranks = is_ranks;
    std::printf("rank %d of %d\n", rank, ranks);
  }
  long sum = rank + 1;
  if (said(tuttiAllReduce(&sum, &sum, 1, tuttiInt64, tuttiSum, comm, nullptr))) return false;
  if (said(tuttiCommDestroy(comm))) return false;
  if (is_rank == rank && is_ranks == ranks && sum == ranks * (ranks + 1) / 2) return true;
  std::printf("is rank %d of %d, sum %ld\n", is_rank, is_ranks, sum);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 1 && argc != 3) return 2;
  int rank = argc == 3 ? std::atoi(argv[1]) : -1;
  int ranks = argc == 3 ? std::atoi(argv[2]) : -1;
  return works(rank, ranks) && works(rank, ranks) ? 0 : 1;
}
