// The bodies of all kernels, for what compiles them: nvcc, and tests on the host.
#pragma once

#include "kernels/one_shot.h"
#include "kernels/run_plan.h"
#include "kernels/two_shot.h"
