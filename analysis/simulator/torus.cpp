// Links and paths of a torus.
#include <fmt/format.h>

#include <utility>

#include "analysis/simulator/messages.h"
#include "analysis/simulator/topology.h"

namespace tutti::simulator {
Torus::Torus(std::vector<int> sizes, Link link) : sizes_(std::move(sizes)), strides_(sizes_.size()) {
  for (std::size_t d = sizes_.size(); d-- > 0; ranks_ *= sizes_[d]) strides_[d] = ranks_;
  links_.assign(index(ranks_) * sizes_.size() * 2, link);
}

void Torus::route(Rank from, Rank to, std::vector<int>& path) const {
  path.clear();
  Rank at = from;
  const int dimensions = static_cast<int>(sizes_.size());
  for (int d = 0; d < dimensions; ++d) {
    const int size = sizes_[index(d)], stride = strides_[index(d)];
    int c = at / stride % size;
    const int up = (to / stride % size - c + size) % size;
    const bool down = 2 * up > size;
    for (int hops = down ? size - up : up; hops > 0; --hops) {
      path.push_back((at * dimensions + d) * 2 + (down ? 1 : 0));
      const int next = (c + (down ? size - 1 : 1)) % size;
      at += (next - c) * stride;
      c = next;
    }
  }
}

std::string Torus::link_name(int link) const {
  const int dimensions = static_cast<int>(sizes_.size());
  return fmt::format("rank {}, {} in dimension {}", link / 2 / dimensions, link % 2 == 0 ? "up" : "down",
                     link / 2 % dimensions);
}

std::vector<Cut> Torus::cuts() const {
  int wide = 0;
  for (const int size : sizes_) wide += size > 1 ? 1 : 0;
  return {{.groups = ranks_, .bytes_per_ns = 2 * wide * links_[0].bytes_per_ns}};
}

}  // namespace tutti::simulator
