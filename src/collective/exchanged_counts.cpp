#include "collective/exchanged_counts.h"

#include <span>

namespace tutti {

SmallGather::SmallGather(Communicator& communicator, std::span<const std::byte> mine, std::uint64_t sequence)
    : mine_(mine.begin(), mine.end()), all_(mine.size() * static_cast<std::size_t>(communicator.ranks())) {
  const Shape shape{.collective = Collective::all_gather, .ranks = communicator.ranks()};
  const Plan& plan = communicator.plans().of(shape, Access::slots, mine_.size(), /*counts=*/false).plan;
  scratch_.resize(static_cast<std::size_t>(plan.scratch_groups) * mine_.size());
  binding_.input = mine_.data();
  binding_.output = all_.data();
  binding_.scratch = scratch_.data();
  binding_.split = Split(mine_.size(), 1, plan.parts);
  binding_.split.tile(communicator.links().channels().slot_bytes(), plan.items_max);
  binding_.sequence = sequence;
  run_.emplace(plan, binding_, communicator.links().context());
}

ExchangedCounts::ExchangedCounts(Communicator& communicator, const Request& request, std::uint64_t sequence)
    : communicator_(communicator), request_(request), sequence_(sequence) {
  gather_.emplace(communicator, std::as_bytes(std::span(&request.layout->line, 1)), sequence);
}

Result<Progress> ExchangedCounts::advance() {
  auto progress = gather_->advance();
  if (!progress || *progress != Progress::done) return progress;
  if (all_) return disagreement();
  return compare();
}

Result<Progress> ExchangedCounts::compare() {
  CountsTally tally;
  for (Rank rank = 0; rank < communicator_.ranks(); ++rank) tally.add(gather_->of(rank).data());
  if (tally.balanced()) {
    largest_ = TUTTI_TRY(tally.largest(size_of(request_.type)));
    return Progress::done;
  }
  std::vector<Share> shares;
  for (Rank peer = 0; peer < communicator_.ranks(); ++peer)
    shares.push_back(share_with(request_, *request_.layout, peer));
  gather_.emplace(communicator_, std::as_bytes(std::span(shares)), sequence_);
  all_ = true;
  return Progress::moved;
}

Error ExchangedCounts::disagreement() const {
  std::vector<std::span<const Share>> shares_of;
  for (Rank rank = 0; rank < communicator_.ranks(); ++rank)
    shares_of.emplace_back(reinterpret_cast<const Share*>(gather_->of(rank).data()), communicator_.ranks());
  return counts_mismatch(shares_of, request_);
}

}  // namespace tutti
