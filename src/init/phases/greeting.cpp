// The phases in which ranks say who and where they are, and rank 0 learns of all machines.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/host.h"
#include "init/phases/phases.h"

namespace tutti::start {
namespace {

/// The number of a namespace of this thread, "net" or "user"; 0: unknown.
unsigned long long namespace_number(const char* kind) {
  struct stat status {};
  const bool known = ::stat(fmt::format("/proc/thread-self/ns/{}", kind).c_str(), &status) == 0;
  return known ? static_cast<unsigned long long>(status.st_ino) : 0;
}

/// Equal in processes that can pass each other descriptors: processes on one kernel (boot id) and in one network
/// namespace, which bounds the names of abstract unix sockets. TUTTI_HOSTID replaces it if set.
std::string host_identity(const Process& process) {
  if (const std::string& given = process.config.text("TUTTI_HOSTID"); !given.empty()) return "id " + given;
  return fmt::format("{} {:x}", process.identity.boot_id, namespace_number("net"));
}

/// Equal in processes of one user in one user namespace. Processes where it differs may or may not be of one user to
/// the kernel; descriptors are passed only where both ends see the same user.
std::string user_identity() {
  return fmt::format("{} {:x}", ::geteuid(), namespace_number("user"));
}

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

void set_hosts(Facts& facts, std::vector<int> hosts) {
  facts.members.hosts = std::move(hosts);
  facts.machines.emplace(facts.peer_infos, facts.members.hosts);
}

/// What this rank knows of the communicator before it has heard of any other one.
Result<void> begin_members(Facts& facts) {
  Process& process = facts.process;
  const JoinOptions& options = facts.options;
  Membership& members = facts.members;
  members.area = TUTTI_TRY(process.memory.make_area(area_shape(facts)));
  members.rank = options.rank;
  members.ranks = options.ranks;
  members.deterministic = options.deterministic;
  members.while_waiting = options.while_waiting;
  members.call_limit = options.call_limit.value_or(
      CallLimit{.ms = process.config.integer("TUTTI_TIMEOUT_MS"), .from = "TUTTI_TIMEOUT_MS"});
  members.gpu = options.gpu;
  if (members.gpu)
    members.area->area.header().gpu.store(static_cast<std::uint32_t>(members.gpu->ordinal()) + 1,
                                          std::memory_order_relaxed);
  members.name = options.name.empty() ? "comm " + options.id.fingerprint() : options.name;
  members.who = fmt::format("{} rank {}", members.name, members.rank);
  members.pulls = true;
  return {};
}

Result<void> tell_location(Facts& facts, PeerInfo& info) {
  info.cpus = own_cpus();
  const auto& gpu = facts.members.gpu;
  LocatedRank& here = facts.located;
  here = TUTTI_TRY(
      facts.process.machine.locator.locate(info.cpus, gpu ? gpu->driver().bus_id(gpu->ordinal()) : std::string()));
  info.location = here.location;
  facts.members.nearest_nic = get_text(here.location.nic);
  if (!here.text) return {};
  info.machine = TUTTI_TRY(sha256(std::as_bytes(std::span(*here.text))));
  const std::size_t bytes = here.text->size();
  info.machine_bytes = bytes <= MachineExchange::text_bytes_max ? static_cast<std::uint32_t>(bytes) : 0;
  return {};
}

}  // namespace

AreaShape area_shape(const Facts& facts) {
  const Config& config = facts.process.config;
  AreaShape shape;
  shape.ranks = facts.ranks();
  shape.channels = static_cast<int>(config.integer("TUTTI_NCHANNELS")) + 2;
  shape.slot_bytes = static_cast<std::size_t>(config.integer("TUTTI_BUFFSIZE"));
  return shape;
}

Result<Blob> Greeting::contribution(Facts& facts) {
  Process& process = facts.process;
  TUTTI_TRY(process.serve());
  TUTTI_TRY(begin_members(facts));
  const OwnedArea& area = *facts.members.area;
  PeerInfo info;
  info.pid = ::getpid();
  info.token = process.identity.token;
  info.area = area.name;
  info.area_bytes = RankArea::bytes(area_shape(facts));
  info.area_address = reinterpret_cast<std::uint64_t>(area.base);
  info.key = process.identity.key;
  put_text(info.host, process.identity.host);
  put_text(info.boot_id, process.identity.boot_id);
  const std::string host = host_identity(process);
  info.host_identity = TUTTI_TRY(sha256(std::as_bytes(std::span(host))));
  const std::string user = user_identity();
  info.user = TUTTI_TRY(sha256(std::as_bytes(std::span(user))));
  put_text(info.fd_server, process.memory.fd_server_name());
  info.transports = TUTTI_TRY(usable_transports(process));
  facts.gpus.offer(facts, info);
  TUTTI_TRY(tell_location(facts, info));
  return to_blob(info);
}

/// Greetings that cannot be read are the same for all ranks.
Result<bool> Greeting::take(Facts& facts, const std::vector<Blob>& gathered) {
  for (Rank rank = 0; rank < facts.ranks(); ++rank) {
    auto info = read_message<PeerInfo>(gathered[rank], "a greeting");
    if (!info) {
      facts.note(std::move(info).error().at_peer(rank));
      return false;
    }
    facts.members.some_gpu = facts.members.some_gpu || info->gpu.gpu != 0;
    facts.peer_infos.push_back(*info);
  }
  const std::string& transport = facts.process.config.text("TUTTI_TRANSPORT");
  set_hosts(facts, hosts_of(facts.peer_infos, transport == "socket" || transport == "rdma"));
  facts.networks = hosts_of(facts.peer_infos, /*apart=*/false);
  return false;
}

bool Sharing::applies(const Facts& facts) const {
  if (!facts.all_greeted()) return false;
  for (Rank rank = 0; rank < facts.ranks(); ++rank)
    if (facts.peer_infos[rank].user != facts.peer_infos[facts.members.hosts[rank]].user) return true;
  return false;
}

Result<Blob> Sharing::contribution(Facts& facts) {
  SharingWord word;
  facts.members.peers.resize(facts.peer_infos.size());
  for (Rank rank = 0; rank < facts.ranks() && word.shares != 0; ++rank) {
    if (!facts.same_host(rank) || facts.peer_infos[rank].user == facts.peer_infos[facts.rank()].user) continue;
    auto tried = connect_to(facts, rank);
    if (tried) continue;
    word.shares = 0;
    facts.process.log.info(
        LogTopic::init, facts.members.name,
        "no memory is shared with rank {}, which runs as another user ({}): ranks of this host use sockets", rank,
        tried.error().text());
  }
  return to_blob(word);
}

/// If any rank of a host cannot share memory, each process of that host is treated as a host of its own.
Result<bool> Sharing::take(Facts& facts, const std::vector<Blob>& gathered) {
  const std::vector<int> apart = hosts_of(facts.peer_infos, /*apart=*/true);
  std::vector<int> hosts = facts.members.hosts;
  for (Rank rank = 0; rank < facts.ranks(); ++rank) {
    const auto word = read_message<SharingWord>(gathered[rank], "a report on sharing memory");
    if (!word) {
      facts.note(Error(word.error()).at_peer(rank));
      break;
    }
    if (word->shares != 0) continue;
    for (Rank other = 0; other < facts.ranks(); ++other)
      if (facts.members.hosts[other] == facts.members.hosts[rank]) hosts[other] = apart[other];
  }
  set_hosts(facts, std::move(hosts));
  return false;
}

Result<Blob> Describing::contribution(Facts& facts) {
  const auto& text = facts.located.text;
  return facts.machines->part(facts.rank(), text ? *text : std::string());
}

Result<bool> Describing::take(Facts& facts, const std::vector<Blob>& gathered) {
  facts.note(facts.machines->take(facts.rank(), gathered));
  return facts.machines->more();
}

}  // namespace tutti::start
