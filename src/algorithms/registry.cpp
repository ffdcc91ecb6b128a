// Which algorithms there are: the table made from list.inc.
#include <array>

#include "algorithms/algorithm.h"

namespace tutti {
namespace {

constexpr std::array all = {
#define ALGORITHM(x) &algorithm::x,
#include "algorithms/list.inc"
#undef ALGORITHM
};

}  // namespace

std::span<const Algorithm* const> algorithms() {
  return all;
}

const Algorithm* find_algorithm(std::string_view name, const Shape& shape) {
  for (const Algorithm* algorithm : all)
    if (algorithm->name == name && algorithm->supports(shape)) return algorithm;
  return nullptr;
}

bool serves(const Algorithm& algorithm, const Shape& shape, Reach reach) {
  if (!algorithm.supports(shape)) return false;
  return reach == Reach::fifo || (algorithm.carried_by && algorithm.carried_by(shape.collective, reach));
}

}  // namespace tutti
