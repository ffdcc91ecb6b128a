// The expected results: one function per kind of result.
#include "perf/harness.h"

#include <utility>

namespace perf {
namespace {

std::vector<Piece> only_at_root(const Call& call, std::vector<Piece> pieces) {
  return call.rank == call.root ? std::move(pieces) : std::vector<Piece>{};
}

std::size_t own_block(const Call& call) {
  return static_cast<std::size_t>(call.rank) * call.count;
}

/// One piece of each rank's input, in rank order.
std::vector<Piece> one_of_each(const Call& call, std::size_t first) {
  std::vector<Piece> pieces;
  for (int rank = 0; rank < call.ranks; ++rank)
    pieces.push_back({static_cast<std::size_t>(rank) * call.count, call.count, rank, first});
  return pieces;
}

}  // namespace

std::vector<Piece> reduction(const Call& call) {
  return {{0, call.count, Pattern::kAllRanks, 0}};
}

std::vector<Piece> reduction_at_root(const Call& call) {
  return only_at_root(call, reduction(call));
}

std::vector<Piece> block_of_reduction(const Call& call) {
  return {{0, call.count, Pattern::kAllRanks, own_block(call)}};
}

std::vector<Piece> prefix(const Call& call) {
  return reduction(call);
}

std::vector<Piece> prefix_but_on_first(const Call& call) {
  return call.rank == 0 ? std::vector<Piece>{} : prefix(call);
}

std::vector<Piece> all_inputs(const Call& call) {
  return one_of_each(call, 0);
}

std::vector<Piece> all_inputs_at_root(const Call& call) {
  return only_at_root(call, all_inputs(call));
}

std::vector<Piece> input_of_root(const Call& call) {
  return {{0, call.count, call.root, 0}};
}

std::vector<Piece> block_of_root(const Call& call) {
  return {{0, call.count, call.root, own_block(call)}};
}

std::vector<Piece> block_of_everyone(const Call& call) {
  return one_of_each(call, own_block(call));
}

std::vector<Piece> input_of_previous(const Call& call) {
  return {{0, call.count, (call.rank + call.ranks - 1) % call.ranks, 0}};
}

}  // namespace perf
