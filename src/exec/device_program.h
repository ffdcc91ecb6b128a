// From a plan and a binding to what kernels are given. No CUDA here.
#pragma once

#include <vector>

#include "kernels/entries.h"
#include "plan/plan.h"

namespace tutti {

/// The numbers of `split`, for a kernel.
device::Cut cut_of(const Split& split);

/// Cuts a window call so that about `channels` channels share it, none with less than `bytes_min` bytes of a part. All
/// ranks must ask for the same.
void share(Split& split, int channels, std::size_t bytes_min);

/// The actions of `plan` as kernels take them: each knows how many that follow may be carried out together with it
/// (Action::together). Places are uploaded as they are.
std::vector<Action> device_actions(const Plan& plan);

/// What all ranks of a launch share of the call: cut, type, operator; `split` as bound. The rest (abort, limits, areas,
/// channels, ranks) is the host's.
void describe(device::Call& call, const Plan& plan, const Binding& binding);

/// Which kernel runs a plan, and the type whose entry it takes. A plan of Access::in_line has one only if it is
/// `one_shot`'s: an all-reduce in one pass over all inputs; its channels have one tile each, of which an inbox must
/// hold twice the bytes.
struct KernelChoice {
  device::Body body = device::Body::run_plan;
  DataType type = DataType::uint8;
};
KernelChoice kernel_for(const Plan& plan, const Binding& binding);

/// True if some kernel can run `plan`.
bool has_kernel(const Plan& plan);

}  // namespace tutti
