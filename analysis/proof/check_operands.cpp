// Whether each action of a plan can be carried out at all.
#include "analysis/proof/check_operands.h"

#include <fmt/format.h>

#include "analysis/proof/check_memory.h"
#include "base/limits.h"

namespace tutti::proof {
namespace {

/// The inspection of one plan. Functions return an error text, empty if there is no error.
class Inspection {
 public:
  Inspection(const Schedule& schedule, const Plan& plan, Rank rank) : schedule_(schedule), plan_(plan), rank_(rank) {}

  std::string header() const {
    if (plan_.collective != schedule_.collective()) return "is of another collective";
    if (plan_.ranks != schedule_.ranks() || plan_.rank != rank_) return "is of another rank";
    if (plan_.root != schedule_.root()) return "has another root";
    if (plan_.parts != schedule_.parts()) return "has other parts";
    if (plan_.scratch_groups < 0 || plan_.scratch_groups > schedule_.scratch_groups())
      return "has more scratch than the schedule";
    return {};
  }

  std::string action(const Action& a) const {
    const bool fifo = plan_.access == Access::slots;
    switch (a.verb) {
      case Verb::copy:
      case Verb::reduce: return pass(a);
      case Verb::acquire:
      case Verb::commit:
      case Verb::peek:
      case Verb::release:
      case Verb::settle:
        if (!fifo) return "this access has no slots";
        break;
      case Verb::signal:
      case Verb::wait:
        if (fifo) return "this access has no flags";
        break;
      case Verb::wait_descriptor:
        if (plan_.access != Access::in_line) return "this access reads no call descriptors";
        break;
    }
    if (!is_peer(a.peer)) return fmt::format("rank {} is not a peer", a.peer);
    const bool opens = a.verb == Verb::acquire || a.verb == Verb::peek;
    if (opens && a.items > static_cast<std::uint32_t>(plan_.items_max)) return "more items than items_max";
    return {};
  }

 private:
  bool is_peer(int peer) const { return peer < plan_.ranks && peer != rank_; }

  std::string pass(const Action& a) const {
    const bool reduce = a.verb == Verb::reduce;
    if (reduce && !reduces(plan_.collective)) return "this collective does not reduce";
    if (a.sources < 1 || a.sources > (reduce ? limits::sources_max : 1)) return "wrong number of sources";
    if (a.destinations < 1) return "no destination";
    if (std::size_t{a.first} + a.sources + a.destinations > plan_.places.size()) return "operands out of range";
    if (a.part >= static_cast<std::uint32_t>(plan_.parts)) return "part out of range";
    if (a.last > (reduce ? 1 : 0)) return "only a reduction can be the last";
    const bool halves = reduce && averages(plan_.collective);
    if (!halves && a.halvings != 0) return "only a sum of an average is halved";
    for (const Place& p : plan_.sources(a))
      if (!halves && p.halvings != 0) return describe(p, false) + ": only a sum of an average is halved";
    for (const Place& p : plan_.destinations(a))
      if (p.halvings != 0) return describe(p, true) + ": only a source is halved";
    for (const Place& p : plan_.sources(a))
      if (auto what = place(a, p, false); !what.empty()) return describe(p, false) + ": " + what;
    for (const Place& p : plan_.destinations(a))
      if (auto what = place(a, p, true); !what.empty()) return describe(p, true) + ": " + what;
    return {};
  }

  std::string place(const Action& a, const Place& p, bool written) const {
    const bool window = plan_.access == Access::mapped || (plan_.access == Access::cma && !written);
    Rank owner = rank_;
    switch (p.where) {
      case Where::input:
        if (written) return "an input must not be written";
        break;
      case Where::output:
      case Where::scratch: break;
      case Where::slot:
        if (plan_.access != Access::slots) return "this access has no slots";
        if (!is_peer(p.peer)) return "not a peer";
        if (p.contribution) return "a slot cannot be a contribution";
        return {};  // which items exist is known only when a message is open
      case Where::peer_input:
        if (written) return "an input must not be written";
        [[fallthrough]];
      case Where::peer_output:
        if (!window) return "this access has no windows";
        owner = p.peer;
        break;
      case Where::peer_payload:
        if (plan_.access != Access::in_line || written) return "this access reads no call descriptors";
        if (p.contribution) return "the payload of a call descriptor is already scaled";
        owner = p.peer;
        break;
      default: return "no such place";
    }
    if (owner != rank_ && !is_peer(owner)) return "not a peer";
    if (owner == rank_ && p.where >= Where::peer_input) return "not a peer";
    if (written && p.contribution) return "a destination cannot be a contribution";
    return block(a, p, owner);
  }

  std::string block(const Action& a, const Place& p, Rank owner) const {
    const bool in_output = p.where == Where::output || p.where == Where::peer_output;
    const int blocks = p.where == Where::scratch
                           ? plan_.scratch_groups * plan_.parts
                           : blocks_of(schedule_, owner, in_output ? Buffer::output : Buffer::input);
    if (p.block >= static_cast<std::uint32_t>(blocks)) return "block out of range";
    if (p.block % static_cast<std::uint32_t>(plan_.parts) != a.part) return "a block of another part";
    return {};
  }

  const Schedule& schedule_;
  const Plan& plan_;
  Rank rank_;
};

}  // namespace

Result<void> check_operands(const Schedule& schedule, const Plan& plan, Rank rank) {
  const Inspection inspection(schedule, plan, rank);
  if (auto what = inspection.header(); !what.empty())
    return Error{.code = Code::internal, .what = "the plan " + what, .peer = rank};
  for (const Action& a : plan.actions)
    if (auto what = inspection.action(a); !what.empty())
      return Error{.code = Code::internal,
                   .what = fmt::format("{}: {}", verb_name(a.verb), what),
                   .peer = rank,
                   .step = static_cast<int>(a.step)};
  return {};
}

std::string describe(const Place& place, bool written) {
  switch (place.where) {
    case Where::input: return fmt::format("input block {}", place.block);
    case Where::output: return fmt::format("output block {}", place.block);
    case Where::scratch: return fmt::format("scratch block {}", place.block);
    case Where::slot:
      return fmt::format("item {} of the message {} rank {}", place.block, written ? "to" : "from", place.peer);
    case Where::peer_input: return fmt::format("input block {} of rank {}", place.block, place.peer);
    case Where::peer_output: return fmt::format("output block {} of rank {}", place.block, place.peer);
    case Where::peer_payload: return fmt::format("block {} in the call descriptor of rank {}", place.block, place.peer);
  }
  return "a place of an unknown kind";
}

std::string_view verb_name(Verb verb) {
  static constexpr std::string_view names[] = {"copy",    "reduce", "acquire", "commit", "peek",
                                               "release", "settle", "signal",  "wait",   "wait_descriptor"};
  const auto number = static_cast<std::size_t>(verb);
  return number < std::size(names) ? names[number] : "no verb";
}

}  // namespace tutti::proof
