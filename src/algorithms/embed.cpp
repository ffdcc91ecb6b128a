// Composition: schedules over some of the ranks become part of a schedule over all ranks.
#include "algorithms/embed.h"

#include <algorithm>
#include <cassert>
#include <vector>

namespace tutti {
namespace {

void place(Schedule& outer, const Embedding& embedding, const Transfer& t) {
  const Rank from = embedding.ranks[static_cast<std::size_t>(t.from)];
  const Rank to = embedding.ranks[static_cast<std::size_t>(t.to)];
  const std::vector<Ref> sources = embedding.blocks(t.from, t.src), destinations = embedding.blocks(t.to, t.dst);
  assert(sources.size() == destinations.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (t.kind == Kind::reduce)
      outer.reduce(from, sources[i], to, destinations[i], t.order, t.inputs);
    else if (from != to || sources[i] != destinations[i])
      outer.copy(from, sources[i], to, destinations[i]);
  }
}

/// A schedule about one rank keeps the transfers of no other.
bool concerns(const Schedule& outer, const Embedding& embedding) {
  return outer.only() == Shape::everybody || std::ranges::find(embedding.ranks, outer.only()) != embedding.ranks.end();
}

}  // namespace

void embed(Schedule& outer, std::span<const Embedding> embeddings) {
  int steps = 0;
  for (const Embedding& embedding : embeddings) steps = std::max(steps, embedding.inner->steps());
  std::vector<const Embedding*> kept;
  for (const Embedding& embedding : embeddings)
    if (concerns(outer, embedding)) kept.push_back(&embedding);
  for (int step = 0; step < steps; ++step, outer.next_step())
    for (const Embedding* const embedding : kept) {
      const auto& transfers = embedding->inner->transfers();
      for (auto t = std::ranges::lower_bound(transfers, step, {}, &Transfer::step);
           t != transfers.end() && t->step == step; ++t)
        place(outer, *embedding, *t);
    }
}

}  // namespace tutti
