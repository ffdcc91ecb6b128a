// Partners that swing from side to side, so that none is farther than it must be.
#pragma once

namespace tutti {

/// The partner of `i` in `step`, of `size` around: 1, 1, 3, 5, 11, … away, even ones to one side and then to the other,
/// odd ones opposite. For any `size` that is even, and its own inverse.
int swing_partner(int i, int step, int size);

}  // namespace tutti
