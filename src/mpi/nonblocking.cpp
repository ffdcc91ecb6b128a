// The non-blocking collective functions of MPI on data that is only moved, and the barrier.
#include "mpi/mpi_header.h"
#include "mpi/prepare.h"
#include "mpi/serve.h"

using namespace tutti::mpi;  // NOLINT: the definitions below are functions of mpi.h

int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::barrier, comm, request, [](Call&, const Place&) { return Prepared{}; },
      [&] { return PMPI_Ibarrier(comm, request); });
}

int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::bcast, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_bcast(call, place, {buffer, count, type}, root);
      },
      [&] { return PMPI_Ibcast(buffer, count, type, root, comm, request); });
}

int MPI_Igather(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
                MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::gather, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_gather(call, place, {send, send_count, send_type}, {recv, recv_count, recv_type}, root);
      },
      [&] { return PMPI_Igather(send, send_count, send_type, recv, recv_count, recv_type, root, comm, request); });
}

int MPI_Igatherv(const void* send, int send_count, MPI_Datatype send_type, void* recv, const int recv_counts[],
                 const int displacements[], MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::gatherv, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_gatherv(call, place, {send, send_count, send_type},
                               {recv, recv_counts, displacements, recv_type}, root);
      },
      [&] {
        return PMPI_Igatherv(send, send_count, send_type, recv, recv_counts, displacements, recv_type, root, comm,
                             request);
      });
}

int MPI_Iscatter(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
                 MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::scatter, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_scatter(call, place, {send, send_count, send_type}, {recv, recv_count, recv_type}, root);
      },
      [&] { return PMPI_Iscatter(send, send_count, send_type, recv, recv_count, recv_type, root, comm, request); });
}

int MPI_Iscatterv(const void* send, const int send_counts[], const int displacements[], MPI_Datatype send_type,
                  void* recv, int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::scatterv, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_scatterv(call, place, {send, send_counts, displacements, send_type},
                                {recv, recv_count, recv_type}, root);
      },
      [&] {
        return PMPI_Iscatterv(send, send_counts, displacements, send_type, recv, recv_count, recv_type, root, comm,
                              request);
      });
}

int MPI_Iallgather(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
                   MPI_Datatype recv_type, MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::allgather, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_allgather(call, place, {send, send_count, send_type}, {recv, recv_count, recv_type});
      },
      [&] { return PMPI_Iallgather(send, send_count, send_type, recv, recv_count, recv_type, comm, request); });
}

int MPI_Iallgatherv(const void* send, int send_count, MPI_Datatype send_type, void* recv, const int recv_counts[],
                    const int displacements[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::allgatherv, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_allgatherv(call, place, {send, send_count, send_type},
                                  {recv, recv_counts, displacements, recv_type});
      },
      [&] {
        return PMPI_Iallgatherv(send, send_count, send_type, recv, recv_counts, displacements, recv_type, comm,
                                request);
      });
}

int MPI_Ialltoall(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
                  MPI_Datatype recv_type, MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::alltoall, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_alltoall(call, place, {send, send_count, send_type}, {recv, recv_count, recv_type});
      },
      [&] { return PMPI_Ialltoall(send, send_count, send_type, recv, recv_count, recv_type, comm, request); });
}

int MPI_Ialltoallv(const void* send, const int send_counts[], const int send_displacements[], MPI_Datatype send_type,
                   void* recv, const int recv_counts[], const int recv_displacements[], MPI_Datatype recv_type,
                   MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::alltoallv, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_alltoallv(call, place, {send, send_counts, send_displacements, send_type},
                                 {recv, recv_counts, recv_displacements, recv_type});
      },
      [&] {
        return PMPI_Ialltoallv(send, send_counts, send_displacements, send_type, recv, recv_counts, recv_displacements,
                               recv_type, comm, request);
      });
}

int MPI_Ialltoallw(const void* send, const int send_counts[], const int send_displacements[],
                   const MPI_Datatype send_types[], void* recv, const int recv_counts[], const int recv_displacements[],
                   const MPI_Datatype recv_types[], MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::alltoallw, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_alltoallv(call, place, {send, send_counts, send_displacements, MPI_DATATYPE_NULL, send_types},
                                 {recv, recv_counts, recv_displacements, MPI_DATATYPE_NULL, recv_types});
      },
      [&] {
        return PMPI_Ialltoallw(send, send_counts, send_displacements, send_types, recv, recv_counts, recv_displacements,
                               recv_types, comm, request);
      });
}
