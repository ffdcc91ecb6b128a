// Blocks that ranks of a host read from each other's buffers: who may read what, and when it may change.
#include <algorithm>

#include "analysis/proof/check_machine.h"
#include "analysis/proof/check_operands.h"
#include "plan/outlasting.h"

namespace tutti::proof {

/// `place`: index of `p` in the plan.
bool Machine::offers(const Channel& l, const Place& p, std::size_t place) const {
  const std::vector<bool>& outlasts = plan(l).outlasts;
  if (hosts_.empty() || p.where != Where::slot || place >= outlasts.size() || !outlasts[place]) return false;
  return hosts_[static_cast<std::size_t>(l.rank)] == hosts_[p.peer];
}

/// After the pass, when its own destinations hold their blocks.
Result<void> Machine::offer_blocks(Channel& l, const Action& a) {
  const Place* const kept = lasting_place(plan(l), a, multiplied_ && adds(l));
  const auto to = plan(l).destinations(a);
  for (std::size_t i = 0; kept != nullptr && i < to.size(); ++i) {
    if (!offers(l, to[i], a.first + a.sources + i)) continue;
    Slots& slots = slots_[static_cast<std::size_t>(l.channel)];
    Slots::Link& link = slots.link(l.rank, to[i].peer);
    Slots::Item& item = slots.item(link, link.committed, to[i].block);
    item.offered = &cell(l, *kept);
    item.offered_term = item.offered->term;
    if (!offers_what_it_stores(l, item)) return wrong(l, describe(to[i], true) + ": another block is offered");
    offered_[static_cast<std::size_t>(l.rank) * channels_per_rank_ + l.channel].push_back(
        {.peer = Rank{to[i].peer}, .message = link.committed, .cell = item.offered});
  }
  return {};
}

/// Reading a contribution scales it, which changes nothing where sums are not pre-multiplied.
bool Machine::offers_what_it_stores(const Channel& l, const Slots::Item& item) {
  if (item.offered_term == item.cell.term) return true;
  Terms& terms = *stage(l).program.terms;
  return adds(l) && !multiplied_ && terms.is_raw(item.offered_term) &&
         terms.scaled(item.offered_term) == item.cell.term;
}

/// Whether the message's receiver has released it; then the sender knows it.
bool Machine::take_back_offer(Channel& l, Rank peer, std::uint32_t message) {
  Slots& slots = slots_[static_cast<std::size_t>(l.channel)];
  Slots::Link& link = slots.link(l.rank, peer);
  if (link.released <= message) return false;
  clocks_.join(l.now, slots.message(link, link.released - 1).freed);
  return true;
}

/// False while a peer is yet to read a block that the pass changes.
bool Machine::may_change(Channel& l, const Action& a) {
  auto& offered = offered_[static_cast<std::size_t>(l.rank) * channels_per_rank_ + l.channel];
  if (offered.empty()) return true;
  for (const Place& p : plan(l).destinations(a)) {
    if (p.where >= Where::slot) continue;
    if (a.verb == Verb::copy && left_alone(l, plan(l).sources(a)[0], p)) continue;
    const Cell* const changed = &cell(l, p);
    std::erase_if(offered,
                  [&](const Offered& one) { return one.cell == changed && take_back_offer(l, one.peer, one.message); });
    if (std::ranges::any_of(offered, [&](const Offered& one) { return one.cell == changed; })) return false;
  }
  return true;
}

bool Machine::all_offers_read(Channel& l) {
  auto& offered = offered_[static_cast<std::size_t>(l.rank) * channels_per_rank_ + l.channel];
  std::erase_if(offered, [&](const Offered& one) { return take_back_offer(l, one.peer, one.message); });
  return offered.empty();
}

}  // namespace tutti::proof
