// The phases of ranks on several hosts: where each can be called, and which addresses work.
#include <algorithm>

#include "init/phases/phases.h"

namespace tutti::start {
namespace {

/// Begins to listen. `told`: what the others are to be told.
Result<void> listen(Facts& facts, PeerAddresses& told) {
  Process& process = facts.process;
  Membership& members = facts.members;
  auto key = TUTTI_TRY(ConnectionKey::of(facts.options.id.secret));
  members.sockets = static_cast<int>(process.config.integer("TUTTI_SOCKET_NSOCKS"));
  members.arrivals = std::make_shared<Arrivals>(process.system, key,
                                                Arrivals::Bounds{.rank = facts.rank(),
                                                                 .ranks = facts.ranks(),
                                                                 .channels = area_shape(facts).channels,
                                                                 .sockets = members.sockets});
  auto server = TUTTI_TRY(process.network.connections());
  server->expect(members.arrivals);
  auto own = TUTTI_TRY(process.network.interfaces.get(process.system, process.config, process.log));
  for (std::size_t i = 0; i < server->addresses().size() && i < PeerAddresses::addresses_max; ++i) {
    const SocketAddress& at = server->addresses()[i];
    auto& address = told.addresses[i];
    put_text(address.host, at.host);
    address.port = at.port;
    const auto known = std::ranges::find(own, at.host, &OwnAddress::host);
    if (known == own.end()) continue;
    address.nic = static_cast<std::uint16_t>(known->nic);
    address.mbps = known->mbps;
    address.mtu = mtu_of(known->interface);
    put_text(address.interface, known->interface);
  }
  return {};
}

}  // namespace

Result<Progress> Carrier::wait(Facts& facts) {
  Process& process = facts.process;
  return process.network.interfaces.settled(process.system, process.config, process.log) ? Progress::done
                                                                                         : Progress::blocked;
}

Result<Blob> Addresses::contribution(Facts& facts) {
  PeerAddresses told;
  if (!facts.trouble) facts.note(listen(facts, told));
  return to_blob(told);
}

Result<bool> Addresses::take(Facts& facts, const std::vector<Blob>& gathered) {
  for (Rank rank = 0; rank < facts.ranks(); ++rank) {
    auto addresses = read_peer_addresses(gathered[rank]);
    if (!addresses) {
      facts.note(std::move(addresses).error().at_peer(rank));
      return false;
    }
    // That rank has failed. Its result gives the reason, and no rank should end the start with less information before
    // that.
    facts.rank_failed = facts.rank_failed || addresses->empty();
    if (!facts.members.peers.empty()) facts.members.peers[rank].addresses = *std::move(addresses);
  }
  return false;
}

Result<void> Proving::begin(Facts& facts) {
  facts.addresses.emplace(facts.process, facts.members, facts.networks);
  return {};
}

/// Without descriptors it reaches nobody, or nobody reaches it.
Result<Progress> Proving::wait(Facts& facts) {
  const bool proven = facts.addresses->advance();
  auto lacked = facts.addresses->lacked();
  if (!lacked) lacked = facts.members.arrivals->held_up();
  if (lacked) return end_at_once(facts, *std::move(lacked));
  return proven ? Progress::done : Progress::blocked;
}

/// A byte that says whether this rank has had no error, then the map.
Result<Blob> Comparing::contribution(Facts& facts) {
  Blob blob(1, static_cast<std::byte>(facts.addresses ? 1 : 0));
  if (facts.addresses) {
    const Blob map = facts.addresses->told();
    blob.insert(blob.end(), map.begin(), map.end());
  }
  return blob;
}

Result<bool> Comparing::take(Facts& facts, const std::vector<Blob>& gathered) {
  std::vector<Blob> maps = gathered;
  for (Blob& map : maps) {
    facts.rank_failed = facts.rank_failed || map.empty() || map.front() == std::byte{0};
    if (!map.empty()) map.erase(map.begin());
  }
  if (!facts.rank_failed) facts.note(facts.addresses->keep_proven(maps, facts.members.peers));
  facts.addresses.reset();
  return false;
}

}  // namespace tutti::start
