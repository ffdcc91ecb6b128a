#include "adapters/mpi/reduction.h"

#include <optional>

namespace tutti::mpi {
namespace {

/// Tutti's operator of the same name.
std::optional<tuttiRedOp_t> same_operator(MPI_Op op) {
  if (op == MPI_SUM) return tuttiSum;
  if (op == MPI_MAX) return tuttiMax;
  if (op == MPI_MIN) return tuttiMin;
  if (op == MPI_PROD) return tuttiProd;
  if (op == MPI_BAND) return tuttiBitAnd;
  if (op == MPI_BOR) return tuttiBitOr;
  if (op == MPI_BXOR) return tuttiBitXor;
  if (op == MPI_LAND) return tuttiLogicalAnd;
  if (op == MPI_LOR) return tuttiLogicalOr;
  if (op == MPI_LXOR) return tuttiLogicalXor;
  return std::nullopt;
}

bool is_logical(MPI_Op op) {
  return op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR;
}

bool is_bitwise(MPI_Op op) {
  return op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR;
}

bool finds_place(MPI_Op op) {
  return op == MPI_MINLOC || op == MPI_MAXLOC;
}

bool applies(MPI_Op op, TypeKind kind) {
  using enum TypeKind;
  if (is_bitwise(op)) return kind == integer || kind == byte;
  if (is_logical(op)) return kind == integer || kind == logical;
  if (finds_place(op)) return kind == pair;
  if (op == MPI_MAX || op == MPI_MIN) return kind == integer || kind == floating;
  return (op == MPI_SUM || op == MPI_PROD) && (kind == integer || kind == floating || kind == complex);
}

/// Whether tutti has the operator for a type to which it applies.
bool is_tuttis(MPI_Op op, const Element& element) {
  return same_operator(op) && element.type != tuttiNumTypes;
}

}  // namespace

bool is_predefined(MPI_Op op) {
  return same_operator(op) || finds_place(op) || op == MPI_REPLACE || op == MPI_NO_OP;
}

Reduction reduction_of(MPI_Datatype type, MPI_Op op, std::size_t count, int ranks, bool moves) {
  const auto refused = [](Outcome why) { return Reduction{.outcome = why}; };
  if (op == MPI_OP_NULL) return refused(Outcome::arguments);
  const Element* const element = element_of(type);
  const bool predefined = is_predefined(op);
  if (predefined && element == nullptr) return refused(Outcome::type);
  if (predefined && !applies(op, element->kind)) return refused(Outcome::operation);
  if (predefined && !moves && is_tuttis(op, *element)) {
    return {.type = element->type, .op = *same_operator(op), .bytes = element->size};
  }
  TypeFacts facts;
  if (check_type(type, facts) != MPI_SUCCESS) return refused(Outcome::arguments);
  // A predefined pair may have gaps, and is moved with them.
  const bool movable = facts.dense || (element != nullptr && element->kind == TypeKind::pair);
  if (!movable) return refused(Outcome::type);
  const auto bytes = static_cast<std::size_t>(facts.extent);
  if (bytes > 0 && count > gathered_bytes_max / bytes / static_cast<std::size_t>(ranks)) return refused(Outcome::large);
  return {.gathered = true, .bytes = bytes};
}

}  // namespace tutti::mpi
