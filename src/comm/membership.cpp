#include "comm/membership.h"

#include <fmt/format.h>

namespace tutti {

std::string Membership::describe(Rank of) const {
  const Peer& peer = peers[static_cast<std::size_t>(of)];
  return fmt::format("rank {}/{} (process {} on {})", of, ranks, peer.pid, peer.host);
}

Shape Membership::with_levels(const Shape& shape) const {
  Shape whole = shape;
  bool several = false;
  for (Rank one = 0; one < ranks; ++one) several = several || hosts[static_cast<std::size_t>(one)] != one;
  if (spans_hosts() && several) whole.levels = {hosts};
  return whole;
}

}  // namespace tutti
