// The right results of a collective: by its definition, or by doing what the schedule says, step by step, on plain
// arrays.
#include "support/reference_values.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/limits.h"
#include "plan/action.h"

namespace tutti::testing {

Expected::Expected(const Schedule& schedule, Yardstick yardstick) : schedule_(schedule), yardstick_(yardstick) {
  const auto parts = static_cast<std::size_t>(schedule.parts());
  std::size_t outputs = 0;
  std::size_t cells = 0;
  for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
    const auto in =
        static_cast<std::size_t>(input_groups(schedule.collective(), schedule.ranks(), rank, schedule.root()));
    const auto out =
        static_cast<std::size_t>(output_groups(schedule.collective(), schedule.ranks(), rank, schedule.root()));
    first_.push_back(outputs);
    outputs += out * parts;
    for (const std::size_t groups : {in, out, static_cast<std::size_t>(schedule.scratch_groups())}) {
      cells_.push_back(cells);
      cells += groups * parts;
    }
  }
  first_.push_back(outputs);
  cells_.push_back(cells);
  held_.resize(cells * block_words_max);

  order_.resize(schedule_.transfers().size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::ranges::stable_sort(order_, {}, [this](std::size_t i) {
    const Transfer& t = schedule_.transfers()[i];
    return std::tuple(t.step, cell(t.to, t.dst), t.order);
  });
}

std::size_t Expected::cell(Rank rank, Ref ref) const {
  return cells_[3 * static_cast<std::size_t>(rank) + static_cast<std::size_t>(ref.buffer)] +
         static_cast<std::size_t>(ref.block);
}

void Expected::compute(const Arithmetic& arithmetic, int call, int tiles) {
  tiles_ = static_cast<std::size_t>(tiles);
  words_.assign(first_.back() * tiles_ * block_words_max, 0);
  for (int tile = 0; tile < tiles; ++tile) {
    if (yardstick_ == Yardstick::schedule)
      by_schedule(arithmetic, call, tile);
    else
      by_definition(arithmetic, call, tile);
  }
}

void Expected::contribute(const Arithmetic& arithmetic, int call, int tile) {
  std::ranges::fill(held_, 0xdeadbeefdeadbeefu);
  for (Rank rank = 0; rank < schedule_.ranks(); ++rank) {
    const std::size_t begin = cell(rank, {Buffer::input, 0});
    const int blocks = static_cast<int>(cell(rank, {Buffer::output, 0}) - begin);
    for (int block = 0; block < blocks; ++block)
      for (int word = 0; word < block_words_max; ++word) {
        const Word x = arithmetic.contribution(call, rank, block, tile, word);
        held_[(begin + static_cast<std::size_t>(block)) * block_words_max + static_cast<std::size_t>(word)] =
            arithmetic.reduces() ? arithmetic.scaled(x, rank) : x;
      }
  }
}

/// The transfers of one step, order_[begin … end): all sources are read first.
void Expected::step(const Arithmetic& arithmetic, std::size_t begin, std::size_t end) {
  const std::vector<Transfer>& transfers = schedule_.transfers();
  moving_.clear();
  for (std::size_t i = begin; i < end; ++i) {
    const Transfer& t = transfers[order_[i]];
    const Word* from = &held_[cell(t.from, t.src) * block_words_max];
    moving_.insert(moving_.end(), from, from + block_words_max);
  }
  for (std::size_t i = begin; i < end;) {
    const Transfer& first = transfers[order_[i]];
    Word* to = &held_[cell(first.to, first.dst) * block_words_max];
    std::size_t group = i;
    while (group < end && transfers[order_[group]].to == first.to && transfers[order_[group]].dst == first.dst) ++group;
    for (std::size_t word = 0; word < block_words_max; ++word) {
      Word result = moving_[(i - begin) * block_words_max + word];
      std::size_t operands = 1;  // of the pass under way
      for (std::size_t j = i + 1; j < group; ++j) {
        if (operands == limits::sources_max) result = arithmetic.rounded(result), operands = 1;
        result = arithmetic.combined(result, moving_[(j - begin) * block_words_max + word]);
        ++operands;
      }
      to[word] = operands > 1 ? arithmetic.rounded(result) : result;
    }
    i = group;
  }
}

void Expected::by_schedule(const Arithmetic& arithmetic, int call, int tile) {
  contribute(arithmetic, call, tile);
  const std::vector<Transfer>& transfers = schedule_.transfers();
  for (std::size_t begin = 0; begin < order_.size();) {
    std::size_t end = begin;
    while (end < order_.size() && transfers[order_[end]].step == transfers[order_[begin]].step) ++end;
    step(arithmetic, begin, end);
    begin = end;
  }
  const bool finish = averages(schedule_.collective()) && schedule_.ranks() > 1;
  for (Rank rank = 0; rank < schedule_.ranks(); ++rank)
    for (std::size_t block = 0; block < outputs(rank); ++block)
      for (std::size_t i = 0; i < block_words_max; ++i) {
        const Word x = held_[(cell(rank, {Buffer::output, 0}) + block) * block_words_max + i];
        word(rank, block, tile, i) = finish ? arithmetic.finished(x, halvings_of(schedule_.ranks())) : x;
      }
}

void Expected::by_definition(const Arithmetic& arithmetic, int call, int tile) {
  for (Rank rank = 0; rank < schedule_.ranks(); ++rank)
    for (std::size_t block = 0; block < outputs(rank); ++block)
      for (int i = 0; i < block_words_max; ++i)
        word(rank, block, tile, static_cast<std::size_t>(i)) =
            defined(arithmetic, call, rank, static_cast<int>(block), tile, i);
}

Word Expected::defined(const Arithmetic& arithmetic, int call, Rank rank, int block, int tile, int word) const {
  const int parts = schedule_.parts();
  const int group = block / parts;
  const int own = rank * parts + block % parts;
  switch (schedule_.collective()) {
    case Collective::broadcast: return arithmetic.contribution(call, schedule_.root(), block, tile, word);
    case Collective::scatter: return arithmetic.contribution(call, schedule_.root(), own, tile, word);
    case Collective::all_to_all: return arithmetic.contribution(call, group, own, tile, word);
    case Collective::all_gather:
    case Collective::gather:
    case Collective::barrier: return arithmetic.contribution(call, group, block % parts, tile, word);
    case Collective::all_reduce:
    case Collective::reduce:
    case Collective::reduce_scatter:
    case Collective::scan:
    case Collective::ex_scan: break;
  }
  const int of_input = schedule_.collective() == Collective::reduce_scatter ? own : block;
  Word sum = 0;
  const int combined = ranks_combined(schedule_.collective(), schedule_.ranks(), rank);
  for (Rank from = 0; from < combined; ++from)
    sum += arithmetic.scaled(arithmetic.contribution(call, from, of_input, tile, word), from);
  const bool finish = averages(schedule_.collective()) && schedule_.ranks() > 1;
  return finish ? arithmetic.finished(sum, halvings_of(schedule_.ranks())) : sum;
}

}  // namespace tutti::testing
