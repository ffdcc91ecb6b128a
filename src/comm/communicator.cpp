#include "comm/communicator.h"

#include <algorithm>

#include <fmt/format.h>

#include "comm/call_comparison.h"

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

std::optional<Access> forced_access(const Config& config) {
  const std::string& forced = config.text("TUTTI_TRANSPORT");
  for (const Access access : {Access::mapped, Access::cma, Access::slots})
    if (forced == name(access)) return access;
  return std::nullopt;
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

AccessFacts facts_of(const Membership& members, const Config& config, std::size_t payload_bytes) {
  const auto beside_first = [&](const Peer& peer) { return peer.token == members.peers[0].token; };
  return {.forced = forced_access(config),
          .spans_hosts = members.spans_hosts(),
          .one_process = std::ranges::all_of(members.peers, beside_first),
          .pulls = members.pulls,
          .payload_bytes = payload_bytes};
}

Conditions conditions_of(const Membership& members, const Channels& channels) {
  std::vector<double> pair_gbps;
  for (const std::uint32_t mbps : members.map.pair_mbps) pair_gbps.push_back(mbps * 1e-3);
  return {.cores = members.cores,
          .channels = members.area->area.shape().channels - 1,
          .slots = channels.slots(),
          .slot_bytes = channels.slot_bytes(),
          .hosts = members.spans_hosts() ? members.hosts : std::vector<int>{},
          .pair_gbps = std::move(pair_gbps)};
}

/// Whether calls can contradict the measured numbers: this rank's process has measured or read them, and no network,
/// lack of cores or setting explains other times.
bool can_contradict(const Membership& members, const Config& config) {
  return members.rank == 0 && members.ranks > 1 && !members.spans_hosts() && !members.oversubscribed &&
         !loop_of(config.text("TUTTI_LOOP")) && config.integer("TUTTI_NT_THRESHOLD") == 0;
}

}  // namespace

Communicator::Communicator(Process& process, Membership members)
    : process_(process),
      members_(std::move(members)),
      who_(fmt::format("{} rank {}", members_.name, members_.rank)),
      pass_rules_(pass_rules_of(process.config, members_)),
      call_descriptors_(rings_of(members_), members_.rank, members_.area->area.shape().payload_bytes,
                        pass_rules_.streamed_bytes),
      access_facts_(facts_of(members_, process.config, call_descriptors_.payload_bytes())),
      history_(members_.spans_hosts() ? std::make_shared<CallHistory>() : nullptr),
      channels_(process, members_, mark_, history_.get(), failed_),
      plans_(process, members_, channels_, conditions_of(members_, channels_), who_),
      gone_(members_.ranks),
      last_completed_(&members_.area->area.header().completed),
      notes_{.descriptors = std::vector<const CallDescriptor*>(members_.peers.size()),
             .memory = std::vector<PeerMemory>(members_.peers.size()),
             .scalars = std::vector<std::uint64_t>(members_.peers.size())},
      offered_scratch_(process.memory.segments, process.machine.places.memory_node()),
      staging_(process.memory.segments, process.machine.places.memory_node()),
      windows_(process, members_, failed_) {
  if (can_contradict(members_, process.config)) prediction_check_.emplace();
  for (const auto& peer : members_.peers) doorbells_.push_back(&peer.area.header().doorbell);
  if (spans_hosts()) {
    members_.control->answers_from(history_);
    comparison_ = std::make_unique<CallComparison>(*this);
  }
  members_.area->area.header().state.store(RankState::open, std::memory_order_release);
}

Communicator::~Communicator() {
  if (prediction_check_ && !failed())
    if (const auto seen = prediction_check_->contradiction())
      process_.choices.tune->contradict(members_.machine, *seen, process_.log);
  auto& state = members_.area->area.header().state;
  if (auto open = RankState::open; state.compare_exchange_strong(open, RankState::closed)) ring_all();
  if (members_.control) {
    if (const auto last = history_->last()) members_.control->send_summary(*last, /*ask=*/false);
    members_.control->announce({.state = RankState::closed, .completed = last_completed()});
    ChannelRemains data;
    // What this rank has sent is on its way.
    if (state.load() == RankState::closed || left_after_loss_) {
      data = channels_.take_remains();
      process_.pending_closes.add(members_.control);
    }
    members_.control->leave(std::move(data));
    process_.service.wake();  // all peers may have left already
  }
}

void Communicator::check_device() {
  if (!device_ || failed()) return;
  if (auto trouble = device_->trouble()) fail(*std::move(trouble));
}

void Communicator::note_wait(std::int64_t now_ns, Rank for_whom) {
  waited_ns_.store(now_ns, std::memory_order_relaxed);
  auto& word = members_.area->area.header().waits;
  if (for_whom < 0 && word.load(std::memory_order_relaxed) != waits::for_nobody) return;  // another thread knows more
  word.store(waits::for_rank(for_whom), std::memory_order_relaxed);
}

void Communicator::end_wait() {
  if (waiting_.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  // After the state of a communicator that has failed: see Waiter::check_limit.
  members_.area->area.header().waits.store(waits::for_nobody, std::memory_order_release);
}

std::int64_t Communicator::poll_deadline_ns(bool awaited) const {
  constexpr std::int64_t arrival_look_ns = 1'000'000;
  constexpr std::int64_t shared_look_ns = 500'000;  // messages through shared memory do not wake a poll
  constexpr std::int64_t poll_timeout_ns = 10'000'000;
  const std::int64_t now = process_.system.now_ns();
  if (awaited) return now + arrival_look_ns;
  return now + (members_.shares_memory() ? shared_look_ns : poll_timeout_ns);
}

void Communicator::ring_all() {
  if (members_.oversubscribed) store_then_load();
  for (Rank peer = 0; peer < ranks(); ++peer)
    if (peer != rank()) doorbells_[peer]->ring_after_fence(process_.system);
}

RunContext Communicator::links() {
  return {.channels = channels_.of_collectives(),
          .descriptors = &call_descriptors_,
          .doorbells = doorbells_,
          .system = &process_.system,
          .oversubscribed = members_.oversubscribed,
          .opens = spans_hosts(),
          .rules = &pass_rules_};
}

Result<std::byte*> Communicator::scratch(std::size_t bytes) {
  if (channels_.wants_segments()) {
    auto memory = offered_scratch_.at_least(bytes);
    if (!memory) return std::move(memory).error().during("allocate scratch memory");
    return memory;
  }
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return scratch_.data();
}

Result<std::byte*> Communicator::staging(std::size_t bytes) {
  auto memory = staging_.at_least(bytes);
  if (!memory) return std::move(memory).error().during("allocate memory for an all-to-all in place");
  return memory;
}

}  // namespace tutti
