// The phase in which a rank maps the areas of the ranks of its host, and its GPU tries those of the others.
#include <sys/uio.h>

#include <algorithm>

#include <fmt/format.h>

#include "init/phases/phases.h"

namespace tutti::start {
namespace {

/// Whether the memory of `pid` can be read: tested on a word of known value. Never changes tracing permissions.
bool can_pull(int pid, std::uint64_t address) {
  if (pid <= 0) return false;
  std::uint64_t word = 0;
  const iovec here{&word, sizeof word};
  const iovec there{reinterpret_cast<void*>(address), sizeof word};
  return ::process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof word && word == AreaHeader::magic_value;
}

/// Ranks of one machine share its cores, whatever else they share.
void count_cores(Facts& facts) {
  Membership& members = facts.members;
  members.cores = 0;
  std::vector<std::string> machines;
  for (const PeerInfo& first : facts.peer_infos) {
    const std::string machine = get_text(first.boot_id);
    if (std::ranges::find(machines, machine) != machines.end()) continue;
    machines.push_back(machine);
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    int ranks = 0;
    Places::Claim claim;
    for (const PeerInfo& info : facts.peer_infos) {
      if (get_text(info.boot_id) != machine) continue;
      CPU_OR(&cpus, &cpus, &info.cpus);
      ++ranks;
      claim.ranks.push_back(cpus_in(info.cpus));
      if (info.token == facts.process.identity.token) claim.own.push_back(claim.ranks.back());
    }
    members.cores += CPU_COUNT(&cpus);
    if (machine != get_text(facts.peer_infos[facts.rank()].boot_id)) continue;
    facts.cpus = cpus;
    members.places = facts.process.machine.places.claim(std::move(claim));
    members.oversubscribed = ranks > CPU_COUNT(&cpus);
  }
}

Peer peer_of(const Facts& facts, const PeerInfo& info) {
  Peer peer;
  peer.token = info.token;
  peer.pid = info.pid;
  peer.host = get_text(info.host);
  peer.fd_server = get_text(info.fd_server);
  peer.key = info.key;
  peer.area_name = info.area;
  peer.transports = info.transports;
  peer.same_process = info.token == facts.process.identity.token;
  return peer;
}

/// Of another process of this host: maps its area, and watches the process.
Result<std::byte*> map_area(Facts& facts, Peer& peer, const PeerInfo& info) {
  const std::int64_t limit_ns = facts.wait_for_one_ns();
  SeenProcess seen;
  const auto fetch = [&](std::uint64_t, SegmentName name) -> Result<SegmentTable::Export> {
    auto fetched = TUTTI_TRY(fetch_segment(peer.fd_server, peer.key, name, limit_ns, [] { return false; }));
    seen = std::move(fetched.owner);
    return std::move(fetched.segment);
  };
  peer.mapped_area = TUTTI_TRY(facts.process.memory.cache.map(peer.token, info.area, info.area_bytes, fetch));
  peer.process = TUTTI_TRY(facts.process.peers.get(peer.token, [&]() -> Result<SeenProcess> {
    if (seen.pidfd) return std::move(seen);
    return watch_process(peer.fd_server, peer.key, limit_ns, [] { return false; });
  }));
  peer.area_address = info.area_address;
  facts.members.pulls = facts.members.pulls && can_pull(peer.visible_pid(), info.area_address);
  return peer.mapped_area->data();
}

Result<JobMap> map_of_job(const Facts& facts) {
  std::vector<ReportedLocation> locations;
  std::vector<std::string> names;
  for (const PeerInfo& info : facts.peer_infos) {
    locations.push_back(info.location);
    names.emplace_back(get_text(info.host));
  }
  auto machines = TUTTI_TRY(facts.machines->machines(facts.located.machine));
  if (facts.machines->told() > 0)
    facts.process.log.info(LogTopic::topo, facts.members.name, "{} kinds of machines", facts.machines->told() + 1);
  return facts.process.machine.locator.map(
      {.locations = locations,
       .hosts = facts.members.hosts,
       .names = names,
       .machines = std::move(machines),
       .by_number = facts.options.deterministic,  // sums are to be in the order of the ranks
       .dump = facts.process.config.text("TUTTI_JOB_DUMP_FILE")});
}

Result<void> map_all(Facts& facts) {
  count_cores(facts);
  facts.members.peers.assign(facts.peer_infos.size(), Peer());
  for (Rank rank = 0; rank < facts.ranks(); ++rank)
    if (auto connected = connect_to(facts, rank); !connected)
      return std::move(connected)
          .error()
          .during("reach " + facts.members.describe(rank) + " at the start")
          .at_peer(rank);
  facts.gpus.reach(facts);
  if (facts.rank() == 0) facts.members.map = TUTTI_TRY(map_of_job(facts));  // for all ranks, in the last exchange
  facts.peer_infos.clear();
  return {};
}

}  // namespace

Result<void> connect_to(Facts& facts, Rank rank) {
  const PeerInfo& info = facts.peer_infos[rank];
  const AreaShape shape = area_shape(facts);
  Peer& peer = facts.members.peers[rank];
  peer = peer_of(facts, info);
  if (const std::size_t bytes = RankArea::bytes(shape); info.area_bytes != bytes)
    return invalid_usage(fmt::format("its shared area has {} bytes, expected were {}", info.area_bytes, bytes));
  if (!facts.same_host(rank)) {
    peer.mirror = std::make_shared<MirroredHeader>(shape);
    peer.area = peer.mirror->area();
    return {};
  }
  if (peer.same_process) {
    peer.thread_area = facts.process.memory.find_area(info.area.id);
    if (!peer.thread_area) return Error{.code = Code::remote, .what = "it left while the communicator was being made"};
    peer.area = RankArea(peer.thread_area->base, shape);
  } else {
    peer.area = RankArea(TUTTI_TRY(map_area(facts, peer, info)), shape);
  }
  if (!peer.area.valid()) return Error{.code = Code::remote, .what = "its shared area is not one of tutti's"};
  return {};
}

Result<void> Mapping::begin(Facts& facts) {
  if (!facts.trouble) facts.note(map_all(facts));
  return {};
}

}  // namespace tutti::start
