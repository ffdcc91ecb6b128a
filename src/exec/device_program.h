// Translates a plan and a binding into the arguments of kernels. Contains no CUDA.
#pragma once

#include <vector>

#include "kernels/entries.h"
#include "plan/plan.h"

namespace tutti {

/// `split` in the form that kernels take.
device::Cut cut_of(const Split& split);

/// Splits a call by windows among at most about `channels` channels, each with at least `bytes_min` bytes of a part.
/// All ranks must pass the same arguments.
void share(Split& split, int channels, std::size_t bytes_min);

/// As share, for a call through slots: as many tiles as channels, or more if `items` blocks of such tiles do not fit a
/// slot.
void share_slots(Split& split, int channels, std::size_t bytes_min, std::size_t slot_bytes, int items);

/// The actions of `plan` as kernels take them: each has the number of actions from it on that may be carried out
/// parallel (Action::parallel). Places are uploaded unchanged.
std::vector<Action> device_actions(const Plan& plan);

/// Fills in the part of `call` that is equal on all ranks of a launch: cut (from the binding's split), type, operator.
/// The caller fills in the rest (abort word, limits, areas, channels, local ranks).
void describe(device::Call& call, const Plan& plan, const Binding& binding);

/// The kernel that runs a plan, and the type of its entry. Of the plans of Access::in_line only an all-reduce in one
/// pass over all inputs has a kernel, `one_shot`. Its channels have one tile each, and an inbox must hold twice the
/// bytes of a tile.
struct KernelChoice {
  device::Body body = device::Body::run_plan;
  DataType type = DataType::uint8;
};
KernelChoice kernel_for(const Plan& plan, const Binding& binding);

}  // namespace tutti
