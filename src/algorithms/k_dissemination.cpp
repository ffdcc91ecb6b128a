// A barrier in fewer steps, with more messages in each.
#include "algorithms/algorithm.h"
#include "algorithms/visits.h"

namespace tutti {
namespace {

constexpr int radices[] = {4, 3, 8};

}  // namespace

/// k-dissemination: in step i every rank tells the ranks k^i, 2·k^i, …, (k-1)·k^i ahead which ranks it knows to have
/// entered: itself and those less than k^i behind it.
///
///   steps ceil(log_k n)   at most k-1 empty messages per rank and step   any n ≥ 2
///
/// Hoefler, Mehlan, Mietke and Rehm, "Fast barrier synchronization for InfiniBand", IPDPS 2006.
const Family algorithm::k_dissemination{.name = "k_dissemination",
                                        .supports = supports_any_of<Collective::barrier>,
                                        .build = growing<1>,
                                        .carried_by = carried_except_inline,
                                        .items = items_of_growing,
                                        .classes = Classes::one,
                                        .parameter = "radix",
                                        .values = radices};

}  // namespace tutti
