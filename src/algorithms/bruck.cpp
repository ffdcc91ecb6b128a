// All-gather in which a rank's data grows by a factor of k in each step, for any number of ranks.
#include "algorithms/algorithm.h"
#include "algorithms/visits.h"

namespace tutti {
namespace {

constexpr int radixes[] = {2, 4, 8};

}  // namespace

/// Bruck: a rank that has its own block and the `have` - 1 blocks after it, cyclically, sends them to the ranks `have`,
/// 2·`have`, … before it.
///
///   steps ceil(log_k n), k-1 messages in each   sent per rank bytes·(n-1)/n   any n ≥ 2
///
/// Blocks are stored at their final place at once, so nothing is rotated at the end.
/// Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport
/// message-passing systems", IEEE TPDS 1997.
const Family algorithm::bruck{.name = "bruck",
                              .supports = supports_any_of<Collective::all_gather>,
                              .build = growing<-1>,
                              .carried_by = carried_except_inline,
                              .items = items_of_growing,
                              .classes = Classes::one,
                              .parameter = "radix",
                              .values = radixes};

}  // namespace tutti
