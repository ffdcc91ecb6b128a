// The body that executes a plan: a block serves one channel of one rank and carries out the plan's actions, tile by
// tile.
//
// It does the same as src/exec/run.cpp on hosts, with two differences: actions that a plan marks as parallel (such as
// flags to all peers) are carried out in parallel, by a thread each; and where ranks are in other launches, they
// compare their calls first.
#pragma once

#include <cstddef>
#include <type_traits>

#include "kernels/addresses.h"
#include "kernels/block.h"
#include "kernels/entries.h"
#include "kernels/entry_barrier.h"
#include "kernels/exchange.h"
#include "kernels/extent.h"
#include "kernels/messages.h"
#include "kernels/pass.h"
#include "kernels/waiting.h"

namespace tutti::device {

inline constexpr int actions_held = 64;
inline constexpr int places_held = 256;

template <>
struct Shared<Body::run_plan> {
  Action actions[actions_held];  ///< the actions of the plan from `first` on
  Place places[places_held];     ///< all places, if this is enough for them
  Cut cut;
  HeldLinks links;
  Operands operands[2];  ///< of this pass and the previous one
  WaitShared waits;
  EntryBarrierShared entry_barrier;
  ExchangeShared exchange;
  MessagesShared messages;
};

template <class T, Block B>
class PlanWalk {
 public:
  TUTTI_DEVICE PlanWalk(B& b, Shared<Body::run_plan>& s, const Call& call, const BlockPart& part)
      : b_(b),
        s_(s),
        call_(call),
        rank_(part.rank),
        channel_(part.channel),
        links_(part.links),
        entry_barrier_(b, s.entry_barrier, s.links, call, part),
        addresses_(call, part.rank, s.cut, s.links, s.entry_barrier.windows) {}

  TUTTI_DEVICE void run() {
    if (call_.choose == 0 && channel_ >= call_.cut.tiles) return;  // equal on all ranks
    if (call_.checks_abort != 0)  // only one thread reads it: the word is in the host's memory
      if (b_.sync_any(b_.thread() == 0 && b_.load_relaxed(call_.abort) == AbortWord::all_ends)) return;
    s_.links.load(b_, links_, call_.ranks);
    bring_plan();
    if (call_.synchronises != 0 && !entry_barrier_.begin()) return;
    walk();
  }

 private:
  TUTTI_DEVICE const ByWindows& by_windows() const { return by_windows_of(call_, rank_); }

  TUTTI_DEVICE const Action* actions() const { return addresses_.by_windows() ? by_windows().actions : rank_.actions; }
  TUTTI_DEVICE const Place* places() const { return addresses_.by_windows() ? by_windows().places : rank_.places; }
  TUTTI_DEVICE std::uint32_t action_count() const {
    return addresses_.by_windows() ? by_windows().action_count : rank_.action_count;
  }
  TUTTI_DEVICE std::uint32_t place_count() const {
    return addresses_.by_windows() ? by_windows().place_count : rank_.place_count;
  }

  /// Carries out the actions for each tile. The first one is prepared while the ranks synchronise: what is computed for
  /// it, and its code and constants, which are loaded for the first time, cost no time then.
  TUTTI_DEVICE void walk() {
    bool has_met = call_.synchronises == 0;
    tile_ = channel_;
    for (std::uint32_t next = 0;;) {
      if (next >= action_count()) {
        next = 0;
        tile_ += call_.channels;
      }
      const bool ends = tile_ >= s_.cut.tiles || action_count() == 0;
      if (!ends) prepare(next);
      if (!has_met) {
        bool by_windows = addresses_.by_windows();
        if (!entry_barrier_.end(by_windows)) return;
        has_met = true;
        if (by_windows != addresses_.by_windows()) {
          addresses_.set_by_windows(by_windows);
          bring_plan();
          tile_ = channel_;
          next = 0;
          continue;
        }
      }
      if (ends) return;
      if (!perform(next)) return;
    }
  }

  TUTTI_DEVICE void prepare(std::uint32_t next) {
    hold(next);
    const Action& action = s_.actions[next - first_];
    if (action.verb == Verb::copy || action.verb == Verb::reduce) prepare_pass(action);
  }

  /// Carries out action `next` and those that are parallel with it, and counts `next` on. False: gave up.
  TUTTI_DEVICE bool perform(std::uint32_t& next) {
    const Action& action = s_.actions[next - first_];
    std::uint32_t parallel = action.parallel;
    if (parallel > held_ - (next - first_)) parallel = held_ - (next - first_);
    switch (action.verb) {
      case Verb::copy:
      case Verb::reduce: pass(action); break;
      case Verb::signal:
      case Verb::commit:
      case Verb::release: tell(&action, parallel); break;
      case Verb::wait:
      case Verb::acquire:
      case Verb::peek:
        if (!await(&action, parallel, next)) return false;
        break;
      case Verb::settle:                  // slots are settled when committed
      case Verb::wait_descriptor: break;  // call descriptors do not exist on devices
    }
    next += parallel;
    return true;
  }

  // What a run needs is loaded into shared memory at its beginning, at once and by different warps: each access to the
  // GPU's memory takes as long as a small call.

  TUTTI_DEVICE void bring_plan() {
    if (b_.thread() == 0) s_.cut = addresses_.by_windows() ? call_.window_cut : call_.cut;
    const std::uint32_t count = place_count();
    places_ = places();
    if (count <= places_held) {
      for (std::uint32_t i = thread_from(b_, 2); i < count; i += static_cast<std::uint32_t>(b_.threads()))
        s_.places[i] = places_[i];
      places_ = s_.places;
    }
    bring_actions(0);
  }

  TUTTI_DEVICE void bring_actions(std::uint32_t next) {
    first_ = next;
    held_ = action_count() - next < actions_held ? action_count() - next : actions_held;
    for (std::uint32_t i = thread_from(b_, 1); i < held_; i += static_cast<std::uint32_t>(b_.threads()))
      s_.actions[i] = actions()[first_ + i];
    b_.sync(Barrier::actions);
  }

  /// Loads action `next` and those after it into shared memory.
  TUTTI_DEVICE void hold(std::uint32_t next) {
    if (next >= first_ && next < first_ + held_) return;
    b_.sync(Barrier::actions);
    bring_actions(next);
  }

  /// Increments a counter of a link.
  TUTTI_DEVICE std::uint64_t one_more(std::uint32_t peer, std::uint64_t Link::*counter) {
    return s_.links.one_more(links_, peer, counter);
  }

  /// Signals, commits or releases: the block's work so far is visible to the peer, or its memory is free for the peer.
  TUTTI_DEVICE void tell(const Action* actions, std::uint32_t count) {
    publish(b_);
    for (auto i = static_cast<std::uint32_t>(b_.thread()); i < count; i += static_cast<std::uint32_t>(b_.threads())) {
      const std::uint32_t peer = actions[i].peer;
      const Link& link = s_.links.of[peer];
      switch (actions[i].verb) {
        case Verb::signal: raise(b_, link.flag_there, one_more(peer, &Link::raised)); break;
        case Verb::commit: raise(b_, link.committed_there, one_more(peer, &Link::committed)); break;
        default: raise(b_, link.released_there, one_more(peer, &Link::released)); break;
      }
    }
  }

  /// Waits for flags, free slots or messages. False: gave up.
  TUTTI_DEVICE bool await(const Action* actions, std::uint32_t count, std::uint32_t index) {
    if (actions[0].verb != Verb::wait) b_.sync(Barrier::counters);
    bool failed = false;
    for (auto i = static_cast<std::uint32_t>(b_.thread()); i < count; i += static_cast<std::uint32_t>(b_.threads())) {
      s_.waits.failed[i] = failed ? std::uint32_t{ErrorRecord::none} : await_one(actions[i]);
      failed = failed || s_.waits.failed[i] != ErrorRecord::none;
    }
    if (all_came(b_, failed)) return true;
    give_up(b_, s_.waits, call_, rank_.errors[channel_], static_cast<int>(count), [&](int i, ErrorRecord& record) {
      record.peer = actions[i].peer;
      record.action = index + static_cast<std::uint32_t>(i);
      record.step = actions[i].step;
      record.tile = static_cast<std::uint32_t>(tile_);
      record.verb = static_cast<std::uint32_t>(actions[i].verb);
    });
    return false;
  }

  TUTTI_DEVICE std::uint32_t await_one(const Action& action) {
    const Link& link = s_.links.of[action.peer];
    const std::uint64_t* word = nullptr;
    std::uint64_t wanted = 0;
    switch (action.verb) {
      case Verb::wait:
        word = link.flag_here;
        wanted = one_more(action.peer, &Link::taken);
        break;
      case Verb::peek:
        word = link.committed_here;
        wanted = link.released + 1;
        break;
      default:
        word = link.released_here;
        wanted = link.committed + 1 > call_.slots ? link.committed + 1 - call_.slots : 0;
        if constexpr (B::fault == Fault::one_slot_too_many)
          if (wanted > 0) --wanted;
        break;
    }
    if (wanted == 0) return ErrorRecord::none;
    return wait_until(b_, call_, [&] { return reached(b_, word, wanted); });
  }

  /// Computes the operands of a pass, as far as they are known before the ranks have met.
  TUTTI_DEVICE void prepare_pass(const Action& action) {
    const Extent extent = extent_of(s_.cut, action.part, tile_);
    count_ = extent.count * s_.cut.element_bytes / sizeof(T);
    const Place* const places = places_ + action.first;
    const int operands = action.sources + least(action.destinations, destinations_max);
    Operands& o = next_operands();
    for (int i = b_.thread(); i < operands; i += b_.threads()) resolve(o, i, action, places[i], extent);
  }

  TUTTI_DEVICE void pass(const Action& action) {
    Combination how{.op = call_.op,
                    .sources = action.sources,
                    .destinations = least(action.destinations, destinations_max),
                    .divisor = call_.average != 0 && action.last != 0 ? static_cast<int>(call_.ranks) : 1,
                    .scales = false,
                    .halvings = static_cast<int>(action.halvings)};
    const Place* const places = places_ + action.first;
    if (call_.scaled != 0)
      for (int i = 0; i < how.sources; ++i) how.scales = how.scales || places[i].contribution != 0;
    if constexpr (!std::is_integral_v<T>) how.weighted = call_.average != 0 && is_weighted(action, places);
    Operands& o = s_.operands[turn_];
    if (addresses_.by_windows())
      for (int i = b_.thread(); i < how.sources + how.destinations; i += b_.threads())
        addresses_.place_in_window(o, i, how.sources, places[i]);
    operands_barrier();
    if (how.sources == 1 && how.divisor == 1 && !how.scales && !how.weighted) drop_source(o, how);
    for (int done = 0;;) {
      run_pass<T>(b_, s_.operands[turn_], how, count_);
      done += how.destinations;
      if (done >= action.destinations) return;
      how = {.destinations = least(action.destinations - done, destinations_max)};
      spread(places + action.sources, done, how.destinations, extent_of(s_.cut, action.part, tile_));
    }
  }

  /// Copies to the destinations beyond those of one pass from the first.
  TUTTI_DEVICE void spread(const Place* to, int done, int now, const Extent& extent) {
    Operands& o = next_operands();
    for (int i = b_.thread(); i < now; i += b_.threads())
      o.destinations[i] = addresses_.in_window(to[done + i], extent);
    if (b_.thread() == 0) o.sources[0] = addresses_.in_window(to[0], extent);
    operands_barrier();
  }

  /// Removes a copy of a block to itself: it changes nothing, and other ranks may be reading the memory.
  TUTTI_DEVICE void drop_source(Operands& o, const Combination& how) {
    bool drops = false;
    for (int d = 0; d < how.destinations; ++d) drops = drops || o.destinations[d] == o.sources[0];
    if (!drops) return;
    b_.sync(Barrier::operands);
    for (int d = b_.thread(); d < how.destinations; d += b_.threads())
      if (o.destinations[d] == o.sources[0]) o.destinations[d] = nullptr;
    b_.sync(Barrier::operands);
  }

  TUTTI_DEVICE Operands& next_operands() {
    turn_ ^= 1;
    return s_.operands[turn_];
  }

  TUTTI_DEVICE void operands_barrier() {
    if constexpr (B::fault != Fault::no_operand_barrier) b_.sync(Barrier::operands);
  }

  TUTTI_DEVICE void resolve(Operands& o, int i, const Action& action, const Place& place, const Extent& extent) {
    if (i >= action.sources) {
      o.destinations[i - action.sources] = addresses_.written(place, extent);
      return;
    }
    o.sources[i] = addresses_.read(place, extent);
    o.scaled[i] = 0;
    if constexpr (!std::is_integral_v<T>) {
      if (call_.average != 0) {
        const auto factor = weight<T>(place.halvings);
        memcpy(&o.scalars[i], &factor, sizeof factor);
        return;
      }
    }
    if (call_.scaled == 0) return;
    const std::uint32_t owner = place.where == Where::peer_input ? place.peer : rank_.rank;
    o.scaled[i] = place.contribution;
    o.scalars[i] = addresses_.buffers_of(owner).scalar;
  }

  TUTTI_DEVICE static int least(int a, int b) { return a < b ? a : b; }

  B& b_;
  Shared<Body::run_plan>& s_;
  const Call& call_;
  const RankCall& rank_;
  std::uint32_t channel_;
  Link* links_;
  EntryBarrier<B> entry_barrier_;
  Addresses addresses_;
  const Place* places_ = nullptr;
  std::uint64_t tile_ = 0;
  std::size_t count_ = 0;  // of the pass that is prepared, in elements of T
  std::uint32_t first_ = 0;
  std::uint32_t held_ = 0;
  int turn_ = 0;
};

template <class T, Block B>
TUTTI_DEVICE void run_plan(B& b, Shared<Body::run_plan>& s, const Call& call) {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    if (call.transfers != nullptr) return Exchange<B>(b, s.exchange, s.links, s.operands, call, part_of(b, call)).run();
    if (call.message_count != 0) return Messages<B>(b, s.messages, s.links, s.operands, call, part_of(b, call)).run();
  }
  PlanWalk<T, B>(b, s, call, part_of(b, call)).run();
}

}  // namespace tutti::device
