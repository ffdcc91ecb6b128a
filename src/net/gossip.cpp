#include "net/gossip.h"

#include <algorithm>
#include <utility>

namespace tutti {

bool RankSet::add(int rank) {
  if (rank < 0 || rank >= limits::ranks_max || has(rank)) return false;
  const auto at = static_cast<std::size_t>(rank) / 8;
  if (at >= bits_.size()) bits_.resize(at + 1);
  bits_[at] |= std::byte{1} << (rank % 8);
  return true;
}

bool RankSet::has(int rank) const {
  const auto at = static_cast<std::size_t>(rank) / 8;
  return rank >= 0 && at < bits_.size() && (bits_[at] & std::byte{1} << (rank % 8)) != std::byte{0};
}

std::vector<int> RankSet::ranks() const {
  std::vector<int> all;
  for (int rank = 0; rank < static_cast<int>(bits_.size() * 8); ++rank)
    if (has(rank)) all.push_back(rank);
  return all;
}

Gossip::Cause& Gossip::cause_of(const GoneRank& gone) {
  const int culprit = gone.culprit >= 0 ? gone.culprit : gone.rank;
  const auto known = std::ranges::find(causes_, culprit, &Cause::culprit);
  if (known != causes_.end()) return *known;
  if (causes_.size() == causes_max) return causes_.back();
  return causes_.emplace_back(Cause{.culprit = culprit, .words = gone.words.substr(0, words_max), .ranks = {}});
}

bool Gossip::add(const GoneRank& gone) {
  if (gone.left && (gone_.has(gone.rank) || !left_.add(gone.rank))) return false;
  if (!gone.left && !gone_.add(gone.rank)) return false;
  if (!gone.left) cause_of(gone).ranks.add(gone.rank);
  ++size_;
  news_ = true;
  return true;
}

bool Gossip::merge(std::span<const std::byte> told, const std::function<bool(int rank)>& speaks_for_itself) {
  ByteReader reader(told);
  const RankSet left(reader.sized(RankSet::bytes_max));
  const auto count = reader.number<std::uint32_t>();
  if (count > causes_max) return false;
  std::vector<Cause> causes(count);
  for (Cause& cause : causes) {
    cause.culprit = reader.number<std::int32_t>();
    cause.ranks = RankSet(reader.sized(RankSet::bytes_max));
    cause.words = reader.text(words_max);
  }
  if (!reader.done()) return false;
  const auto hear = [&](const GoneRank& gone) {
    if (add(gone) && !speaks_for_itself(gone.rank)) unread_.push_back(gone);
  };
  for (const int rank : left.ranks()) hear({.rank = rank, .left = true});
  for (const Cause& cause : causes)
    for (const int rank : cause.ranks.ranks()) hear({.rank = rank, .culprit = cause.culprit, .words = cause.words});
  return true;
}

std::optional<Bytes> Gossip::take_message() {
  if (!std::exchange(news_, false)) return std::nullopt;
  ByteWriter writer;
  writer.sized(left_.bytes());
  writer.number(static_cast<std::uint32_t>(causes_.size()));
  for (const Cause& cause : causes_) {
    writer.number(static_cast<std::int32_t>(cause.culprit));
    writer.sized(cause.ranks.bytes());
    writer.text(cause.words);
  }
  return std::move(writer).take();
}

}  // namespace tutti
