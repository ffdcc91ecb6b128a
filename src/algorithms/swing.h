// Partners on alternating sides, so that none is farther away than necessary.
#pragma once

namespace tutti {

/// The partner of `i` in `step`, of `size` in a cycle: 1, 1, 3, 5, 11, … away; even ones alternate between the sides,
/// odd ones take the opposite side. For any even `size`; the function is its own inverse.
int swing_partner(int i, int step, int size);

}  // namespace tutti
