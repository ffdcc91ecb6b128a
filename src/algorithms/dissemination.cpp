// A barrier in logarithmic steps.
#include "algorithms/algorithm.h"

namespace tutti {

/// Dissemination: in step k every rank tells the rank 2^k ahead which ranks it knows to have entered: itself and those
/// less than 2^k behind it.
///
///   steps ceil(log2 n)   one empty message per rank and step   any n ≥ 2
///
/// Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988.
const Family algorithm::dissemination{.name = "dissemination",
                                      .supports = supports_any_of<Collective::barrier>,
                                      .build = build_as<algorithm::k_dissemination, 2>,
                                      .carried_by = carried_except_inline,
                                      .items = items_as<algorithm::k_dissemination, 2>,
                                      .classes = Classes::one};

}  // namespace tutti
