// What functions that prepare calls share: are arguments right, and what do they name?
#pragma once

#include "adapters/mpi/datatype.h"
#include "adapters/mpi/prepare.h"
#include "adapters/mpi/side.h"

namespace tutti::mpi {

inline bool right(const Buffer& buffer, int /*ranks*/ = 1) {
  return buffer.count >= 0 && buffer.type != MPI_DATATYPE_NULL;
}
bool right(const Buffers& buffers, int ranks);
inline bool right(const Reduce& reduce, bool receives) {
  return reduce.count >= 0 && reduce.type != MPI_DATATYPE_NULL && !(receives && reduce.recv == MPI_IN_PLACE);
}

/// Wrong arguments, of which MPI says what is wrong.
inline Prepared refused() {
  return {.outcome = Outcome::arguments};
}
inline Prepared failed(int code) {
  return {.code = code};
}
/// MPI_IN_PLACE where it has no meaning. Not left to MPI: it would wait there, where it does not look.
inline Prepared misplaced() {
  return failed(MPI_ERR_BUFFER);
}

inline Piece piece_of(const Buffer& buffer, MPI_Count times = 1) {
  return {
      .at = static_cast<std::byte*>(const_cast<void*>(buffer.at)), .count = buffer.count * times, .type = buffer.type};
}

/// A piece for each of `ranks` ranks. Errors: MPI's, as a code.
int take(Side& side, const Buffers& buffers, int ranks);

/// Of the inputs of `blocks` ranks, `count` elements each; 0: this rank combines none.
Combination combination_of(const Reduce& reduce, int blocks, std::size_t count, std::size_t element_bytes);

}  // namespace tutti::mpi
