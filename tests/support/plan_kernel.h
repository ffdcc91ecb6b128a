// A launch of ours carried out by one thread: actions by their meaning alone, ranks and channels in turn. What it does
// not do is what kernels are about: blocks, memory orders, speed.
#pragma once

#include "kernels/entries.h"

namespace tutti::testing {

/// False: nobody could go on, or the abort word is set.
bool run_plans(const device::Call& call);

}  // namespace tutti::testing
