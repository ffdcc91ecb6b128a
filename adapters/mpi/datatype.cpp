#include "adapters/mpi/datatype.h"

#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace tutti::mpi {
namespace {

template <class T>
constexpr tuttiDataType_t integer_type() {
  if (sizeof(T) == 1) return std::is_signed_v<T> ? tuttiInt8 : tuttiUint8;
  if (sizeof(T) == 2) return std::is_signed_v<T> ? tuttiInt16 : tuttiUint16;
  if (sizeof(T) == 4) return std::is_signed_v<T> ? tuttiInt32 : tuttiUint32;
  if (sizeof(T) == 8) return std::is_signed_v<T> ? tuttiInt64 : tuttiUint64;
  return tuttiNumTypes;
}

template <class T>
Element of_integer(MPI_Datatype handle) {
  return {.handle = handle, .kind = TypeKind::integer, .size = sizeof(T), .type = integer_type<T>()};
}

Element of(MPI_Datatype handle, TypeKind kind, std::size_t size, tuttiDataType_t type = tuttiNumTypes) {
  return {.handle = handle, .kind = kind, .size = size, .type = type};
}

/// Of Fortran, whose sizes its compiler decides. MPI_DATATYPE_NULL, or no size: this MPI has no Fortran.
Element of_fortran(MPI_Datatype handle, TypeKind kind) {
  int bytes = 0;
  if (handle == MPI_DATATYPE_NULL || PMPI_Type_size(handle, &bytes) != MPI_SUCCESS)
    return of(MPI_DATATYPE_NULL, kind, 0);
  const int part = kind == TypeKind::complex ? bytes / 2 : bytes;
  tuttiDataType_t type = tuttiNumTypes;
  if (kind == TypeKind::integer) type = part == 4 ? tuttiInt32 : part == 8 ? tuttiInt64 : tuttiNumTypes;
  if (kind == TypeKind::floating) type = part == 4 ? tuttiFloat32 : part == 8 ? tuttiFloat64 : tuttiNumTypes;
  if (kind == TypeKind::complex) type = part == 4 ? tuttiComplex64 : part == 8 ? tuttiComplex128 : tuttiNumTypes;
  return of(bytes == 0 ? MPI_DATATYPE_NULL : handle, kind, static_cast<std::size_t>(bytes), type);
}

/// The common ones first.
const auto& table() {
  using enum TypeKind;
  static const std::array all = {
      of(MPI_FLOAT, floating, 4, tuttiFloat32),
      of(MPI_DOUBLE, floating, 8, tuttiFloat64),
      of_integer<int>(MPI_INT),
      of(MPI_BYTE, byte, 1, tuttiUint8),
      of(MPI_CHAR, other, 1),
      of_integer<long>(MPI_LONG),
      of_integer<unsigned>(MPI_UNSIGNED),
      of_integer<unsigned long>(MPI_UNSIGNED_LONG),
      of_integer<long long>(MPI_LONG_LONG),
      of_integer<unsigned long long>(MPI_UNSIGNED_LONG_LONG),
      of_integer<std::int8_t>(MPI_INT8_T),
      of_integer<std::int16_t>(MPI_INT16_T),
      of_integer<std::int32_t>(MPI_INT32_T),
      of_integer<std::int64_t>(MPI_INT64_T),
      of_integer<std::uint8_t>(MPI_UINT8_T),
      of_integer<std::uint16_t>(MPI_UINT16_T),
      of_integer<std::uint32_t>(MPI_UINT32_T),
      of_integer<std::uint64_t>(MPI_UINT64_T),
      of_integer<signed char>(MPI_SIGNED_CHAR),
      of_integer<unsigned char>(MPI_UNSIGNED_CHAR),
      of_integer<short>(MPI_SHORT),
      of_integer<unsigned short>(MPI_UNSIGNED_SHORT),
      of_integer<MPI_Aint>(MPI_AINT),
      of_integer<MPI_Offset>(MPI_OFFSET),
      of_integer<MPI_Count>(MPI_COUNT),
      of(MPI_LONG_DOUBLE, floating, sizeof(long double)),
      of(MPI_C_BOOL, logical, 1, tuttiUint8),
      of(MPI_C_FLOAT_COMPLEX, complex, 8, tuttiComplex64),
      of(MPI_C_DOUBLE_COMPLEX, complex, 16, tuttiComplex128),
      of(MPI_C_LONG_DOUBLE_COMPLEX, complex, 2 * sizeof(long double)),
      of(MPI_2INT, pair, 8),
      of(MPI_FLOAT_INT, pair, 8),
      of(MPI_DOUBLE_INT, pair, 12),
      of(MPI_LONG_INT, pair, 12),
      of(MPI_SHORT_INT, pair, 6),
      of(MPI_LONG_DOUBLE_INT, pair, sizeof(long double) + 4),
      of_fortran(MPI_INTEGER, integer),
      of_fortran(MPI_REAL, floating),
      of_fortran(MPI_DOUBLE_PRECISION, floating),
      of_fortran(MPI_COMPLEX, complex),
      of_fortran(MPI_DOUBLE_COMPLEX, complex),
      of_fortran(MPI_LOGICAL, logical),
      of_fortran(MPI_CHARACTER, other),
      of_fortran(MPI_2INTEGER, pair),
      of_fortran(MPI_2REAL, pair),
      of_fortran(MPI_2DOUBLE_PRECISION, pair),
  };
  return all;
}

/// How a type was made. `readable`: by one of the constructors that the functions below know.
struct Envelope {
  int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  bool readable = false;
};

Envelope envelope_of(MPI_Datatype type) {
  Envelope envelope;
#if MPI_VERSION >= 4
  MPI_Count integers = 0, addresses = 0, large = 0, types = 0;
  const int code = PMPI_Type_get_envelope_c(type, &integers, &addresses, &large, &types, &envelope.combiner);
  envelope.integers = static_cast<int>(integers);
  envelope.addresses = static_cast<int>(addresses);
  envelope.types = static_cast<int>(types);
  envelope.readable = code == MPI_SUCCESS && large == 0;
#else
  envelope.readable = PMPI_Type_get_envelope(type, &envelope.integers, &envelope.addresses, &envelope.types,
                                             &envelope.combiner) == MPI_SUCCESS;
#endif
  return envelope;
}

/// Whether blocks, as the indexed constructors list them, follow one another from address 0 on. `displacement(i)`: in
/// bytes.
template <class Length, class Displacement>
bool follow(int blocks, std::size_t bytes, Length&& length, Displacement&& displacement) {
  std::ptrdiff_t end = 0;
  for (int i = 0; i < blocks; ++i) {
    if (length(i) == 0) continue;
    if (displacement(i) != end) return false;
    end += static_cast<std::ptrdiff_t>(length(i)) * static_cast<std::ptrdiff_t>(bytes);
  }
  return true;
}

/// Whether `inner`, repeated, stays dense under this constructor.
bool keeps_dense(int combiner, const std::vector<int>& integers, const std::vector<MPI_Aint>& addresses,
                 const TypeFacts& inner, std::size_t size) {
  const auto step = static_cast<std::ptrdiff_t>(inner.size);
  const int blocks = integers[0];
  const auto length = [&](int i) { return integers[static_cast<std::size_t>(1 + i)]; };
  const auto same_length = [&](int) { return integers[1]; };
  const auto address = [&](int i) { return addresses[static_cast<std::size_t>(i)]; };
  const auto place = [&](int first) {
    return [&, first](int i) { return integers[static_cast<std::size_t>(first + i)] * step; };
  };
  switch (combiner) {
    case MPI_COMBINER_INDEXED: return follow(blocks, inner.size, length, place(1 + blocks));
    case MPI_COMBINER_HINDEXED: return follow(blocks, inner.size, length, address);
    case MPI_COMBINER_INDEXED_BLOCK: return follow(blocks, inner.size, same_length, place(2));
    case MPI_COMBINER_HINDEXED_BLOCK: return follow(blocks, inner.size, same_length, address);
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_CONTIGUOUS: return true;
    case MPI_COMBINER_VECTOR: return integers[0] <= 1 || integers[1] == integers[2];
    case MPI_COMBINER_HVECTOR:
      return integers[0] <= 1 || addresses[0] == static_cast<MPI_Aint>(inner.size) * integers[1];
    case MPI_COMBINER_RESIZED: return addresses[0] == 0 && addresses[1] == static_cast<MPI_Aint>(size);
    default: return false;
  }
}

bool is_named(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

void release(MPI_Datatype type) {
  if (!is_predefined_type(type)) PMPI_Type_free(&type);
}

/// Of a struct, which has a type per block; `types` are given back.
bool is_dense_struct(const std::vector<int>& integers, const std::vector<MPI_Aint>& addresses,
                     const std::vector<MPI_Datatype>& types) {
  bool dense = true;
  std::ptrdiff_t end = 0;
  for (std::size_t i = 0; i < types.size(); ++i) {
    TypeFacts facts;
    if (dense && integers[1 + i] > 0) {
      dense = facts_of(types[i], facts) == MPI_SUCCESS && facts.dense && addresses[i] == end;
      end += static_cast<std::ptrdiff_t>(facts.size) * integers[1 + i];
    }
    release(types[i]);
  }
  return dense;
}

/// Sizes alone do not tell: a type may list its parts in another order than that of their addresses.
bool is_dense(MPI_Datatype type, std::size_t size, std::ptrdiff_t extent) {
  if (static_cast<std::ptrdiff_t>(size) != extent) return false;
  const Envelope made = envelope_of(type);
  if (made.combiner == MPI_COMBINER_NAMED) return true;
  const bool is_struct = made.combiner == MPI_COMBINER_STRUCT;
  if (!made.readable || made.types < 1 || (made.types > 1 && !is_struct)) return false;
  std::vector<int> integers(static_cast<std::size_t>(made.integers) + 1);
  std::vector<MPI_Aint> addresses(static_cast<std::size_t>(made.addresses) + 1);
  std::vector<MPI_Datatype> types(static_cast<std::size_t>(made.types), MPI_DATATYPE_NULL);
  if (PMPI_Type_get_contents(type, made.integers, made.addresses, made.types, integers.data(), addresses.data(),
                             types.data()) != MPI_SUCCESS)
    return false;
  if (is_struct) return is_dense_struct(integers, addresses, types);
  MPI_Datatype const inner = types[0];
  TypeFacts facts;
  const bool dense = facts_of(inner, facts) == MPI_SUCCESS && facts.dense &&
                     keeps_dense(made.combiner, integers, addresses, facts, size);
  release(inner);
  return dense;
}

}  // namespace

const Element* element_of(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return nullptr;
  for (const Element& element : table())
    if (element.handle == type) return &element;
  return nullptr;
}

bool is_predefined_type(MPI_Datatype type) {
  return is_named(envelope_of(type).combiner);
}

MPI_Comm& quiet_comm() {
  static MPI_Comm comm = MPI_COMM_NULL;
  return comm;
}

int facts_of(MPI_Datatype type, TypeFacts& facts) {
  if (const Element* const known = element_of(type); known != nullptr && known->kind != TypeKind::pair) {
    facts = {.size = known->size, .extent = static_cast<std::ptrdiff_t>(known->size), .dense = true};
    return MPI_SUCCESS;
  }
  MPI_Count size = 0, lower = 0, extent = 0;
  if (const int code = PMPI_Type_size_x(type, &size); code != MPI_SUCCESS) return code;
  if (const int code = PMPI_Type_get_extent_x(type, &lower, &extent); code != MPI_SUCCESS) return code;
  facts.size = static_cast<std::size_t>(size);
  facts.extent = extent;
  facts.dense = lower == 0 && is_dense(type, facts.size, extent);
  return MPI_SUCCESS;
}

int check_type(MPI_Datatype type, TypeFacts& facts) {
  // Functions that ask about types have no communicator, so MPI_COMM_WORLD would hear of their errors.
  const char unread = 0;
  const int code =
      element_of(type) != nullptr ? MPI_SUCCESS : PMPI_Send(&unread, 1, type, MPI_PROC_NULL, 0, quiet_comm());
  return code != MPI_SUCCESS ? code : facts_of(type, facts);
}

}  // namespace tutti::mpi
