// The protocol of a collective where ranks have no call descriptors: connections say what call they carry.
#include <cstring>

#include "call/mismatch.h"
#include "collective/collective_call.h"
#include "comm/peer_failure.h"

namespace tutti {

/// Nobody's line can be read by all: calls go by fifos, each connection says what call it carries (signed_fifo.h), and
/// counts are told in a round of their own.
Result<Progress> CollectiveCall::enter_across_hosts() {
  communicator_.sign(sequence_, request_.signature());
  if (auto staged = stage_input(); !staged) return std::move(staged).error();
  if (request_.layout) {
    told_.emplace(communicator_, std::as_bytes(std::span(&request_.layout->line, 1)), sequence_);
    state_ = State::gather;
    return Progress::moved;
  }
  if (auto ready = prepare(Access::slots); !ready) return std::move(ready).error();
  state_ = State::run;
  return Progress::moved;
}

Result<Progress> CollectiveCall::gather_across_hosts() {
  auto progress = told_->advance();
  if (!progress || *progress != Progress::done) return progress;
  if (all_told_) {
    std::vector<std::span<const Share>> shares_of;
    for (Rank rank = 0; rank < shape_.ranks; ++rank)
      shares_of.emplace_back(reinterpret_cast<const Share*>(told_->of(rank).data()), shape_.ranks);
    return counts_mismatch(shares_of, request_);
  }
  for (Rank rank = 0; rank < shape_.ranks; ++rank) {
    CountsDescriptor counts;
    std::memcpy(&counts, told_->of(rank).data(), sizeof counts);
    tally_.add(counts);
  }
  if (!tally_.balanced()) {  // as all ranks find: so all tell each other all
    std::vector<Share> shares;
    for (Rank peer = 0; peer < shape_.ranks; ++peer)
      shares.push_back(share_with(request_, *request_.layout, communicator_.rank(), peer));
    told_.emplace(communicator_, std::as_bytes(std::span(shares)), sequence_);
    all_told_ = true;
    return Progress::moved;
  }
  told_.reset();
  if (auto sized = take_largest_count(); !sized) return std::move(sized).error();
  if (auto ready = prepare(Access::slots); !ready) return std::move(ready).error();
  state_ = State::run;
  return Progress::moved;
}

/// Ranks of other hosts that left close their connections; those of this one are seen to have left. What they had sent
/// before is taken first.
Result<void> CollectiveCall::look_for_leavers() {
  if (state_ != State::run || !run_) return {};
  const int rank = run_->waiting_for().peer;
  if (rank < 0) return {};
  if (communicator_.members().peers[rank].remote() || !has_left(communicator_, rank)) return {};
  auto moved = run_->advance();
  if (!moved) return std::move(moved).error();
  if (*moved == Progress::done) state_ = State::done;
  if (*moved != Progress::blocked || run_->waiting_for().peer != rank) return {};
  return left_before(communicator_, rank, where());
}

}  // namespace tutti
