// A few partners at a time.
#include "algorithms/algorithm.h"
#include "algorithms/relay.h"

namespace tutti {
namespace {

/// Spread out: in each step every rank sends to the next few ranks ahead at once, so that no rank receives from all
/// others at the same time.
///
///   steps ceil((n-1)/batch)   messages per rank and step at most batch   sent per rank bytes·(n-1)/n   any n ≥ 2
///
/// MPICH calls it "scattered".
LegsOf legs_of(int, int batch) {
  return [batch](int distance, std::vector<Leg>& legs) {
    legs.push_back({.step = (distance - 1) / batch, .distance = distance});
  };
}

constexpr int batches[] = {4, 2, 8};

}  // namespace

const Family algorithm::spread_out{.name = "spread_out",
                                   .supports = supports_any_of<Collective::all_to_all>,
                                   .build = build_relay<legs_of>,
                                   .carried_by = carried_except_inline,
                                   .items = items_of_relay<legs_of>,
                                   .direct = always_direct,
                                   .classes = Classes::one,
                                   .parameter = "batch",
                                   .values = batches};

}  // namespace tutti
