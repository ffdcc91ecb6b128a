// Runs the plans of all ranks on plain numbers: blocks that are read in their sender's buffer.
#include <algorithm>

#include "support/reference_executor.h"

namespace tutti::testing {
namespace {

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

bool own(const Place& p) {
  return p.where == Where::input || p.where == Where::output || p.where == Where::scratch;
}

bool in_range(const Plan& plan, const Action& a) {
  return a.sources > 0 && std::size_t{a.first} + a.sources + a.destinations <= plan.places.size();
}

}  // namespace

/// The block that holds the same as the pass stores into messages: what it copies, if that is not scaled on the way,
/// else its first result in a buffer of the rank.
ReferenceExecutor::Operand ReferenceExecutor::kept(Channel& l, const Action& a) {
  const Plan& plan = plans_[index(l.rank)];
  const Place& first = plan.sources(a)[0];
  const bool scaled = first.contribution != 0 && arithmetic_.scales();
  if (a.verb == Verb::copy && own(first) && !scaled) return operand(l, a, first, false);
  for (const Place& p : plan.destinations(a))
    if (own(p)) return operand(l, a, p, true);
  return {};
}

/// True: the destination, an item of a message, names a block and holds nothing.
bool ReferenceExecutor::offer(Channel& l, const Action& a, std::size_t destination) {
  const Plan& plan = plans_[index(l.rank)];
  const Place& p = plan.destinations(a)[destination];
  if (p.where != Where::slot) return false;
  Link& to = link(l, l.rank, p.peer);
  Operand& named = to.offered[to.committed % ring_ * slot_words_ / block_words_max + p.block];
  named = {};
  const std::size_t place = a.first + a.sources + destination;
  const bool together = !trial_.hosts.empty() && trial_.hosts[index(l.rank)] == trial_.hosts[index(p.peer)];
  if (!together || place >= plan.outlasts.size() || !plan.outlasts[place]) return false;
  const Operand block = kept(l, a);
  if (!block.at) return false;
  named = {block.at, block.words, Rank{p.peer}};
  l.offered.push_back({.peer = Rank{p.peer}, .message = to.committed, .at = block.at});
  return true;
}

/// Whether someone is yet to read a block at this address; null: any.
bool ReferenceExecutor::waits_for_readers(Channel& l, const Word* changed) {
  std::erase_if(l.offered, [&](const Offered& one) { return link(l, l.rank, one.peer).released > one.message; });
  return std::ranges::any_of(l.offered, [&](const Offered& one) { return !changed || one.at == changed; });
}

/// False: the pass would change a block that a receiver has not read yet. A block copied onto itself stays as it is.
bool ReferenceExecutor::may_change(Channel& l, const Action& a) {
  const Plan& plan = plans_[index(l.rank)];
  if (l.offered.empty() || !in_range(plan, a)) return true;
  const Place& first = plan.sources(a)[0];
  const bool scaled = first.contribution != 0 && arithmetic_.scales();
  const Word* const copied = a.verb == Verb::copy && own(first) && !scaled ? operand(l, a, first, false).at : nullptr;
  return std::ranges::none_of(plan.destinations(a), [&](const Place& p) {
    const Word* const changed = own(p) ? operand(l, a, p, true).at : nullptr;
    return changed && changed != copied && waits_for_readers(l, changed);
  });
}

}  // namespace tutti::testing
