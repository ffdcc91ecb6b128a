// A barrier in logarithmic steps.
#include "algorithms/algorithm.h"
#include "algorithms/visits.h"

namespace tutti {
namespace {

/// Dissemination: in step k every rank tells the rank 2^k ahead which ranks it knows to have entered: itself and those
/// less than 2^k behind it.
///
///   steps ceil(log2 n)   one empty message per rank and step   any n ≥ 2
///
/// Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988.
Schedule build(const Shape& shape, int) {
  return growing(shape, 2, /*ahead=*/1);
}

int items(const Shape& shape, int) {
  return items_of_growing(shape, 2);
}

}  // namespace

const Family algorithm::dissemination{.name = "dissemination",
                                      .supports = supports_any_of<Collective::barrier>,
                                      .build = build,
                                      .carried_by = carried_except_inline,
                                      .items = items,
                                      .classes = Classes::one};

}  // namespace tutti
