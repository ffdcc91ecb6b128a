#include "comm/transports/transports.h"

#include <iterator>

namespace tutti {

namespace {

/// Best transport first; the last one connects any pair.
constexpr const TransportEntry* list[] = {
#define TRANSPORT(x) &transports::x,
#include "comm/transports/list.inc"
#undef TRANSPORT
};

}  // namespace

Result<std::uint32_t> usable_transports(Process& process) {
  std::uint32_t usable = 0;
  for (std::size_t i = 0; i < std::size(list); ++i) {
    auto can = TUTTI_TRY(list[i]->usable(process));
    if (can) usable |= 1u << i;
  }
  return usable;
}

std::optional<SocketRates> wire_rates(Process& process, std::uint32_t common) {
  for (std::size_t i = 0; i < std::size(list); ++i)
    if ((common >> i & 1) != 0 && list[i]->rates != nullptr) return list[i]->rates(process);
  return std::nullopt;
}

Transports::Transports(Process& process, const Membership& members) : members_(members) {
  for (std::size_t i = 0; i < std::size(list); ++i) all_.push_back(list[i]->make(process, members, 1u << i));
}

std::size_t Transports::index_to(Rank peer) const {
  const std::uint32_t both = members_.peers[static_cast<std::size_t>(members_.rank)].transports &
                             members_.peers[static_cast<std::size_t>(peer)].transports;
  for (std::size_t i = 0; i + 1 < all_.size(); ++i)
    if ((both >> i & 1) != 0 && all_[i]->connects(peer)) return i;
  return all_.size() - 1;
}

}  // namespace tutti
