// The blocking reductions of MPI.
#include "mpi/mpi_header.h"
#include "mpi/prepare.h"
#include "mpi/serve.h"

using namespace tutti::mpi;  // NOLINT: the definitions below are functions of mpi.h

int MPI_Allreduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return serve(
      Function::allreduce, comm,
      [&](Call& call, const Place& place) {
        return prepare_allreduce(call, place, {send, recv, count, type, op});
      },
      [&] { return PMPI_Allreduce(send, recv, count, type, op, comm); });
}

int MPI_Reduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  return serve(
      Function::reduce, comm,
      [&](Call& call, const Place& place) {
        return prepare_reduce(call, place, {send, recv, count, type, op}, root);
      },
      [&] { return PMPI_Reduce(send, recv, count, type, op, root, comm); });
}

int MPI_Reduce_scatter_block(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return serve(
      Function::reduce_scatter_block, comm,
      [&](Call& call, const Place& place) {
        return prepare_reduce_scatter_block(call, place, {send, recv, count, type, op});
      },
      [&] { return PMPI_Reduce_scatter_block(send, recv, count, type, op, comm); });
}

int MPI_Reduce_scatter(const void* send, void* recv, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return serve(
      Function::reduce_scatter, comm,
      [&](Call& call, const Place& place) {
        return prepare_reduce_scatter(call, place, {send, recv, 0, type, op}, counts);
      },
      [&] { return PMPI_Reduce_scatter(send, recv, counts, type, op, comm); });
}

int MPI_Scan(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return serve(
      Function::scan, comm,
      [&](Call& call, const Place& place) {
        return prepare_scan(call, place, {send, recv, count, type, op}, false);
      },
      [&] { return PMPI_Scan(send, recv, count, type, op, comm); });
}

int MPI_Exscan(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return serve(
      Function::exscan, comm,
      [&](Call& call, const Place& place) {
        return prepare_scan(call, place, {send, recv, count, type, op}, true);
      },
      [&] { return PMPI_Exscan(send, recv, count, type, op, comm); });
}
