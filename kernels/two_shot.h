// The body of a two-shot all-reduce through windows: each rank reduces its part of all inputs, in rank order, and
// stores the result to all outputs, in one pass. Used for plans that have exactly this form (exec/device_program.h); it
// does not read their actions.
#pragma once

#include <cstddef>

#include "kernels/block.h"
#include "kernels/entries.h"
#include "kernels/extent.h"
#include "kernels/pass.h"
#include "kernels/waiting.h"

namespace tutti::device {

template <>
struct Shared<Body::two_shot> {
  Operands operands[2];  ///< of this tile and the previous one
  WaitShared waits;
  BarrierLinks links;
};

/// Numbers of the barriers, for error records.
enum class TwoShotBarrier : std::uint32_t { begin, end };

template <class T, Block B>
TUTTI_DEVICE void two_shot(B& b, Shared<Body::two_shot>& s, const Call& call) {
  const BlockPart part = part_of(b, call);
  const RankCall& rank = part.rank;
  const std::uint32_t channel = part.channel;
  const int ranks = static_cast<int>(call.ranks);
  if (channel >= call.cut.tiles) return;  // equal on all ranks
  fetch(b, s.links, part.links, ranks);
  const auto barrier_at = [&](TwoShotBarrier nth) {
    return barrier(b, s.waits, s.links, call, rank, static_cast<int>(channel), static_cast<std::uint32_t>(nth));
  };
  if constexpr (B::fault != Fault::no_entry_barrier)
    if (call.synchronises != 0 && !barrier_at(TwoShotBarrier::begin)) return;

  const Combination how{.op = call.op,
                        .sources = ranks,
                        .destinations = ranks,
                        .divisor = call.average != 0 ? ranks : 1,
                        .scales = call.scaled != 0};
  int turn = 0;
  for (std::uint64_t tile = channel; tile < call.cut.tiles; tile += call.channels) {
    const Extent extent = extent_of(call.cut, rank.rank, tile);
    Operands& o = s.operands[turn ^= 1];
    for (int i = b.thread(); i < ranks; i += b.threads()) {
      o.sources[i] = call.buffers[i].input + extent.begin * sizeof(T);
      o.scaled[i] = call.scaled;
      o.scalars[i] = call.buffers[i].scalar;
      // Ranks begin with different destinations, so that not all store to the same one at a time.
      const int to = i + static_cast<int>(rank.rank);
      o.destinations[i] = call.buffers[to < ranks ? to : to - ranks].output + extent.begin * sizeof(T);
    }
    if constexpr (B::fault != Fault::no_operand_barrier) b.sync(Barrier::operands);
    run_pass<T>(b, o, how, extent.count);
  }
  if constexpr (B::fault != Fault::no_exit_barrier) (void)barrier_at(TwoShotBarrier::end);
}

}  // namespace tutti::device
