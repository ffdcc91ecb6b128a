#include "mpi/reduction.h"

#include <optional>

namespace tutti::mpi {
namespace {

std::optional<tuttiRedOp_t> arithmetic(MPI_Op op) {
  if (op == MPI_SUM) return tuttiSum;
  if (op == MPI_MAX) return tuttiMax;
  if (op == MPI_MIN) return tuttiMin;
  if (op == MPI_PROD) return tuttiProd;
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

/// Whether tutti's operator is MPI's; a sum of complex numbers is that of their components.
bool is_tuttis(MPI_Op op, const Element& element) {
  return arithmetic(op) && element.type != tuttiNumTypes && (element.kind != TypeKind::complex || op == MPI_SUM);
}

}  // namespace

bool is_predefined(MPI_Op op) {
  return arithmetic(op) || is_logical(op) || is_bitwise(op) || finds_place(op) || op == MPI_REPLACE || op == MPI_NO_OP;
}

Reduction reduction_of(MPI_Datatype type, MPI_Op op, std::size_t count, int ranks, bool prefix) {
  const auto refused = [](Outcome why) { return Reduction{.outcome = why}; };
  if (op == MPI_OP_NULL) return refused(Outcome::arguments);
  const Element* const element = element_of(type);
  const bool predefined = is_predefined(op);
  if (predefined && element == nullptr) return refused(Outcome::type);
  if (predefined && !applies(op, element->kind)) return refused(Outcome::operation);
  if (predefined && !prefix && is_tuttis(op, *element)) {
    const std::size_t parts = element->kind == TypeKind::complex ? 2 : 1;
    return {.type = element->type, .op = *arithmetic(op), .per_element = parts, .bytes = element->size};
  }
  TypeFacts facts;
  if (check_type(type) != MPI_SUCCESS || facts_of(type, facts) != MPI_SUCCESS) return refused(Outcome::arguments);
  // A predefined pair may have gaps, and is moved with them.
  const bool movable = facts.dense || (element != nullptr && element->kind == TypeKind::pair);
  if (!movable) return refused(Outcome::type);
  const auto bytes = static_cast<std::size_t>(facts.extent);
  if (bytes > 0 && count > gathered_bytes_max / bytes / static_cast<std::size_t>(ranks)) return refused(Outcome::large);
  return {.gathered = true, .bytes = bytes};
}

}  // namespace tutti::mpi
