#include "comm/peer_links.h"

namespace tutti {
namespace {

/// Ranks of other hosts have no call descriptors; their entries are never read.
std::vector<std::byte*> rings_of(const Membership& members) {
  std::vector<std::byte*> rings;
  rings.reserve(members.peers.size());
  for (const auto& peer : members.peers)
    rings.push_back((peer.remote() ? members.area->area : peer.area).call_descriptors());
  return rings;
}

PassRules pass_rules_of(const Config& config, const Membership& members) {
  const Machine& machine = members.machine;
  const auto forced = loop_of(config.text("TUTTI_LOOP"));
  return {.loops = forced ? LoopTable::all(*forced) : machine.loops.table(),
          .nontemporal_bytes = static_cast<std::size_t>(config.integer("TUTTI_NT_THRESHOLD")),
          .direct_bytes = static_cast<std::size_t>(config.integer("TUTTI_ZCOPY_THRESHOLD")),
          .bounce_bytes = machine.pull.bounce_bytes(),
          // The system copies out of a socket's slot at once.
          .streamed_bytes = members.spans_hosts() ? PassRules{}.streamed_bytes : machine.far.streamed_bytes(),
          .realigns = machine.realigning_pays()};
}

}  // namespace

PeerLinks::PeerLinks(Process& process, const Membership& members, const CallMark& mark, const CallHistory* history,
                     const std::atomic<bool>& failed)
    : system_(process.system),
      members_(members),
      oversubscribed_(members.oversubscribed),
      pass_rules_(pass_rules_of(process.config, members)),
      descriptors_(rings_of(members), members.rank, members.area->area.shape().payload_bytes,
                   pass_rules_.streamed_bytes),
      channels_(process, members, mark, history, failed),
      windows_(process, members, failed) {
  for (const auto& peer : members.peers) {
    doorbells_.push_back(&peer.area.header().doorbell);
    if (static_cast<Rank>(doorbells_.size()) != members.rank + 1) others_.push_back(doorbells_.back());
  }
}

RunContext PeerLinks::context() {
  return {.channels = channels_.of_collectives(),
          .descriptors = &descriptors_,
          .doorbells = doorbells_,
          .system = &system_,
          .oversubscribed = oversubscribed_,
          .opens = members_.spans_hosts(),
          .rules = &pass_rules_};
}

void PeerLinks::ring_all() {
  if (oversubscribed_) store_then_load();
  for (Doorbell* const bell : others_) bell->ring_after_fence(system_);
}

std::int64_t PeerLinks::poll_deadline_ns(bool awaited) const {
  constexpr std::int64_t arrival_look_ns = 1'000'000;
  constexpr std::int64_t shared_look_ns = 500'000;  // messages through shared memory do not wake a poll
  constexpr std::int64_t poll_timeout_ns = 10'000'000;
  const std::int64_t now = system_.now_ns();
  if (awaited) return now + arrival_look_ns;
  return now + (members_.shares_memory() ? shared_look_ns : poll_timeout_ns);
}

}  // namespace tutti
