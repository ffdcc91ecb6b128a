#include "init/phases/address_proof.h"

#include <algorithm>

#include <fmt/format.h>

namespace tutti {

AddressProof::AddressProof(Process& process, const Membership& members, std::vector<int> networks)
    : process_(process), networks_(std::move(networks)), host_of_(networks_.size()) {
  for (std::size_t rank = 0; rank < networks_.size(); ++rank) {
    const auto first = static_cast<std::size_t>(networks_[rank]);
    const Peer& peer = members.peers[rank];
    host_of_[rank] = first == rank ? hosts_.size() : host_of_[first];
    if (first == rank) hosts_.push_back({.name = fmt::format("{} (rank {})", peer.host, rank), .addresses = {}});
    auto& known = hosts_[host_of_[rank]].addresses;
    const auto host = [](const ReachAddress& address) { return address.at.host; };
    for (const PeerAddress& one : peer.addresses)
      if (std::ranges::find(known, one.at.host, host) == known.end())
        known.push_back({.rank = static_cast<int>(rank), .at = one.at, .nic = one.nic, .mbps = one.mbps});
  }
  self_ = host_of_[static_cast<std::size_t>(members.rank)];
  if (networks_[static_cast<std::size_t>(members.rank)] == members.rank)
    proof_.emplace(process.system, members.arrivals->key(), self_, hosts_);
}

Result<void> AddressProof::keep_proven(const std::vector<Bytes>& told, std::vector<Peer>& peers) {
  std::vector<ReachMap> maps;
  for (std::size_t rank = 0; rank < networks_.size(); ++rank) {
    if (networks_[rank] != static_cast<int>(rank)) continue;
    auto map = ReachMap::decode(told[rank], hosts_);
    if (!map) return std::move(map).error().at_peer(static_cast<int>(rank));
    maps.push_back(*std::move(map));
  }
  if (proof_) log_unused(maps);
  auto usable = TUTTI_TRY(usable_addresses(hosts_, maps, self_));
  if (proof_) log_shares(usable, maps[self_]);
  for (std::size_t rank = 0; rank < peers.size(); ++rank) {
    const std::size_t host = host_of_[rank];
    std::vector<PeerAddress> kept;
    for (PeerAddress& one : peers[rank].addresses) {
      const auto same = [&](std::size_t i) { return hosts_[host].addresses[i].at.host == one.at.host; };
      const auto good = std::ranges::find_if(usable[host], same);
      if (good == usable[host].end()) continue;
      one.wide = maps[self_].wide(host, *good);
      kept.push_back(std::move(one));
    }
    peers[rank].addresses = std::move(kept);
    if (peers[rank].addresses.empty())
      return Error{.code = Code::system,
                   .what = fmt::format("rank {} sent no address that other hosts can reach", rank),
                   .peer = static_cast<int>(rank)};
  }
  return {};
}

/// Logs which addresses of a host with several interfaces share the data, and which are in reserve.
void AddressProof::log_shares(const std::vector<std::vector<std::size_t>>& usable, const ReachMap& map) const {
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    const auto& addresses = hosts_[host].addresses;
    const auto differs = [&](std::size_t i) { return addresses[i].nic != addresses[usable[host].front()].nic; };
    if (host == self_ || std::ranges::none_of(usable[host], differs)) continue;
    for (const std::size_t i : usable[host])
      process_.log.info(LogTopic::init, "interfaces", "{}: {} at {}, {} Mbit/s",
                        map.wide(host, i) ? "carries a share" : "in reserve, slower", hosts_[host].name,
                        addresses[i].at.host, addresses[i].mbps);
  }
}

/// The reason why an address was not reached is known only to the host that called it; the fact is known to all.
void AddressProof::log_unused(const std::vector<ReachMap>& maps) const {
  for (const std::string& line : proof_->why())
    process_.log.info(LogTopic::init, "interfaces", "not reached: {}", line);
  for (std::size_t host = 0; host < hosts_.size(); ++host)
    for (std::size_t address = 0; address < hosts_[host].addresses.size(); ++address) {
      const auto misses = [&](const ReachMap& map) { return !map.reached(host, address); };
      const auto by = std::ranges::find_if(maps, misses);
      if (by == maps.end() || misses(maps[self_])) continue;
      process_.log.info(LogTopic::init, "interfaces", "not reached: {} at {}, by {}", hosts_[host].name,
                        hosts_[host].addresses[address].at.host,
                        hosts_[static_cast<std::size_t>(by - maps.begin())].name);
    }
}

}  // namespace tutti
