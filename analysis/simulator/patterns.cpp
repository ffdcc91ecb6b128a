#include "analysis/simulator/patterns.h"

#include <bit>
#include <optional>
#include <utility>

#include "algorithms/butterfly.h"
#include "algorithms/skips.h"

namespace tutti::simulator {
namespace {

/// One message of every rank, to the rank `distance` ahead or, if `partner` is given, to that one.
struct Move {
  int offset = 0;
  int (*partner)(int i, int step, int size) = nullptr;
  int partner_step = 0;
  double bytes = 0;
  bool adds = false;
};

/// One move per step.
class Moves : public MessageSource {
 public:
  Moves(int ranks, std::vector<Move> moves) : ranks_(ranks), moves_(std::move(moves)) {}

  int endpoints() const override { return ranks_; }
  int steps() const override { return static_cast<int>(moves_.size()); }

  void messages_of(int step, std::vector<Message>& messages) override {
    messages.clear();
    messages.reserve(static_cast<std::size_t>(ranks_));
    const Move& move = moves_[static_cast<std::size_t>(step)];
    const int offset = (move.offset % ranks_ + ranks_) % ranks_;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      const Rank further = rank + offset < ranks_ ? rank + offset : rank + offset - ranks_;
      messages.push_back({.from = rank,
                          .to = move.partner ? move.partner(rank, move.partner_step, ranks_) : further,
                          .step = step,
                          .bytes = move.bytes,
                          .reduced = move.adds ? move.bytes : 0});
    }
  }

 private:
  int ranks_;
  std::vector<Move> moves_;
};

int doubling_partner(int i, int step, int) {
  return i ^ (1 << step);
}

int exchange_partner(int i, int step, int) {
  return i ^ step;
}

bool has_two_phases(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::all_gather;
}

/// The moves as a reduce-scatter; in reverse order as an all-gather; both in sequence as an all-reduce.
std::vector<Move> phases(Collective collective, const std::vector<Move>& moves) {
  std::vector<Move> all;
  if (collective != Collective::all_gather) all = moves;
  if (collective != Collective::reduce_scatter)
    for (std::size_t i = moves.size(); i-- > 0;) {
      Move back = moves[i];
      back.offset = -back.offset;
      back.adds = false;
      all.push_back(back);
    }
  return all;
}

std::optional<std::vector<Move>> ring(const Shape& shape, double bytes) {
  if (!has_two_phases(shape.collective)) return {};
  std::vector<Move> moves;
  const int rounds = shape.collective == Collective::all_reduce ? 2 : 1;
  for (int step = 0; step < rounds * (shape.ranks - 1); ++step)
    moves.push_back({.offset = 1,
                     .bytes = bytes / shape.ranks,
                     .adds = shape.collective != Collective::all_gather && step < shape.ranks - 1});
  return moves;
}

std::optional<std::vector<Move>> circulant(const Shape& shape, double bytes) {
  if (!has_two_phases(shape.collective)) return {};
  std::vector<Move> moves;
  const std::vector<int> skips = circulant_skips(shape.ranks);
  for (std::size_t i = 0; i + 1 < skips.size(); ++i)
    moves.push_back({.offset = skips[i + 1], .bytes = bytes / shape.ranks * (skips[i] - skips[i + 1]), .adds = true});
  return phases(shape.collective, moves);
}

std::optional<std::vector<Move>> dissemination(const Shape& shape, double) {
  if (shape.collective != Collective::barrier) return {};
  std::vector<Move> moves;
  for (int distance = 1; distance < shape.ranks; distance *= 2) moves.push_back({.offset = distance});
  return moves;
}

std::optional<std::vector<Move>> pairwise(const Shape& shape, double bytes) {
  if (shape.collective != Collective::all_to_all && shape.collective != Collective::reduce_scatter) return {};
  const bool adds = shape.collective == Collective::reduce_scatter;
  std::vector<Move> moves;
  const bool exchange = std::has_single_bit(static_cast<unsigned>(shape.ranks));
  for (int step = 1; step < shape.ranks; ++step)
    moves.push_back({.offset = step,
                     .partner = exchange ? exchange_partner : nullptr,
                     .partner_step = step,
                     .bytes = bytes / shape.ranks,
                     .adds = adds});
  return moves;
}

/// Partners exchange all their data.
template <auto partner, bool last_first>
std::optional<std::vector<Move>> exchange_all(const Shape& shape, double bytes) {
  const auto ranks = static_cast<unsigned>(shape.ranks);
  if (shape.collective != Collective::all_reduce || !std::has_single_bit(ranks)) return {};
  std::vector<Move> moves;
  for (int step = 0; step < std::countr_zero(ranks); ++step)
    moves.push_back({.partner = partner,
                     .partner_step = last_first ? std::countr_zero(ranks) - 1 - step : step,
                     .bytes = bytes,
                     .adds = true});
  return moves;
}

/// Partners exchange halves of their data, then, in reverse order, the results.
template <auto partner, bool all_reduce_alone>
std::optional<std::vector<Move>> exchange_halves(const Shape& shape, double bytes) {
  const auto ranks = static_cast<unsigned>(shape.ranks);
  if (!has_two_phases(shape.collective) || !std::has_single_bit(ranks)) return {};
  if (all_reduce_alone && shape.collective != Collective::all_reduce) return {};
  std::vector<Move> moves;
  for (int step = 0; step < std::countr_zero(ranks); ++step)
    moves.push_back({.partner = partner, .partner_step = step, .bytes = bytes /= 2, .adds = true});
  return phases(shape.collective, moves);
}

struct Known {
  std::string_view algorithm;
  std::optional<std::vector<Move>> (*moves)(const Shape& shape, double bytes);
};
constexpr Known known[] = {
    {"ring", ring},
    {"circulant", circulant},
    {"dissemination", dissemination},
    {"pairwise", pairwise},
    {"recursive_doubling", exchange_all<doubling_partner, false>},
    {"swing_latency", exchange_all<swing_partner, true>},
    {"halving_doubling", exchange_halves<doubling_partner, true>},
    {"swing", exchange_halves<swing_partner, false>},
    {"bine", exchange_halves<swing_partner, true>},
};

}  // namespace

std::unique_ptr<MessageSource> pattern(std::string_view algorithm, const Shape& shape, double bytes) {
  if (shape.ranks < 2) return nullptr;
  for (const Known& one : known)
    if (one.algorithm == algorithm)
      if (auto moves = one.moves(shape, bytes)) return std::make_unique<Moves>(shape.ranks, *std::move(moves));
  return nullptr;
}

}  // namespace tutti::simulator
