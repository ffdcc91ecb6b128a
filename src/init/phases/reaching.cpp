// The phase in which a rank's control connections are opened. Never blocks.
#include <algorithm>

#include <fmt/format.h>

#include "init/phases/phases.h"
#include "net/control_graph.h"
#include "transport/socket_tuning.h"

namespace tutti::start {
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

Result<void> Reaching::begin(Facts& facts) {
  const Membership& members = facts.members;
  // Gives up before the waiting side does, as this side knows the reason.
  const std::int64_t connect_limit_ns = facts.wait_for_one_ns();
  for (const Rank rank : control_neighbours(members.rank, members.hosts)) {
    Edge& edge = edges_.emplace_back(Edge{.rank = rank});
    if (rank > members.rank) continue;
    const ConnectionKey& key = members.arrivals->key();
    const tutti::Greeting greeting{
        .communicator = key.communicator, .from = members.rank, .to = rank, .purpose = Purpose::control};
    const Peer& peer = members.peers[static_cast<std::size_t>(rank)];
    edge.connector.emplace(facts.process.system, in_order(peer.addresses), greeting, key, connect_limit_ns);
  }
  return {};
}

Result<Progress> Reaching::wait(Facts& facts) {
  auto linked = open_all(facts);
  if (linked && !*linked)
    if (auto stuck = cannot_accept(facts)) linked = *std::move(stuck);
  if (linked && !*linked) return Progress::blocked;
  if (linked) {
    facts.members.control = take_links(facts);
  } else {
    facts.note(std::move(linked).error());
    // Other ranks may be waiting for ranks that wait for this one; all of them may now get the error.
    Error told = *facts.trouble;
    told.what = fmt::format("rank {} could not join: {}", facts.rank(), facts.trouble->text());
    told.sys_errno = 0;  // the text has it
    facts.exchange.fail(told);
  }
  edges_.clear();
  return Progress::done;
}

Result<bool> Reaching::open_all(const Facts& facts) {
  const Membership& members = facts.members;
  bool all = true;
  for (Edge& edge : edges_) {
    if (edge.socket) continue;
    std::optional<Socket> socket;
    if (edge.connector) {
      auto connected = edge.connector->advance();
      if (!connected) return std::move(connected).error().during(members.describe(edge.rank)).at_peer(edge.rank);
      socket = *std::move(connected);
      if (socket) edge.connector.reset();
    } else if (auto arrival = members.arrivals->take(Purpose::control, edge.rank, 0, 0)) {
      socket = std::move(arrival->socket);
    }
    if (socket) {
      edge.socket = *std::move(socket);
      continue;
    }
    all = false;
    if (facts.process.system.now_ns() >= facts.deadline_ns)
      return Error{
          .code = Code::timeout,
          .what = fmt::format("{} did not connect to {}", members.describe(edge.rank), members.describe(members.rank)),
          .peer = edge.rank};
  }
  return all;
}

std::shared_ptr<ControlLinks> Reaching::take_links(const Facts& facts) {
  System& system = facts.process.system;
  const Membership& members = facts.members;
  const std::int64_t silence_ns = facts.process.config.integer("TUTTI_SILENCE_MS") * 1'000'000;
  std::vector<ControlLinks::Link> links;
  for (Edge& edge : edges_) {
    system.set_patience(edge.socket, patience_ns(silence_ns), System::Reader::always);
    const Peer& peer = members.peers[static_cast<std::size_t>(edge.rank)];
    ProbeTarget line{.key = members.arrivals->key(),
                     .from = members.rank,
                     .to = edge.rank,
                     .addresses = called_at(system, edge.socket, peer)};
    links.push_back({.rank = edge.rank,
                     .host = members.hosts[static_cast<std::size_t>(edge.rank)],
                     .wire = Wire(system, std::move(edge.socket)),
                     .mirror = peer.mirror,
                     .who = members.describe(edge.rank),
                     .life = std::make_shared<LifeProbe>(std::move(line))});
  }
  const std::int64_t others_ns = std::max<std::int64_t>(0, facts.deadline_ns - system.now_ns());
  return std::make_shared<ControlLinks>(system, std::move(links), silence_ns, others_ns);
}

std::int64_t Reaching::wait_set(const Facts& facts, std::vector<PollItem>& items) const {
  std::int64_t next = facts.process.system.now_ns() + look_every_ns;
  for (const Edge& edge : edges_)
    if (edge.connector) next = std::min(next, std::max<std::int64_t>(edge.connector->poll_set(items), 1));
  return next;
}

}  // namespace tutti::start
