// One side of a call, what a rank sends or receives, as bytes: in the user's buffer where that is dense, else packed.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "adapters/mpi/mpi_header.h"

namespace tutti::mpi {

/// A part of a user's buffer: `count` elements of `type`.
struct Piece {
  std::byte* at = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

/// Errors: MPI's, as a code.
class Side {
 public:
  Side() = default;
  ~Side() { release(); }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  /// Dense bytes, as they are.
  void set(const void* at, std::size_t bytes);
  /// Dense bytes of its own, to be filled.
  void set_own(std::size_t bytes);
  /// One piece for all.
  int take(const Piece& piece);
  /// A piece for each rank: sets counts and displacements as well.
  int take(const std::vector<Piece>& pieces);

  /// Fills the packed bytes from the user's buffer. Nothing to do where that is dense.
  int pack();
  /// The way back.
  int unpack();
  /// Gives memory and types back, as the destructor does.
  void release();

  std::byte* base = nullptr;
  std::size_t bytes = 0;
  std::vector<std::size_t> counts;  ///< in bytes, by rank
  std::vector<std::size_t> displacements;

 private:
  int keep(const Piece& piece);
  int keep_from_bottom();
  void lay_out_in_place(const std::vector<Piece>& pieces);

  std::unique_ptr<std::byte[]> own_;
  std::vector<Piece> packed_;
  std::vector<MPI_Datatype> types_;  ///< of packed_, our own: the user may free his before the call has ended
};

}  // namespace tutti::mpi
