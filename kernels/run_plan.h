// The body that executes a plan: a block serves one channel of one rank and carries out the plan's actions, tile by
// tile.
//
// It does the same as src/exec/run.cpp on hosts, with two differences: actions that a plan marks as parallel (such as
// flags to all peers) are carried out in parallel, by a thread each; and where ranks are in other launches, they
// compare their calls first.
#pragma once

#include <cstddef>
#include <type_traits>

#include "kernels/block.h"
#include "kernels/entries.h"
#include "kernels/exchange.h"
#include "kernels/extent.h"
#include "kernels/inboxes.h"
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
  std::uint64_t offers[2 * ranks_max];  ///< of the ranks' inputs and outputs, in turn
  PeerBuffers windows[ranks_max];       ///< of ranks in other launches, where they have offered them
  Link links[ranks_max];  ///< of this channel; their counters are also stored back to where they came from
  Operands operands[2];   ///< of this pass and the previous one
  WaitShared waits;
  InboxShared inboxes;
  ExchangeShared exchange;
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
        actions_(rank_.actions),
        places_(rank_.places),
        action_count_(rank_.action_count),
        place_count_(rank_.place_count) {}

  TUTTI_DEVICE void run() {
    if (call_.choose == 0 && channel_ >= call_.cut.tiles) return;  // equal on all ranks
    if (call_.table != nullptr)  // only one thread reads it: the word is in the host's memory
      if (b_.sync_any(b_.thread() == 0 && b_.load_relaxed(call_.abort) != 0)) return;
    if (call_.meet != 0 && !open()) return;
    bring();
    for (tile_ = channel_; tile_ < s_.cut.tiles; tile_ += call_.channels)
      if (!run_tile()) return;
  }

 private:
  /// All ranks make the same call, and, where it goes through windows, all have begun. False: gave up.
  TUTTI_DEVICE bool open() {
    const auto channel = static_cast<int>(channel_);
    const bool meets = call_.windows != 0 || call_.choose != 0;
    if (meets && B::fault == Fault::no_first_meeting) return true;
    Inboxes<B> inboxes(b_, s_.inboxes, call_, BlockPart{rank_, channel_, links_});
    if (!inboxes.look_up()) return false;
    inboxes.send_signature();
    if (call_.choose != 0) {
      inboxes.send_all(1, by_windows().input);
      inboxes.send_all(2, by_windows().output);
    }
    if (meets) {
      fetch(b_, s_.inboxes.links, links_, static_cast<int>(call_.ranks));
      arrive(b_, s_.inboxes.links, call_, rank_, channel);
    }
    if (!inboxes.same_call()) return false;
    if (call_.choose != 0 && !choose(inboxes)) return false;
    inboxes.close();
    if (meets && !await_all(b_, s_.waits, s_.inboxes.links, call_, rank_, channel, 0)) return false;
    if (by_windows_) find_windows();
    return true;
  }

  TUTTI_DEVICE const ByWindows& by_windows() const { return call_.by_windows[&rank_ - call_.local]; }

  /// Takes the plan through windows if all ranks have offered their buffers; each learns the same. False: gave up.
  TUTTI_DEVICE bool choose(Inboxes<B>& inboxes) {
    const ByWindows& other = by_windows();
    bool offered = other.input != Offer::none && other.output != Offer::none;
    for (auto peer = static_cast<std::uint32_t>(b_.thread()); peer < call_.ranks && !inboxes.gave_up();
         peer += static_cast<std::uint32_t>(b_.threads())) {
      if (peer == rank_.rank) continue;
      const std::uint64_t input = inboxes.receive(static_cast<int>(peer), 1);
      const std::uint64_t output = inboxes.receive(static_cast<int>(peer), 2);
      if constexpr (B::fault != Fault::windows_alone)
        offered = offered && input != Offer::none && output != Offer::none;
      s_.offers[2 * peer] = input;
      s_.offers[2 * peer + 1] = output;
    }
    if (!inboxes.none_gave_up()) return false;
    by_windows_ = !b_.sync_any(!offered);
    if (!by_windows_) return true;
    actions_ = other.actions;
    places_ = other.places;
    action_count_ = other.action_count;
    place_count_ = other.place_count;
    return true;
  }

  /// After the meeting, which orders the words of the table before those of the peers. A thread per peer.
  TUTTI_DEVICE void find_windows() {
    for (auto peer = static_cast<std::uint32_t>(b_.thread()); peer < call_.ranks;
         peer += static_cast<std::uint32_t>(b_.threads()))
      if (peer != rank_.rank)
        s_.windows[peer] = {window(peer, s_.offers[2 * peer]), window(peer, s_.offers[2 * peer + 1]), 0};
  }

  /// Where a peer's buffer is for this GPU.
  TUTTI_DEVICE std::byte* window(std::uint32_t peer, std::uint64_t offer) const {
    if (offer == Offer::none || offer == Offer::absent) return rank_.output;  // not used
    return by_windows().mapped[peer * Offer::places + Offer::place(offer)] + Offer::offset(offer);
  }

  /// False: gave up.
  TUTTI_DEVICE bool run_tile() {
    for (std::uint32_t next = 0; next < action_count_;) {
      hold(next);
      const Action& action = s_.actions[next - first_];
      std::uint32_t together = action.together;
      if (together > held_ - (next - first_)) together = held_ - (next - first_);
      switch (action.verb) {
        case Verb::copy:
        case Verb::reduce: pass(action); break;
        case Verb::signal:
        case Verb::commit:
        case Verb::release: tell(&action, together); break;
        case Verb::wait:
        case Verb::acquire:
        case Verb::peek:
          if (!await(&action, together, next)) return false;
          break;
        default: break;  // slots are settled when committed; call descriptors do not exist on devices
      }
      next += together;
    }
    return true;
  }

  /// Loads everything that the whole run needs into shared memory: each access to the GPU's memory takes as long as a
  /// small call.
  TUTTI_DEVICE void bring() {
    const auto threads = static_cast<std::uint32_t>(b_.threads());
    const auto thread = static_cast<std::uint32_t>(b_.thread());
    for (std::uint32_t i = thread; i < call_.ranks; i += threads)
      if (i != rank_.rank) s_.links[i] = links_[i];  // the link of a rank to itself has a counter that thread 0 writes
    if (thread == 0) s_.cut = by_windows_ ? call_.window_cut : call_.cut;
    if (place_count_ <= places_held) {
      for (std::uint32_t i = thread; i < place_count_; i += threads) s_.places[i] = places_[i];
      places_ = s_.places;
    }
    bring_actions(0);
  }

  TUTTI_DEVICE void bring_actions(std::uint32_t next) {
    first_ = next;
    held_ = action_count_ - next < actions_held ? action_count_ - next : actions_held;
    for (auto i = static_cast<std::uint32_t>(b_.thread()); i < held_; i += static_cast<std::uint32_t>(b_.threads()))
      s_.actions[i] = actions_[first_ + i];
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
    return links_[peer].*counter = ++(s_.links[peer].*counter);
  }

  /// Signals, commits or releases: the block's work so far is visible to the peer, or its memory is free for the peer.
  TUTTI_DEVICE void tell(const Action* actions, std::uint32_t count) {
    publish(b_);
    for (auto i = static_cast<std::uint32_t>(b_.thread()); i < count; i += static_cast<std::uint32_t>(b_.threads())) {
      const std::uint32_t peer = actions[i].peer;
      const Link& link = s_.links[peer];
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
    const Link& link = s_.links[action.peer];
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

  TUTTI_DEVICE void pass(const Action& action) {
    const Extent extent = extent_of(s_.cut, action.part, tile_);
    Combination how{.op = call_.op,
                    .sources = action.sources,
                    .destinations = least(action.destinations, destinations_max),
                    .divisor = call_.average != 0 && action.last != 0 ? static_cast<int>(call_.ranks) : 1,
                    .scales = false};
    const Place* const places = places_ + action.first;
    if (call_.scaled != 0)
      for (int i = 0; i < how.sources; ++i) how.scales = how.scales || places[i].leaf != 0;
    Operands& o = next_operands();
    for (int i = b_.thread(); i < how.sources + how.destinations; i += b_.threads())
      resolve(o, i, how.sources, places[i], extent);
    operands_barrier();
    const std::size_t count = extent.count * s_.cut.element_bytes / sizeof(T);
    if (how.sources == 1 && how.divisor == 1 && !how.scales) drop_source(o, how);
    for (int done = 0;;) {
      run_pass<T>(b_, s_.operands[turn_], how, count);
      done += how.destinations;
      if (done >= action.destinations) return;
      how = {.destinations = least(action.destinations - done, destinations_max)};
      spread(places + action.sources, done, how.destinations, extent);
    }
  }

  /// Copies to the destinations beyond those of one pass from the first.
  TUTTI_DEVICE void spread(const Place* to, int done, int now, const Extent& extent) {
    Operands& o = next_operands();
    for (int i = b_.thread(); i < now; i += b_.threads()) o.destinations[i] = written(to[done + i], extent);
    if (b_.thread() == 0) o.sources[0] = written(to[0], extent);
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

  TUTTI_DEVICE void resolve(Operands& o, int i, int sources, const Place& place, const Extent& extent) {
    if (i >= sources) {
      o.destinations[i - sources] = written(place, extent);
      return;
    }
    o.sources[i] = read(place, extent);
    const std::uint32_t owner = place.where == Where::peer_input ? place.peer : rank_.rank;
    o.scaled[i] = call_.scaled != 0 ? place.leaf : std::uint8_t{0};
    o.scalars[i] = buffers_of(owner).scalar;
  }

  TUTTI_DEVICE const std::byte* read(const Place& place, const Extent& extent) const {
    switch (place.where) {
      case Where::input: return rank_.input + offset_of(place, extent);
      case Where::peer_input: return buffers_of(place.peer).input + offset_of(place, extent);
      case Where::slot: {
        const Link& link = s_.links[place.peer];
        return link.slots_here + link.released % call_.slots * call_.slot_bytes + place.block * s_.cut.stride;
      }
      default: return written(place, extent);
    }
  }

  TUTTI_DEVICE std::byte* written(const Place& place, const Extent& extent) const {
    switch (place.where) {
      case Where::output: return rank_.output + offset_of(place, extent);
      case Where::peer_output: return buffers_of(place.peer).output + offset_of(place, extent);
      case Where::slot: {
        const Link& link = s_.links[place.peer];
        return link.slots_there + link.committed % call_.slots * call_.slot_bytes + place.block * s_.cut.stride;
      }
      default: return rank_.scratch + offset_of(place, extent);
    }
  }

  TUTTI_DEVICE PeerBuffers buffers_of(std::uint32_t rank) const {
    if (by_windows_ && rank != rank_.rank) return s_.windows[rank];
    return call_.table != nullptr ? call_.table[rank] : call_.buffers[rank];
  }

  TUTTI_DEVICE std::uint64_t offset_of(const Place& place, const Extent& extent) const {
    const std::uint32_t group = place.block / s_.cut.parts;
    return (group * s_.cut.count + extent.begin) * s_.cut.element_bytes;
  }

  TUTTI_DEVICE static int least(int a, int b) { return a < b ? a : b; }

  B& b_;
  Shared<Body::run_plan>& s_;
  const Call& call_;
  const RankCall& rank_;
  std::uint32_t channel_;
  Link* links_;
  const Action* actions_;
  const Place* places_;
  std::uint32_t action_count_;
  std::uint32_t place_count_;
  bool by_windows_ = false;
  std::uint64_t tile_ = 0;
  std::uint32_t first_ = 0;
  std::uint32_t held_ = 0;
  int turn_ = 0;
};

template <class T, Block B>
TUTTI_DEVICE void run_plan(B& b, Shared<Body::run_plan>& s, const Call& call) {
  if constexpr (std::is_same_v<T, std::uint8_t>)
    if (call.transfers != nullptr) return Exchange<B>(b, s.exchange, call, part_of(b, call)).run();
  PlanWalk<T, B>(b, s, call, part_of(b, call)).run();
}

}  // namespace tutti::device
