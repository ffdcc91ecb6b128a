#include "adapters/mpi/reduction.h"

#include <algorithm>
#include <array>
#include <optional>

namespace tutti::mpi {
namespace {

/// One of MPI's own operators.
struct Operator {
  MPI_Op op;
  bool (*applies)(TypeKind kind);
  std::optional<tuttiRedOp_t> same = {};  ///< tutti's of that name
};

/// Null: not one of MPI's own.
const Operator* operator_of(MPI_Op op) {
  using enum TypeKind;
  constexpr auto number = [](TypeKind kind) { return kind == integer || kind == floating || kind == complex; };
  constexpr auto ordered = [](TypeKind kind) { return kind == integer || kind == floating; };
  constexpr auto bits = [](TypeKind kind) { return kind == integer || kind == byte; };
  constexpr auto truth = [](TypeKind kind) { return kind == integer || kind == logical; };
  constexpr auto place = [](TypeKind kind) { return kind == pair; };
  constexpr auto none = [](TypeKind) { return false; };
  static const std::array<Operator, 14> all = {{{MPI_SUM, number, tuttiSum},
                                                {MPI_MAX, ordered, tuttiMax},
                                                {MPI_MIN, ordered, tuttiMin},
                                                {MPI_PROD, number, tuttiProd},
                                                {MPI_BAND, bits, tuttiBitAnd},
                                                {MPI_BOR, bits, tuttiBitOr},
                                                {MPI_BXOR, bits, tuttiBitXor},
                                                {MPI_LAND, truth, tuttiLogicalAnd},
                                                {MPI_LOR, truth, tuttiLogicalOr},
                                                {MPI_LXOR, truth, tuttiLogicalXor},
                                                {MPI_MINLOC, place},
                                                {MPI_MAXLOC, place},
                                                {MPI_REPLACE, none},
                                                {MPI_NO_OP, none}}};
  const auto* const found = std::ranges::find(all, op, &Operator::op);
  return found == all.end() ? nullptr : found;
}

}  // namespace

bool is_predefined(MPI_Op op) {
  return operator_of(op) != nullptr;
}

Reduction reduction_of(MPI_Datatype type, MPI_Op op, std::size_t count, int ranks, bool moves) {
  const auto refused = [](Outcome why) { return Reduction{.outcome = why}; };
  if (op == MPI_OP_NULL) return refused(Outcome::arguments);
  const Element* const element = element_of(type);
  const Operator* const own = operator_of(op);
  if (own != nullptr && element == nullptr) return refused(Outcome::type);
  if (own != nullptr && !own->applies(element->kind)) return refused(Outcome::operation);
  if (own != nullptr && !moves && own->same && element->type != tuttiNumTypes)
    return {.type = element->type, .op = *own->same, .bytes = element->size};
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
