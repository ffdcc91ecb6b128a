// The non-blocking collective functions of MPI 4 with large counts.
#include "mpi/mpi_header.h"
#include "mpi/prepare.h"
#include "mpi/serve.h"

using namespace tutti::mpi;  // NOLINT: the definitions below are functions of mpi.h

#if MPI_VERSION >= 4

int MPI_Ibcast_c(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::bcast, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_bcast(call, place, {buffer, count, type}, root);
      },
      [&] { return PMPI_Ibcast_c(buffer, count, type, root, comm, request); });
}

int MPI_Igather_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv, MPI_Count recv_count,
                  MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::gather, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_gather(call, place, {send, send_count, send_type}, {recv, recv_count, recv_type}, root);
      },
      [&] { return PMPI_Igather_c(send, send_count, send_type, recv, recv_count, recv_type, root, comm, request); });
}

int MPI_Igatherv_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                   const MPI_Count recv_counts[], const MPI_Aint displacements[], MPI_Datatype recv_type, int root,
                   MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::gatherv, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_gatherv(call, place, {send, send_count, send_type},
                               {recv, recv_counts, displacements, recv_type}, root);
      },
      [&] {
        return PMPI_Igatherv_c(send, send_count, send_type, recv, recv_counts, displacements, recv_type, root, comm,
                               request);
      });
}

int MPI_Iscatter_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv, MPI_Count recv_count,
                   MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::scatter, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_scatter(call, place, {send, send_count, send_type}, {recv, recv_count, recv_type}, root);
      },
      [&] { return PMPI_Iscatter_c(send, send_count, send_type, recv, recv_count, recv_type, root, comm, request); });
}

int MPI_Iscatterv_c(const void* send, const MPI_Count send_counts[], const MPI_Aint displacements[],
                    MPI_Datatype send_type, void* recv, MPI_Count recv_count, MPI_Datatype recv_type, int root,
                    MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::scatterv, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_scatterv(call, place, {send, send_counts, displacements, send_type},
                                {recv, recv_count, recv_type}, root);
      },
      [&] {
        return PMPI_Iscatterv_c(send, send_counts, displacements, send_type, recv, recv_count, recv_type, root, comm,
                                request);
      });
}

int MPI_Iallgather_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv, MPI_Count recv_count,
                     MPI_Datatype recv_type, MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::allgather, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_allgather(call, place, {send, send_count, send_type}, {recv, recv_count, recv_type});
      },
      [&] { return PMPI_Iallgather_c(send, send_count, send_type, recv, recv_count, recv_type, comm, request); });
}

int MPI_Iallgatherv_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                      const MPI_Count recv_counts[], const MPI_Aint displacements[], MPI_Datatype recv_type,
                      MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::allgatherv, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_allgatherv(call, place, {send, send_count, send_type},
                                  {recv, recv_counts, displacements, recv_type});
      },
      [&] {
        return PMPI_Iallgatherv_c(send, send_count, send_type, recv, recv_counts, displacements, recv_type, comm,
                                  request);
      });
}

int MPI_Ialltoall_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv, MPI_Count recv_count,
                    MPI_Datatype recv_type, MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::alltoall, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_alltoall(call, place, {send, send_count, send_type}, {recv, recv_count, recv_type});
      },
      [&] { return PMPI_Ialltoall_c(send, send_count, send_type, recv, recv_count, recv_type, comm, request); });
}

int MPI_Ialltoallv_c(const void* send, const MPI_Count send_counts[], const MPI_Aint send_displacements[],
                     MPI_Datatype send_type, void* recv, const MPI_Count recv_counts[],
                     const MPI_Aint recv_displacements[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::alltoallv, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_alltoallv(call, place, {send, send_counts, send_displacements, send_type},
                                 {recv, recv_counts, recv_displacements, recv_type});
      },
      [&] {
        return PMPI_Ialltoallv_c(send, send_counts, send_displacements, send_type, recv, recv_counts,
                                 recv_displacements, recv_type, comm, request);
      });
}

int MPI_Ialltoallw_c(const void* send, const MPI_Count send_counts[], const MPI_Aint send_displacements[],
                     const MPI_Datatype send_types[], void* recv, const MPI_Count recv_counts[],
                     const MPI_Aint recv_displacements[], const MPI_Datatype recv_types[], MPI_Comm comm,
                     MPI_Request* request) {
  return serve_later(
      Function::alltoallw, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_alltoallv(call, place, {send, send_counts, send_displacements, MPI_DATATYPE_NULL, send_types},
                                 {recv, recv_counts, recv_displacements, MPI_DATATYPE_NULL, recv_types});
      },
      [&] {
        return PMPI_Ialltoallw_c(send, send_counts, send_displacements, send_types, recv, recv_counts,
                                 recv_displacements, recv_types, comm, request);
      });
}

int MPI_Iallreduce_c(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                     MPI_Request* request) {
  return serve_later(
      Function::allreduce, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_allreduce(call, place, {send, recv, count, type, op});
      },
      [&] { return PMPI_Iallreduce_c(send, recv, count, type, op, comm, request); });
}

int MPI_Ireduce_c(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                  MPI_Request* request) {
  return serve_later(
      Function::reduce, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_reduce(call, place, {send, recv, count, type, op}, root);
      },
      [&] { return PMPI_Ireduce_c(send, recv, count, type, op, root, comm, request); });
}

int MPI_Ireduce_scatter_block_c(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                                MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::reduce_scatter_block, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_reduce_scatter_block(call, place, {send, recv, count, type, op});
      },
      [&] { return PMPI_Ireduce_scatter_block_c(send, recv, count, type, op, comm, request); });
}

int MPI_Ireduce_scatter_c(const void* send, void* recv, const MPI_Count counts[], MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm, MPI_Request* request) {
  return serve_later(
      Function::reduce_scatter, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_reduce_scatter(call, place, {send, recv, 0, type, op}, counts);
      },
      [&] { return PMPI_Ireduce_scatter_c(send, recv, counts, type, op, comm, request); });
}

int MPI_Iscan_c(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                MPI_Request* request) {
  return serve_later(
      Function::scan, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_scan(call, place, {send, recv, count, type, op}, false);
      },
      [&] { return PMPI_Iscan_c(send, recv, count, type, op, comm, request); });
}

int MPI_Iexscan_c(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                  MPI_Request* request) {
  return serve_later(
      Function::exscan, comm, request,
      [&](Call& call, const Place& place) {
        return prepare_scan(call, place, {send, recv, count, type, op}, true);
      },
      [&] { return PMPI_Iexscan_c(send, recv, count, type, op, comm, request); });
}

#endif
