// The non-blocking reductions of MPI.
#include "mpi/mpi_header.h"
#include "mpi/prepare.h"
#include "mpi/serve.h"

using namespace tutti::mpi;  // NOLINT: the definitions below are functions of mpi.h

int MPI_Iallreduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  return serve_later(
      Function::allreduce, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_allreduce(call, place, {send, recv, count, type, op});
      },
      [&] { return PMPI_Iallreduce(send, recv, count, type, op, comm, request); });
}

int MPI_Ireduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                MPI_Request* request) {
  return serve_later(
      Function::reduce, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_reduce(call, place, {send, recv, count, type, op}, root);
      },
      [&] { return PMPI_Ireduce(send, recv, count, type, op, root, comm, request); });
}

int MPI_Ireduce_scatter_block(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                              MPI_Request* request) {
  return serve_later(
      Function::reduce_scatter_block, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_reduce_scatter_block(call, place, {send, recv, count, type, op});
      },
      [&] { return PMPI_Ireduce_scatter_block(send, recv, count, type, op, comm, request); });
}

int MPI_Ireduce_scatter(const void* send, void* recv, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                        MPI_Request* request) {
  return serve_later(
      Function::reduce_scatter, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_reduce_scatter(call, place, {send, recv, 0, type, op}, counts);
      },
      [&] { return PMPI_Ireduce_scatter(send, recv, counts, type, op, comm, request); });
}

int MPI_Iscan(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
              MPI_Request* request) {
  return serve_later(
      Function::scan, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_scan(call, place, {send, recv, count, type, op}, false);
      },
      [&] { return PMPI_Iscan(send, recv, count, type, op, comm, request); });
}

int MPI_Iexscan(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                MPI_Request* request) {
  return serve_later(
      Function::exscan, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_scan(call, place, {send, recv, count, type, op}, true);
      },
      [&] { return PMPI_Iexscan(send, recv, count, type, op, comm, request); });
}
