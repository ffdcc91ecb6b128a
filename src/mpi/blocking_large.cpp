// The blocking collective functions of MPI 4 with large counts.
#include "mpi/mpi_header.h"
#include "mpi/prepare.h"
#include "mpi/serve.h"

using namespace tutti::mpi;  // NOLINT: the definitions below are functions of mpi.h

#if MPI_VERSION >= 4

int MPI_Bcast_c(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm) {
  return serve(
      Function::bcast, comm,
      [&](Call& call, const Place& place) {
        return prepare_bcast(call, place, {buffer, count, type}, root);
      },
      [&] { return PMPI_Bcast_c(buffer, count, type, root, comm); });
}

int MPI_Gather_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv, MPI_Count recv_count,
                 MPI_Datatype recv_type, int root, MPI_Comm comm) {
  return serve(
      Function::gather, comm,
      [&](Call& call, const Place& place) {
        return prepare_gather(call, place, {send, send_count, send_type}, {recv, recv_count, recv_type}, root);
      },
      [&] { return PMPI_Gather_c(send, send_count, send_type, recv, recv_count, recv_type, root, comm); });
}

int MPI_Gatherv_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                  const MPI_Count recv_counts[], const MPI_Aint displacements[], MPI_Datatype recv_type, int root,
                  MPI_Comm comm) {
  return serve(
      Function::gatherv, comm,
      [&](Call& call, const Place& place) {
        return prepare_gatherv(call, place, {send, send_count, send_type},
                               {recv, recv_counts, displacements, recv_type}, root);
      },
      [&] {
        return PMPI_Gatherv_c(send, send_count, send_type, recv, recv_counts, displacements, recv_type, root, comm);
      });
}

int MPI_Scatter_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv, MPI_Count recv_count,
                  MPI_Datatype recv_type, int root, MPI_Comm comm) {
  return serve(
      Function::scatter, comm,
      [&](Call& call, const Place& place) {
        return prepare_scatter(call, place, {send, send_count, send_type}, {recv, recv_count, recv_type}, root);
      },
      [&] { return PMPI_Scatter_c(send, send_count, send_type, recv, recv_count, recv_type, root, comm); });
}

int MPI_Scatterv_c(const void* send, const MPI_Count send_counts[], const MPI_Aint displacements[],
                   MPI_Datatype send_type, void* recv, MPI_Count recv_count, MPI_Datatype recv_type, int root,
                   MPI_Comm comm) {
  return serve(
      Function::scatterv, comm,
      [&](Call& call, const Place& place) {
        return prepare_scatterv(call, place, {send, send_counts, displacements, send_type},
                                {recv, recv_count, recv_type}, root);
      },
      [&] {
        return PMPI_Scatterv_c(send, send_counts, displacements, send_type, recv, recv_count, recv_type, root, comm);
      });
}

int MPI_Allgather_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv, MPI_Count recv_count,
                    MPI_Datatype recv_type, MPI_Comm comm) {
  return serve(
      Function::allgather, comm,
      [&](Call& call, const Place& place) {
        return prepare_allgather(call, place, {send, send_count, send_type}, {recv, recv_count, recv_type});
      },
      [&] { return PMPI_Allgather_c(send, send_count, send_type, recv, recv_count, recv_type, comm); });
}

int MPI_Allgatherv_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                     const MPI_Count recv_counts[], const MPI_Aint displacements[], MPI_Datatype recv_type,
                     MPI_Comm comm) {
  return serve(
      Function::allgatherv, comm,
      [&](Call& call, const Place& place) {
        return prepare_allgatherv(call, place, {send, send_count, send_type},
                                  {recv, recv_counts, displacements, recv_type});
      },
      [&] {
        return PMPI_Allgatherv_c(send, send_count, send_type, recv, recv_counts, displacements, recv_type, comm);
      });
}

int MPI_Alltoall_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv, MPI_Count recv_count,
                   MPI_Datatype recv_type, MPI_Comm comm) {
  return serve(
      Function::alltoall, comm,
      [&](Call& call, const Place& place) {
        return prepare_alltoall(call, place, {send, send_count, send_type}, {recv, recv_count, recv_type});
      },
      [&] { return PMPI_Alltoall_c(send, send_count, send_type, recv, recv_count, recv_type, comm); });
}

int MPI_Alltoallv_c(const void* send, const MPI_Count send_counts[], const MPI_Aint send_displacements[],
                    MPI_Datatype send_type, void* recv, const MPI_Count recv_counts[],
                    const MPI_Aint recv_displacements[], MPI_Datatype recv_type, MPI_Comm comm) {
  return serve(
      Function::alltoallv, comm,
      [&](Call& call, const Place& place) {
        return prepare_alltoallv(call, place, {send, send_counts, send_displacements, send_type},
                                 {recv, recv_counts, recv_displacements, recv_type});
      },
      [&] {
        return PMPI_Alltoallv_c(send, send_counts, send_displacements, send_type, recv, recv_counts, recv_displacements,
                                recv_type, comm);
      });
}

int MPI_Alltoallw_c(const void* send, const MPI_Count send_counts[], const MPI_Aint send_displacements[],
                    const MPI_Datatype send_types[], void* recv, const MPI_Count recv_counts[],
                    const MPI_Aint recv_displacements[], const MPI_Datatype recv_types[], MPI_Comm comm) {
  return serve(
      Function::alltoallw, comm,
      [&](Call& call, const Place& place) {
        return prepare_alltoallv(call, place, {send, send_counts, send_displacements, MPI_DATATYPE_NULL, send_types},
                                 {recv, recv_counts, recv_displacements, MPI_DATATYPE_NULL, recv_types});
      },
      [&] {
        return PMPI_Alltoallw_c(send, send_counts, send_displacements, send_types, recv, recv_counts,
                                recv_displacements, recv_types, comm);
      });
}

int MPI_Allreduce_c(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return serve(
      Function::allreduce, comm,
      [&](Call& call, const Place& place) {
        return prepare_allreduce(call, place, {send, recv, count, type, op});
      },
      [&] { return PMPI_Allreduce_c(send, recv, count, type, op, comm); });
}

int MPI_Reduce_c(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  return serve(
      Function::reduce, comm,
      [&](Call& call, const Place& place) {
        return prepare_reduce(call, place, {send, recv, count, type, op}, root);
      },
      [&] { return PMPI_Reduce_c(send, recv, count, type, op, root, comm); });
}

int MPI_Reduce_scatter_block_c(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                               MPI_Comm comm) {
  return serve(
      Function::reduce_scatter_block, comm,
      [&](Call& call, const Place& place) {
        return prepare_reduce_scatter_block(call, place, {send, recv, count, type, op});
      },
      [&] { return PMPI_Reduce_scatter_block_c(send, recv, count, type, op, comm); });
}

int MPI_Reduce_scatter_c(const void* send, void* recv, const MPI_Count counts[], MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm) {
  return serve(
      Function::reduce_scatter, comm,
      [&](Call& call, const Place& place) {
        return prepare_reduce_scatter(call, place, {send, recv, 0, type, op}, counts);
      },
      [&] { return PMPI_Reduce_scatter_c(send, recv, counts, type, op, comm); });
}

int MPI_Scan_c(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return serve(
      Function::scan, comm,
      [&](Call& call, const Place& place) {
        return prepare_scan(call, place, {send, recv, count, type, op}, false);
      },
      [&] { return PMPI_Scan_c(send, recv, count, type, op, comm); });
}

int MPI_Exscan_c(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return serve(
      Function::exscan, comm,
      [&](Call& call, const Place& place) {
        return prepare_scan(call, place, {send, recv, count, type, op}, true);
      },
      [&] { return PMPI_Exscan_c(send, recv, count, type, op, comm); });
}

#endif
