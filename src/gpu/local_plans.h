// Plans of passes over a rank's own memory, which a reduction with a count per rank needs besides the exchange of
// blocks.
#pragma once

#include "plan/plan.h"

namespace tutti {

/// Reduces what all ranks have sent, in the order of ranks, into the output. A pass has at most limits::sources_max
/// sources; partial results lie in the scratch memory, which has one group. Sources are the inputs of all ranks
/// (Where::peer_input), wherever they have been brought.
Plan combine_plan(int ranks);

/// Multiplies the input by the rank's factor (of a pre-multiplied sum), into the output.
Plan scale_plan(int ranks);

}  // namespace tutti
