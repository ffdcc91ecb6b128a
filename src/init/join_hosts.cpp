// The part of the start in which ranks find out which of them share memory, and map each other's areas.
#include <sys/uio.h>

#include <algorithm>

#include <fmt/format.h>

#include "init/join.h"

namespace tutti {
namespace {

/// By rank: the first rank that shares memory with it. `apart`: treats each process as a host of its own.
std::vector<int> hosts_of(const std::vector<PeerInfo>& infos, bool apart) {
  std::vector<int> hosts;
  for (const PeerInfo& info : infos) {
    const auto same = [&](const PeerInfo& other) {
      return apart ? other.token == info.token : other.host_identity == info.host_identity;
    };
    hosts.push_back(static_cast<int>(std::ranges::find_if(infos, same) - infos.begin()));
  }
  return hosts;
}

/// Whether the memory of `pid` can be read: tested on a word of known value. Never changes tracing permissions.
bool can_pull(int pid, std::uint64_t address) {
  if (pid <= 0) return false;
  std::uint64_t word = 0;
  const iovec here{&word, sizeof word};
  const iovec there{reinterpret_cast<void*>(address), sizeof word};
  return ::process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof word && word == AreaHeader::magic_value;
}

}  // namespace

Result<void> Join::read_hellos() {
  for (Rank rank = 0; rank < options_.ranks; ++rank) {
    auto info = read_peer_info(exchange_->gathered()[rank]);
    if (!info) return std::move(info).error().at_peer(rank);
    peer_infos_.push_back(*info);
  }
  const std::string& transport = process_.config.text("TUTTI_TRANSPORT");
  members_.hosts = hosts_of(peer_infos_, transport == "socket" || transport == "rdma");
  networks_ = hosts_of(peer_infos_, /*apart=*/false);
  return {};
}

/// All ranks get the same result, as they have the same information.
bool Join::several_users() const {
  if (peer_infos_.size() != static_cast<std::size_t>(options_.ranks)) return false;
  for (Rank rank = 0; rank < options_.ranks; ++rank)
    if (peer_infos_[rank].user != peer_infos_[members_.hosts[rank]].user) return true;
  return false;
}

/// Begins one more exchange: whether this rank can share memory with all other ranks of its host.
void Join::try_sharing() {
  Sharing word;
  members_.peers.resize(peer_infos_.size());
  for (Rank rank = 0; rank < options_.ranks && word.shares != 0; ++rank) {
    if (!same_host(rank) || peer_infos_[rank].user == peer_infos_[options_.rank].user) continue;
    auto tried = connect_to(rank);
    if (tried) continue;
    word.shares = 0;
    process_.log.info(
        LogTopic::init, members_.name,
        "no memory is shared with rank {}, which runs as another user ({}): ranks of this host use sockets", rank,
        tried.error().text());
  }
  exchange_->exchange(to_blob(word));
  state_ = State::share;
}

/// If any rank of a host cannot share memory, each process of that host is treated as a host of its own.
Result<void> Join::separate() {
  const std::vector<int> apart = hosts_of(peer_infos_, /*apart=*/true);
  const std::vector<int> hosts = members_.hosts;
  for (Rank rank = 0; rank < options_.ranks; ++rank) {
    const auto word = read_sharing(exchange_->gathered()[rank]);
    if (!word) return Error(word.error()).at_peer(rank);
    if (word->shares != 0) continue;
    for (Rank other = 0; other < options_.ranks; ++other)
      if (hosts[other] == hosts[rank]) members_.hosts[other] = apart[other];
  }
  return {};
}

/// Ranks of one machine share its cores, whatever else they share.
void Join::count_cores() {
  members_.cores = 0;
  std::vector<std::string> machines;
  for (const PeerInfo& first : peer_infos_) {
    const std::string machine = get_text(first.boot_id);
    if (std::ranges::find(machines, machine) != machines.end()) continue;
    machines.push_back(machine);
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    int ranks = 0;
    Places::Claim claim;
    for (const PeerInfo& info : peer_infos_) {
      if (get_text(info.boot_id) != machine) continue;
      CPU_OR(&cpus, &cpus, &info.cpus);
      ++ranks;
      claim.ranks.push_back(cpus_in(info.cpus));
      if (info.token == process_.token) claim.own.push_back(claim.ranks.back());
    }
    members_.cores += CPU_COUNT(&cpus);
    if (machine != get_text(peer_infos_[options_.rank].boot_id)) continue;
    cpus_ = cpus;
    members_.places = process_.places.claim(std::move(claim));
    members_.oversubscribed = ranks > CPU_COUNT(&cpus);
  }
}

Result<void> Join::connect() {
  spans_hosts_ = std::ranges::any_of(members_.hosts, [](int host) { return host != 0; });
  if (trouble_) return {};
  count_cores();
  members_.peers.assign(peer_infos_.size(), Peer());
  for (Rank rank = 0; rank < options_.ranks; ++rank)
    if (auto connected = connect_to(rank); !connected)
      return std::move(connected).error().during("reach " + members_.describe(rank) + " at the start").at_peer(rank);
  try_gpus();
  if (options_.rank == 0) {  // for all ranks, in the last exchange
    auto map = map_of_job();
    if (!map) return std::move(map).error();
    members_.map = *std::move(map);
  }
  peer_infos_.clear();
  return {};
}

Result<void> Join::connect_to(Rank rank) {
  const PeerInfo& info = peer_infos_[rank];
  Peer& peer = members_.peers[rank];
  peer.token = info.token;
  peer.pid = info.pid;
  peer.host = get_text(info.host);
  peer.fd_server = get_text(info.fd_server);
  peer.key = info.key;
  peer.area_name = info.area;
  peer.transports = info.transports;
  peer.same_process = info.token == process_.token;
  const std::size_t bytes = RankArea::bytes(area_shape());
  if (info.area_bytes != bytes)
    return Error{.code = Code::invalid_usage,
                 .what = fmt::format("its shared area has {} bytes, expected were {}", info.area_bytes, bytes)};

  if (!same_host(rank)) {
    peer.mirror = std::make_shared<MirroredHeader>(area_shape());
    peer.area = peer.mirror->area();
    return {};
  }
  std::byte* base = nullptr;
  if (peer.same_process) {
    peer.thread_area = process_.find_area(info.area.id);
    if (!peer.thread_area) return Error{.code = Code::remote, .what = "it left while the communicator was being made"};
    base = peer.thread_area->base;
  } else {
    // Leaves some time to tell the others which rank it waited for.
    const std::int64_t limit_ns = std::max<std::int64_t>(1, (deadline_ns_ - process_.system.now_ns()) / 10 * 9);
    SeenProcess seen;
    const auto fetch = [&](std::uint64_t, SegmentName name) -> Result<SegmentTable::Export> {
      auto fetched = fetch_segment(peer.fd_server, peer.key, name, limit_ns, [] { return false; });
      if (!fetched) return std::move(fetched).error();
      seen = std::move(fetched->owner);
      return std::move(fetched->segment);
    };
    peer.mapped_area = TUTTI_TRY(process_.cache.map(peer.token, info.area, bytes, fetch));
    base = peer.mapped_area->data();
    auto process = process_.peer_process(peer.token, [&]() -> Result<SeenProcess> {
      if (seen.pidfd) return std::move(seen);
      return watch_process(peer.fd_server, peer.key, limit_ns, [] { return false; });
    });
    if (!process) return std::move(process).error();
    peer.process = *std::move(process);
    peer.area_address = info.area_address;
    pulls_ = pulls_ && can_pull(peer.visible_pid(), info.area_address);
  }
  peer.area = RankArea(base, area_shape());
  if (!peer.area.valid()) return Error{.code = Code::remote, .what = "its shared area is not one of tutti's"};
  return {};
}

}  // namespace tutti
