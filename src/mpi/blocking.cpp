// The blocking collective functions of MPI on data that is only moved, and the barrier.
#include "mpi/mpi_header.h"
#include "mpi/prepare.h"
#include "mpi/serve.h"

using namespace tutti::mpi;  // NOLINT: the definitions below are functions of mpi.h

int MPI_Barrier(MPI_Comm comm) {
  return serve(
      Function::barrier, comm, [](Call&, const Place&) { return Prepared{}; }, [&] { return PMPI_Barrier(comm); });
}

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return serve(
      Function::bcast, comm,
      [&](Call& call, const Place& place) {
        return prepare_bcast(call, place, {buffer, count, type}, root);
      },
      [&] { return PMPI_Bcast(buffer, count, type, root, comm); });
}

int MPI_Gather(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
               MPI_Datatype recv_type, int root, MPI_Comm comm) {
  return serve(
      Function::gather, comm,
      [&](Call& call, const Place& place) {
        return prepare_gather(call, place, {send, send_count, send_type}, {recv, recv_count, recv_type}, root);
      },
      [&] { return PMPI_Gather(send, send_count, send_type, recv, recv_count, recv_type, root, comm); });
}

int MPI_Gatherv(const void* send, int send_count, MPI_Datatype send_type, void* recv, const int recv_counts[],
                const int displacements[], MPI_Datatype recv_type, int root, MPI_Comm comm) {
  return serve(
      Function::gatherv, comm,
      [&](Call& call, const Place& place) {
        return prepare_gatherv(call, place, {send, send_count, send_type},
                               {recv, recv_counts, displacements, recv_type}, root);
      },
      [&] {
        return PMPI_Gatherv(send, send_count, send_type, recv, recv_counts, displacements, recv_type, root, comm);
      });
}

int MPI_Scatter(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
                MPI_Datatype recv_type, int root, MPI_Comm comm) {
  return serve(
      Function::scatter, comm,
      [&](Call& call, const Place& place) {
        return prepare_scatter(call, place, {send, send_count, send_type}, {recv, recv_count, recv_type}, root);
      },
      [&] { return PMPI_Scatter(send, send_count, send_type, recv, recv_count, recv_type, root, comm); });
}

int MPI_Scatterv(const void* send, const int send_counts[], const int displacements[], MPI_Datatype send_type,
                 void* recv, int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm) {
  return serve(
      Function::scatterv, comm,
      [&](Call& call, const Place& place) {
        return prepare_scatterv(call, place, {send, send_counts, displacements, send_type},
                                {recv, recv_count, recv_type}, root);
      },
      [&] {
        return PMPI_Scatterv(send, send_counts, displacements, send_type, recv, recv_count, recv_type, root, comm);
      });
}

int MPI_Allgather(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
                  MPI_Datatype recv_type, MPI_Comm comm) {
  return serve(
      Function::allgather, comm,
      [&](Call& call, const Place& place) {
        return prepare_allgather(call, place, {send, send_count, send_type}, {recv, recv_count, recv_type});
      },
      [&] { return PMPI_Allgather(send, send_count, send_type, recv, recv_count, recv_type, comm); });
}

int MPI_Allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* recv, const int recv_counts[],
                   const int displacements[], MPI_Datatype recv_type, MPI_Comm comm) {
  return serve(
      Function::allgatherv, comm,
      [&](Call& call, const Place& place) {
        return prepare_allgatherv(call, place, {send, send_count, send_type},
                                  {recv, recv_counts, displacements, recv_type});
      },
      [&] { return PMPI_Allgatherv(send, send_count, send_type, recv, recv_counts, displacements, recv_type, comm); });
}

int MPI_Alltoall(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
                 MPI_Datatype recv_type, MPI_Comm comm) {
  return serve(
      Function::alltoall, comm,
      [&](Call& call, const Place& place) {
        return prepare_alltoall(call, place, {send, send_count, send_type}, {recv, recv_count, recv_type});
      },
      [&] { return PMPI_Alltoall(send, send_count, send_type, recv, recv_count, recv_type, comm); });
}

int MPI_Alltoallv(const void* send, const int send_counts[], const int send_displacements[], MPI_Datatype send_type,
                  void* recv, const int recv_counts[], const int recv_displacements[], MPI_Datatype recv_type,
                  MPI_Comm comm) {
  return serve(
      Function::alltoallv, comm,
      [&](Call& call, const Place& place) {
        return prepare_alltoallv(call, place, {send, send_counts, send_displacements, send_type},
                                 {recv, recv_counts, recv_displacements, recv_type});
      },
      [&] {
        return PMPI_Alltoallv(send, send_counts, send_displacements, send_type, recv, recv_counts, recv_displacements,
                              recv_type, comm);
      });
}

int MPI_Alltoallw(const void* send, const int send_counts[], const int send_displacements[],
                  const MPI_Datatype send_types[], void* recv, const int recv_counts[], const int recv_displacements[],
                  const MPI_Datatype recv_types[], MPI_Comm comm) {
  return serve(
      Function::alltoallw, comm,
      [&](Call& call, const Place& place) {
        return prepare_alltoallv(call, place, {send, send_counts, send_displacements, MPI_DATATYPE_NULL, send_types},
                                 {recv, recv_counts, recv_displacements, MPI_DATATYPE_NULL, recv_types});
      },
      [&] {
        return PMPI_Alltoallw(send, send_counts, send_displacements, send_types, recv, recv_counts, recv_displacements,
                              recv_types, comm);
      });
}
