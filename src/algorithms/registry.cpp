// The list of all algorithms: tables made from list.inc.
#include <algorithm>
#include <array>
#include <cassert>
#include <vector>

#include <fmt/format.h>

#include "algorithms/algorithm.h"

namespace tutti {
namespace {

constexpr std::array all_families = {
#define ALGORITHM(x) &algorithm::x,
#include "algorithms/list.inc"
#undef ALGORITHM
};

std::vector<Algorithm> members() {
  std::vector<Algorithm> all;
  for (const Family* family : all_families) {
    if (family->values.empty()) all.push_back({family, 0, std::string(family->name)});
    for (const int value : family->values) all.push_back({family, value, fmt::format("{}/{}", family->name, value)});
  }
  return all;
}

}  // namespace

std::span<const Family* const> families() {
  return all_families;
}

std::span<const Algorithm> algorithms() {
  static const std::vector<Algorithm> all = members();
  return all;
}

const Algorithm& member(const Family& family) {
  const auto found = std::ranges::find(algorithms(), &family, &Algorithm::family);
  assert(found != algorithms().end());
  return *found;
}

const Algorithm* find_algorithm(std::string_view name, const Shape& shape) {
  for (const Algorithm& algorithm : algorithms())
    if ((algorithm.name == name || algorithm.family->name == name) && algorithm.supports(shape)) return &algorithm;
  return nullptr;
}

bool serves(const Algorithm& algorithm, const Shape& shape, Access access) {
  if (!algorithm.supports(shape)) return false;
  const auto carried_by = algorithm.family->carried_by;
  return access == Access::slots || (carried_by != nullptr && carried_by(shape.collective, access));
}

}  // namespace tutti
