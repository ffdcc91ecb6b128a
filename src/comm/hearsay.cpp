#include "comm/hearsay.h"

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

bool Hearsay::add(const GoneRank& gone) {
  if (gone.left) return !gone_.has(gone.rank) && left_.add(gone.rank);
  if (!gone_.add(gone.rank)) return false;
  if (culprit_ >= 0) return true;
  culprit_ = gone.culprit >= 0 ? gone.culprit : gone.rank;
  words_ = gone.words.substr(0, words_max);
  return true;
}

std::vector<GoneRank> Hearsay::merge(const Hearsay& other) {
  std::vector<GoneRank> news;
  const auto take = [&](const GoneRank& gone) {
    if (add(gone)) news.push_back(gone);
  };
  for (const int rank : other.left_.ranks()) take({.rank = rank, .left = true});
  for (const int rank : other.gone_.ranks()) take({.rank = rank, .culprit = other.culprit_, .words = other.words_});
  return news;
}

Bytes Hearsay::write() const {
  ByteWriter writer;
  writer.number(static_cast<std::int32_t>(culprit_));
  writer.sized(left_.bytes());
  writer.sized(gone_.bytes());
  writer.text(words_);
  return std::move(writer).take();
}

std::optional<Hearsay> Hearsay::read(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  Hearsay heard;
  heard.culprit_ = reader.number<std::int32_t>();
  heard.left_ = RankSet::of(reader.sized(RankSet::bytes_max));
  heard.gone_ = RankSet::of(reader.sized(RankSet::bytes_max));
  heard.words_ = reader.text(words_max);
  if (!reader.done()) return std::nullopt;
  return heard;
}

}  // namespace tutti
