// A plan that is bound to one call: which elements its passes move, and where they lie.
#pragma once

#include <cassert>
#include <cstddef>

#include "base/host.h"
#include "exec/channel.h"
#include "plan/plan.h"

namespace tutti {

/// A piece of a pass: elements [at, at + count) of the group; `skipped` elements of the block come before it.
struct Piece {
  std::size_t at = 0;
  std::size_t skipped = 0;
  std::size_t count = 0;
};

class BoundPlan {
 public:
  /// Both must outlive this object.
  BoundPlan(const Plan& plan, const Binding& binding)
      : plan_(&plan),
        binding_(&binding),
        groups_differ_(binding.groups_differ),
        scales_(binding.op == ReduceOp::pre_mul_sum && reduces(plan.collective)) {}

  const Plan& plan() const { return *plan_; }
  const Binding& binding() const { return *binding_; }

  /// Of a group. Avoids the divisions of a cut if there is nothing to cut: they would slow down the smallest calls.
  Range range_of(const Action& action, std::size_t tile) const {
    const Split& split = binding_->split;
    if (groups_differ_) [[unlikely]]
      return split.tile_of_group(elements_of(action), tile);
    if (plan_->parts == 1 && split.tiles() == 1) return {.begin = 0, .count = split.count()};
    return split.tile_of(static_cast<int>(action.part), tile);
  }
  /// For acquire and peek in a direct plan, where a message holds one block whose size both ends know.
  bool is_empty_message(const Action& action, std::size_t tile) const;

  /// Whether the call is a pre-multiplied sum; whether it scales what is in the place.
  bool scales() const { return scales_; }
  bool scales(const Place& place) const { return scales_ && place.contribution != 0; }
  /// Whether the pass only copies one source, as it is.
  bool copies_one(const Action& action) const {
    return action.verb == Verb::copy && action.sources == 1 && !scales(plan_->sources(action)[0]);
  }

  const std::byte* source_of(const Channel& channel, const Place& place, const Piece& piece) const;
  std::byte* destination_of(const Channel& channel, const Place& place, const Piece& piece) const;
  /// From whose memory the source can only be copied; none: it is mapped here.
  ForeignProcess process_of(const Channel& channel, const Place& place) const {
    if (place.where == Where::slot) {
      const auto& offered = channel.open[place.peer].offered;
      return offered.empty() ? ForeignProcess{} : offered[place.block].process;
    }
    const bool peers = place.where == Where::peer_input || place.where == Where::peer_output;
    return peers ? binding_->peers[place.peer].process : ForeignProcess{};
  }

 private:
  std::size_t elements_of(const Action& action) const;
  std::size_t begin_of(const Place& place) const;
  std::byte* in_buffer(const Place& place, std::byte* base, const Piece& piece) const {
    const std::size_t group = place.block / static_cast<std::uint32_t>(plan_->parts);
    std::size_t begin = group * binding_->split.count();
    if (groups_differ_) [[unlikely]]
      begin = begin_of(place);
    return base + (begin + piece.at) * binding_->split.element_bytes();
  }

  const Plan* plan_;
  const Binding* binding_;
  bool groups_differ_;  // a count per rank
  bool scales_;
};

inline const std::byte* BoundPlan::source_of(const Channel& channel, const Place& place, const Piece& piece) const {
  const auto readable = [](const std::byte* base) { return const_cast<std::byte*>(base); };
  switch (place.where) {
    case Where::input: return in_buffer(place, readable(binding_->input), piece);
    case Where::peer_input: return in_buffer(place, binding_->peers[place.peer].input, piece);
    case Where::peer_payload: return in_buffer(place, readable(channel.open[place.peer].line), piece);
    case Where::slot: {
      const auto& open = channel.open[place.peer];
      if (!open.offered.empty() && open.offered[place.block].at.data() != nullptr)
        return open.offered[place.block].at.data() + piece.skipped * binding_->split.element_bytes();
      const auto message = open.reading;
      const std::size_t at = place.block * binding_->split.stride() + piece.skipped * binding_->split.element_bytes();
      assert(at + piece.count * binding_->split.element_bytes() <= message.size());
      return message.data() + at;
    }
    case Where::output:
    case Where::scratch:
    case Where::peer_output: break;
  }
  return destination_of(channel, place, piece);
}

inline std::byte* BoundPlan::destination_of(const Channel& channel, const Place& place, const Piece& piece) const {
  switch (place.where) {
    case Where::output: return in_buffer(place, binding_->output, piece);
    case Where::scratch: return in_buffer(place, binding_->scratch, piece);
    case Where::peer_output: return in_buffer(place, binding_->peers[place.peer].output, piece);
    case Where::slot: {
      const auto message = channel.open[place.peer].filling;
      const std::size_t at = place.block * binding_->split.stride() + piece.skipped * binding_->split.element_bytes();
      assert(at + piece.count * binding_->split.element_bytes() <= message.size());
      return message.data() + at;
    }
    case Where::input:
    case Where::peer_input:
    case Where::peer_payload: break;
  }
  assert(false && "a place that is only read");
  return nullptr;
}

}  // namespace tutti
