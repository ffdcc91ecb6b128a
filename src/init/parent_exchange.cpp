#include "init/parent_exchange.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/printable.h"
#include "collective/host_collective.h"

namespace tutti {

void ParentExchange::exchange(Blob mine) {
  contribution_ = std::move(mine);
  mine_ = {.state = State::contributes, .bytes = static_cast<std::uint32_t>(contribution_.size())};
  complete_ = false;
}

Result<bool> ParentExchange::advance() {
  if (failure_) return *failure_;
  return complete_;
}

Result<void> ParentExchange::look() {
  if (failure_) return *failure_;
  return {};
}

void ParentExchange::end(const std::optional<Error>& error) {
  contribution_.clear();
  mine_ = {.state = error ? State::failed : State::ended};
  if (!error) return;
  const std::string text = error->text();
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  contribution_.assign(bytes, bytes + std::min(text.size(), first_bytes));
  mine_.bytes = static_cast<std::uint32_t>(contribution_.size());
  mine_.code = static_cast<std::uint32_t>(error->code);
}

/// All-gathers blocks of so many bytes, which `sent_` has been filled with.
void ParentExchange::begin(std::size_t bytes_each) {
  received_.resize(bytes_each * static_cast<std::size_t>(parent_.ranks()));
  request_ = {
      .collective = Collective::all_gather, .input = sent_.data(), .output = received_.data(), .count = bytes_each};
  make_host_collective(call_, parent_, request_);
}

Result<Progress> ParentExchange::turn() {
  if (!call_) {
    if (mine_.state == State::idle) return Progress::blocked;
    sent_.assign(block_bytes, std::byte{});
    std::memcpy(sent_.data(), &mine_, sizeof mine_);
    const std::size_t first = std::min(contribution_.size(), first_bytes);
    if (first > 0) std::memcpy(sent_.data() + sizeof mine_, contribution_.data(), first);
    begin(block_bytes);
  }
  auto progress = call_->advance();
  if (!progress || *progress != Progress::done) return progress;
  if (!in_rest_) {
    TUTTI_TRY(read_heads());
    if (rest_bytes_ > 0) {
      in_rest_ = true;
      sent_.assign(rest_bytes_, std::byte{});
      if (contribution_.size() > first_bytes)
        std::memcpy(sent_.data(), contribution_.data() + first_bytes, contribution_.size() - first_bytes);
      call_.reset();
      begin(rest_bytes_);
      return Progress::moved;
    }
  } else {
    for (std::size_t rank = 0; rank < heads_.size(); ++rank) {
      const std::byte* const rest = received_.data() + rank * rest_bytes_;
      if (heads_[rank].bytes > first_bytes)
        blobs_[rank].insert(blobs_[rank].end(), rest, rest + (heads_[rank].bytes - first_bytes));
    }
    in_rest_ = false;
  }
  call_.reset();
  take();
  return all_ended() ? Progress::done : Progress::moved;
}

/// Errors: remote (a rank says what cannot be).
Result<void> ParentExchange::read_heads() {
  const auto ranks = static_cast<std::size_t>(parent_.ranks());
  heads_.resize(ranks);
  blobs_.assign(ranks, {});
  rest_bytes_ = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::byte* const block = received_.data() + rank * block_bytes;
    Head& head = heads_[rank];
    std::memcpy(&head, block, sizeof head);
    const std::size_t most = head.state == State::failed ? first_bytes : BootstrapLimits{}.blob_bytes_max;
    if (!head.state.checked() || head.state == State::idle || head.bytes > most)
      return remote_error("a rank's part in an exchange cannot be read", static_cast<Rank>(rank));
    const std::size_t first = std::min<std::size_t>(head.bytes, first_bytes);
    blobs_[rank].assign(block + sizeof head, block + sizeof head + first);
    rest_bytes_ = std::max(rest_bytes_, head.bytes - first);
  }
  return {};
}

bool ParentExchange::all_ended() const {
  return std::ranges::all_of(
      heads_, [](const Head& head) { return head.state == State::ended || head.state == State::failed; });
}

/// Of this rank's members; what other ranks exchanged among themselves is dropped.
void ParentExchange::take() {
  if (mine_.state != State::contributes) return;
  mine_.state = State::idle;
  gathered_.clear();
  for (std::size_t place = 0; place < members_.size(); ++place) {
    const auto rank = static_cast<std::size_t>(members_[place]);
    const Head& head = heads_[rank];
    if (head.state != State::contributes && !failure_) {
      const auto* const text = reinterpret_cast<const char*>(blobs_[rank].data());
      const std::string why = head.state == State::failed
                                  ? printable({text, blobs_[rank].size()}, first_bytes, Lines::several)
                                  : "it has left";
      failure_ = Error{.code = head.state == State::failed ? received_code(head.code) : Code::remote,
                       .what = fmt::format("rank {} could not join: {}", place, why)};
    }
    gathered_.push_back(std::move(blobs_[rank]));
  }
  complete_ = true;
}

}  // namespace tutti
