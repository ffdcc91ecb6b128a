// What tutti must know of an MPI datatype.
#pragma once

#include <cstddef>

#include "adapters/mpi/mpi_header.h"
#include "tutti/tutti.h"

namespace tutti::mpi {

/// Decides which predefined operators apply.
enum class TypeKind { integer, floating, complex, logical, byte, pair, other };

/// A predefined type.
struct Element {
  MPI_Datatype handle;
  TypeKind kind;
  std::size_t size;
  tuttiDataType_t type;  ///< tuttiNumTypes: tutti has none
};

/// Null: not a predefined type that this table has.
const Element* element_of(MPI_Datatype type);

/// One of MPI's own, in the table or not.
bool is_predefined_type(MPI_Datatype type);

struct TypeFacts {
  std::size_t size = 0;
  std::ptrdiff_t extent = 0;
  bool dense = false;  ///< elements follow one another without gaps, in the order of the type's signature
};

/// A communicator of this process alone that returns errors: for functions whose errors another one has to hear of.
MPI_Comm& quiet_comm();

/// The facts of a type by which a program may communicate. Errors: MPI's, as a code; no handler has been called.
int check_type(MPI_Datatype type, TypeFacts& facts);

/// `type` has been checked, or is a part of such a one. Errors: MPI's, as a code.
int facts_of(MPI_Datatype type, TypeFacts& facts);

}  // namespace tutti::mpi
