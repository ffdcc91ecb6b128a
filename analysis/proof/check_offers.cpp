#include "analysis/proof/check_offers.h"

#include <algorithm>
#include <utility>

#include "analysis/proof/check_operands.h"
#include "plan/outlasting.h"

namespace tutti::proof {

Offers::Offers(std::vector<int> hosts, bool multiplied, const Channels& channels, int ranks)
    : hosts_(std::move(hosts)),
      multiplied_(multiplied),
      channels_per_rank_(channels.per_rank()),
      offered_(static_cast<std::size_t>(ranks) * channels_per_rank_) {}

/// `place`: index of `p` in the plan.
bool Offers::offers(const Channel& l, const Place& p, std::size_t place) const {
  const std::vector<bool>& outlasts = l.plan().outlasts;
  if (hosts_.empty() || p.where != Where::slot || place >= outlasts.size() || !outlasts[place]) return false;
  return hosts_[static_cast<std::size_t>(l.rank)] == hosts_[p.peer];
}

Result<void> Offers::offer(const Channel& l, const Action& a, Messages& messages) {
  const Place* const kept = lasting_place(l.plan(), a, multiplied_ && l.stage->adds());
  const auto to = l.plan().destinations(a);
  for (std::size_t i = 0; kept != nullptr && i < to.size(); ++i) {
    if (!offers(l, to[i], a.first + a.sources + i)) continue;
    Slots& slots = messages.of(l);
    Slots::Link& link = slots.link(l.rank, to[i].peer);
    Slots::Item& item = slots.item(link, link.committed, to[i].block);
    item.offered = &l.cell(*kept);
    item.offered_term = item.offered->term;
    if (!offers_what_it_stores(l, item)) return l.wrong(describe(to[i], true) + ": another block is offered");
    of(l).push_back({.peer = Rank{to[i].peer}, .message = link.committed, .cell = item.offered});
  }
  return {};
}

/// Reading a contribution scales it, which changes nothing where sums are not pre-multiplied.
bool Offers::offers_what_it_stores(const Channel& l, const Slots::Item& item) const {
  if (item.offered_term == item.cell.term) return true;
  Terms& terms = l.stage->terms;
  return l.stage->adds() && !multiplied_ && terms.is_raw(item.offered_term) &&
         terms.scaled(item.offered_term) == item.cell.term;
}

bool Offers::may_change(const Channel& l, const Action& a, Messages& messages, Clocks& clocks) {
  auto& offered = of(l);
  if (offered.empty()) return true;
  for (const Place& p : l.plan().destinations(a)) {
    if (p.where >= Where::slot) continue;
    if (a.verb == Verb::copy && l.left_alone(l.plan().sources(a)[0], p)) continue;
    const Cell* const changed = &l.cell(p);
    std::erase_if(offered, [&](const Offered& one) {
      return one.cell == changed && messages.released(l, one.peer, one.message, clocks);
    });
    if (std::ranges::any_of(offered, [&](const Offered& one) { return one.cell == changed; })) return false;
  }
  return true;
}

bool Offers::all_read(const Channel& l, Messages& messages, Clocks& clocks) {
  auto& offered = of(l);
  std::erase_if(offered, [&](const Offered& one) { return messages.released(l, one.peer, one.message, clocks); });
  return offered.empty();
}

}  // namespace tutti::proof
