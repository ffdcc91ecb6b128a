#include "comm/membership.h"

#include <fmt/format.h>

namespace tutti {

std::string Membership::describe(Rank of) const {
  const Peer& peer = peers[static_cast<std::size_t>(of)];
  return fmt::format("rank {}/{} (process {} on {})", of, ranks, peer.pid, peer.host);
}

Shape Membership::with_levels(const Shape& shape) const {
  Shape whole = shape;
  whole.levels = map.levels;
  whole.order = map.order;
  whole.rings = map.rings;
  return whole;
}

}  // namespace tutti
