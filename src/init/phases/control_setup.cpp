#include "init/phases/control_setup.h"

#include <algorithm>

#include <fmt/format.h>

#include "net/control_graph.h"
#include "transport/socket_tuning.h"

namespace tutti {
namespace {

constexpr std::int64_t look_every_ns = 1'000'000;  // for connections that arrive through the service thread

/// Where a peer is called while its control connection is silent: at the other end of that connection, so that an
/// answer says that this path works. At all its addresses if none is that one.
std::vector<SocketAddress> called_at(System& system, const Socket& socket, const Peer& peer) {
  std::vector<SocketAddress> all = in_order(peer.addresses);
  const auto there = system.peer_address(socket);
  const auto at = there ? std::ranges::find(all, there->host, &SocketAddress::host) : all.end();
  if (at == all.end()) return all;
  return {*at};
}

}  // namespace

ControlSetup::ControlSetup(System& system, const Membership& members, std::int64_t deadline_ns)
    : system_(system), members_(members), give_up_ns_(deadline_ns) {
  // Gives up before the waiting side does, as this side knows the reason.
  const std::int64_t connect_limit_ns = std::max<std::int64_t>(1, (deadline_ns - system.now_ns()) / 10 * 9);
  for (const Rank rank : control_neighbours(members.rank, members.hosts)) {
    Edge& edge = edges_.emplace_back(Edge{.rank = rank});
    if (rank > members.rank) continue;
    const ConnectionKey& key = members.arrivals->key();
    const Greeting greeting{
        .communicator = key.communicator, .from = members.rank, .to = rank, .purpose = Purpose::control};
    const Peer& peer = members.peers[static_cast<std::size_t>(rank)];
    edge.connector.emplace(system, in_order(peer.addresses), greeting, key, connect_limit_ns);
  }
}

Result<bool> ControlSetup::advance() {
  bool all = true;
  for (Edge& edge : edges_) {
    if (edge.socket) continue;
    std::optional<Socket> socket;
    if (edge.connector) {
      auto connected = edge.connector->advance();
      if (!connected) return std::move(connected).error().during(members_.describe(edge.rank)).at_peer(edge.rank);
      socket = *std::move(connected);
      if (socket) edge.connector.reset();
    } else if (auto arrival = members_.arrivals->take(Purpose::control, edge.rank, 0, 0)) {
      socket = std::move(arrival->socket);
    }
    if (socket) {
      edge.socket = *std::move(socket);
      continue;
    }
    all = false;
    if (system_.now_ns() >= give_up_ns_)
      return Error{.code = Code::timeout,
                   .what = fmt::format("{} did not connect to {}", members_.describe(edge.rank),
                                       members_.describe(members_.rank)),
                   .peer = edge.rank};
  }
  return all;
}

std::shared_ptr<ControlLinks> ControlSetup::take(std::int64_t silence_ns) {
  std::vector<ControlLinks::Link> links;
  for (Edge& edge : edges_) {
    system_.set_patience(edge.socket, patience_ns(silence_ns), System::Reader::always);
    const Peer& peer = members_.peers[static_cast<std::size_t>(edge.rank)];
    ProbeTarget line{.key = members_.arrivals->key(),
                     .from = members_.rank,
                     .to = edge.rank,
                     .addresses = called_at(system_, edge.socket, peer)};
    links.push_back({.rank = edge.rank,
                     .host = members_.hosts[static_cast<std::size_t>(edge.rank)],
                     .wire = Wire(system_, std::move(edge.socket)),
                     .mirror = peer.mirror,
                     .who = members_.describe(edge.rank),
                     .life = std::make_shared<LifeProbe>(std::move(line))});
  }
  edges_.clear();
  const std::int64_t others_ns = std::max<std::int64_t>(0, give_up_ns_ - system_.now_ns());
  return std::make_shared<ControlLinks>(system_, std::move(links), silence_ns, others_ns);
}

std::int64_t ControlSetup::poll_set(std::vector<PollItem>& items) const {
  std::int64_t next = system_.now_ns() + look_every_ns;
  for (const Edge& edge : edges_)
    if (edge.connector) next = std::min(next, std::max<std::int64_t>(edge.connector->poll_set(items), 1));
  return next;
}

}  // namespace tutti
