// An algorithm is data: a pure function from the shape of a call to its schedule.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "algorithms/positions.h"
#include "plan/plan.h"
#include "plan/schedule.h"

namespace tutti {

/// Which ranks' work has to be looked at to know everybody's, where the machine looks alike from all of them.
enum class Classes : std::uint8_t {
  one,     ///< all ranks do the same in each step
  rings,   ///< as `one`, but for the ranks by which a ring of the shape enters or leaves their host
  folded,  ///< likewise where the number of ranks suits; else the first ones or every second do something else
  tree,    ///< those on the way from the root to the deepest leaves, numbered from the root on
};

/// The content of one file: an algorithm, or several that differ by one number (a radix, a number of chunks).
struct Family {
  std::string_view name;                                ///< as in TUTTI_ALGO: "ring"
  bool (*supports)(const Shape& shape, int parameter);  ///< false: build must not be called
  Schedule (*build)(const Shape& shape, int parameter);
  /// For accesses other than slots, which carry every schedule: the answer of lowers_to for all schedules of the
  /// family, without building them.
  bool (*carried_by)(Collective collective, Access access) = nullptr;
  /// The number of blocks in the largest message between any two ranks. Set if `build` takes little more than one
  /// rank's work where the shape asks for the transfers of one rank; then that rank's plan needs no other schedule.
  int (*items)(const Shape& shape, int parameter) = nullptr;
  /// With `items`: the answer of direct() (plan/counts.h) for the whole schedule; null: false.
  bool (*direct)(const Shape& shape) = nullptr;
  Classes classes = Classes::tree;
  std::string_view parameter = "";   ///< meaning of the number: "radix"; empty: there is none, and it is 0
  std::span<const int> values = {};  ///< members, the default one first
};

// Answers of several families.

/// Those of any number of ranks from two on.
template <Collective... served>
bool supports_any_of(const Shape& shape, int) {
  return shape.ranks > 1 && ((shape.collective == served) || ...);
}

constexpr bool carried_except_inline(Collective, Access access) {
  return access != Access::in_line;
}
/// Of families whose other collectives keep data of other ranks in scratch, which no peer can read.
template <Collective carried>
constexpr bool only_carried(Collective collective, Access access) {
  return access != Access::in_line && collective == carried;
}
/// Of families of which one collective has sums in scratch when other ranks read them.
template <Collective in_scratch>
constexpr bool carried_except(Collective collective, Access access) {
  return access != Access::in_line && collective != in_scratch;
}

/// Every message between two ranks has one block.
inline int one_item(const Shape&, int) {
  return 1;
}
inline bool always_direct(const Shape&) {
  return true;
}

/// A member of a family.
struct Algorithm {
  const Family* family;
  int parameter;
  std::string name;  ///< "ring"; in a family with a parameter "k_nomial/4"

  bool supports(const Shape& shape) const {
    return has_positions(shape) ? family->supports(positions_of(shape), parameter) : family->supports(shape, parameter);
  }
  /// Between the ranks in shape.order, where the collective permits it.
  Schedule build(const Shape& shape) const {
    if (!has_positions(shape)) return family->build(shape, parameter);
    return by_rank(family->build(positions_of(shape), parameter), shape);
  }
};

namespace algorithm {
#define ALGORITHM(x) extern const Family x;
#include "algorithms/list.inc"
#undef ALGORITHM
}  // namespace algorithm

/// `build` and `items` of a family that is one member of another.
template <const Family& other, int parameter>
Schedule build_as(const Shape& shape, int) {
  return other.build(shape, parameter);
}
template <const Family& other, int parameter>
int items_as(const Shape& shape, int) {
  return other.items(shape, parameter);
}

/// All families, in the order of list.inc.
std::span<const Family* const> families();

/// All members of all families, in the same order.
std::span<const Algorithm> algorithms();

/// The first member.
const Algorithm& member(const Family& family);

/// The algorithm of this name that supports the collective at this shape; nullptr if there is none. A family's name
/// alone means its first member that does.
const Algorithm* find_algorithm(std::string_view name, const Shape& shape);

/// True if `algorithm` can serve calls of this shape and access.
bool serves(const Algorithm& algorithm, const Shape& shape, Access access);

}  // namespace tutti
