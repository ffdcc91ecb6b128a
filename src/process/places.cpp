#include "process/places.h"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace tutti {
namespace {

constexpr const char* name_of(Places::Kind kind) {
  switch (kind) {
    case Places::Kind::service: return "the service thread";
    case Places::Kind::stream: return "a stream's thread";
    case Places::Kind::proxy: return "a GPU's proxy";
  }
  return "a thread";
}

}  // namespace

Places::Calls Places::Calls::real() {
  const auto ask = [](pid_t thread) -> Result<CpuSet> {
    cpu_set_t found;
    CPU_ZERO(&found);
    if (::sched_getaffinity(thread, sizeof found, &found) != 0) return system_error("ask for a thread's CPUs", errno);
    return cpus_in(found);
  };
  const auto change = [](pid_t thread, const CpuSet& wanted_cpus) -> Result<void> {
    const cpu_set_t wanted = system_set(wanted_cpus);
    if (::sched_setaffinity(thread, sizeof wanted, &wanted) != 0) return system_error("set a thread's CPUs", errno);
    return {};
  };
  const long cpus = ::sysconf(_SC_NPROCESSORS_CONF);
  return {.get = ask, .set = change, .cpus = cpus > 0 ? static_cast<std::size_t>(cpus) : 0};
}

Places::Places(CpuMap& map, Log& log, bool on, Calls calls) : map_(map), log_(log), on_(on), calls_(std::move(calls)) {}

std::shared_ptr<const Places::Claim> Places::claim(Claim claim) {
  if (!on_) return nullptr;
  auto shared = std::make_shared<const Claim>(std::move(claim));
  const std::lock_guard lock(mutex_);
  claims_.push_back(shared);
  const auto claims = living_claims();
  for (auto& [id, entry] : threads_) place(id, entry, claims);
  return shared;
}

std::vector<Places::Claim> Places::living_claims() {
  std::erase_if(claims_, [](const auto& claim) { return claim.expired(); });
  std::vector<Claim> living;
  for (const auto& claim : claims_)
    if (const auto known = claim.lock()) living.push_back(*known);
  return living;
}

void Places::enter(pid_t id, Kind kind, const CpuSet& device) {
  auto home = calls_.get(id);
  if (!home) return;  // more CPUs than a set has: no place can be named
  const std::lock_guard lock(mutex_);
  Entry& entry = threads_[id] = {.kind = kind, .home = *home, .now = *home, .device = device, .told = {}};
  if (!on_) {
    if (kind == Kind::proxy && home->count() == 1) (void)calls_.set(id, ~CpuSet());  // the kernel may cut the set
    return;
  }
  // Until a communicator starts, nobody knows which cores are free; a proxy spins from its first call on.
  if (const auto claims = living_claims(); !claims.empty() || kind == Kind::proxy) place(id, entry, claims);
}

void Places::leave(pid_t id) {
  const std::lock_guard lock(mutex_);
  threads_.erase(id);
}

/// Whether a thread with these CPUs is bound: as far as is known, if the control group's limits are not known yet.
bool Places::bound(const CpuSet& cpus) const {
  return cpus.any() && cpus.count() < calls_.cpus && (allowed_.none() || !within(allowed_, cpus));
}

/// The service thread belongs to all ranks of the process that are bound, whoever started it.
CpuSet Places::home_of(const Entry& entry, const std::vector<Claim>& claims) const {
  CpuSet ranks;
  if (entry.kind == Kind::service)
    for (const Claim& claim : claims)
      for (const CpuSet& own : claim.own)
        if (bound(own)) ranks |= own;
  return ranks.any() ? ranks : entry.home;
}

/// Only the kernel knows what the control group allows: it cuts a thread's CPUs to that.
Result<void> Places::learn_allowed(pid_t id, const Entry& entry) {
  if (allowed_.any()) return {};
  TUTTI_TRY(calls_.set(id, ~CpuSet()));
  auto cut = calls_.get(id);
  TUTTI_TRY(calls_.set(id, entry.now));
  if (!cut) return std::move(cut).error();
  allowed_ = *cut;
  return {};
}

void Places::place(pid_t id, Entry& entry, const std::vector<Claim>& claims) {
  if (bound(home_of(entry, claims)))
    if (auto known = learn_allowed(id, entry); !known) return tell(entry, entry.now, known.error().text());
  ThreadNeeds needs{.home = home_of(entry, claims),
                    .allowed = allowed_,
                    .ranks = {},
                    .device = entry.device,
                    .spins = entry.kind != Kind::service};
  if (!bound(needs.home)) return put(id, entry, entry.home, "its rank is not bound");
  for (const Claim& claim : claims) needs.ranks.insert(needs.ranks.end(), claim.ranks.begin(), claim.ranks.end());
  const auto part_of = [this](Part part, int cpu) { return map_.part_of(part, cpu); };
  const ThreadPlacement found = cpus_for_thread(needs, part_of);
  switch (found.kind) {
    case ThreadPlacement::Kind::left_alone: return put(id, entry, entry.home, "its rank is not bound");
    case ThreadPlacement::Kind::placed:
      return put(id, entry, found.cpus, fmt::format("{}; its rank is on {}", found.where, text_of(needs.home)));
    case ThreadPlacement::Kind::crowded:
      // On its rank's core alone, a proxy and the rank, which both spin, would take turns of milliseconds.
      return put(id, entry, entry.kind == Kind::proxy ? allowed_ : entry.home, "a rank is bound to each core");
  }
}

void Places::put(pid_t id, Entry& entry, const CpuSet& cpus, const std::string& why) {
  if (cpus != entry.now) {
    if (auto moved = calls_.set(id, cpus); !moved)
      return tell(entry, entry.now, fmt::format("{} to {}", moved.error().text(), text_of(cpus)));
    entry.now = cpus;
  }
  tell(entry, cpus, why);
}

void Places::tell(Entry& entry, const CpuSet& cpus, const std::string& why) {
  std::string line = fmt::format("{} runs on CPUs {}: {}", name_of(entry.kind), text_of(cpus), why);
  if (std::exchange(entry.told, line) != line) log_.info(LogTopic::topo, "places", "{}", line);
}

int Places::memory_node(int device_node) {
  if (!on_ || device_node >= 0) return on_ ? device_node : -1;
  const auto nodes = map_.nodes();
  if (nodes.size() < 2) return -1;
  const auto cpus = calls_.get(0);
  return cpus ? tutti::memory_node(*cpus, nodes) : -1;
}

void Places::tell_memory(int node, int refused) {
  if (node < 0) return;
  std::string line = refused == 0 ? fmt::format("memory lies on NUMA node {}", node)
                                  : fmt::format("memory lies where it is touched first, not on NUMA node {}: {}", node,
                                                std::strerror(refused));
  const std::lock_guard lock(mutex_);
  if (std::exchange(memory_told_, line) != line) log_.info(LogTopic::topo, "places", "{}", line);
}

}  // namespace tutti
