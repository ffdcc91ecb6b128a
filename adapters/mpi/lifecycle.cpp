// The beginning and the end of MPI, and communicators that are made and freed.
#include "adapters/mpi/interposer.h"
#include "adapters/mpi/mpi_header.h"

using namespace tutti::mpi;  // NOLINT: the definitions below are functions of mpi.h

namespace {

/// `code`: of the function that made `comm`.
int begun(int code, const MPI_Comm* comm) {
  Interposer* const interposer = Interposer::get();
  if (code != MPI_SUCCESS || interposer == nullptr) return code;
  return interposer->made(*comm);
}

int freed(MPI_Comm* comm, int (*by_mpi)(MPI_Comm*)) {
  Interposer* const interposer = Interposer::get();
  if (interposer != nullptr && comm != nullptr) interposer->about_to_free(*comm);
  const int code = by_mpi(comm);
  Interposer::freed();
  return code;
}

}  // namespace

int MPI_Init(int* argc, char*** argv) {
  const int code = PMPI_Init(argc, argv);
  if (code == MPI_SUCCESS) Interposer::begin();
  return code;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) Interposer::begin();
  return code;
}

int MPI_Finalize() {
  Interposer::finish();
  return PMPI_Finalize();
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  return begun(PMPI_Comm_dup(comm, made), made);
}

int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
  return begun(PMPI_Comm_dup_with_info(comm, info, made), made);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* made) {
  return begun(PMPI_Comm_split(comm, color, key, made), made);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made) {
  return begun(PMPI_Comm_split_type(comm, type, key, info, made), made);
}

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* made) {
  return begun(PMPI_Comm_create(comm, group, made), made);
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made) {
  return begun(PMPI_Comm_create_group(comm, group, tag, made), made);
}

int MPI_Comm_free(MPI_Comm* comm) {
  return freed(comm, &PMPI_Comm_free);
}

int MPI_Comm_disconnect(MPI_Comm* comm) {
  return freed(comm, &PMPI_Comm_disconnect);
}
