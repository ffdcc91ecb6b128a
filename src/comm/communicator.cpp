#include "comm/communicator.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <functional>
#include <iterator>

#include <fmt/format.h>

#include "algorithms/select.h"
#include "base/fixed_text.h"
#include "base/uncancelled.h"
#include "comm/call_comparison.h"
#include "comm/descriptor_watch.h"
#include "comm/peer_failure.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "transport/shm.h"

namespace tutti {
namespace {

constexpr std::size_t plans_max = 256;

/// Calls from this size on store past the caches, where TUTTI_NT_THRESHOLD does not say otherwise: measured, see
/// docs/performance.md.
constexpr std::size_t nontemporal_bytes_auto = 4 << 20;

/// Ranks of other hosts have none, and nobody looks.
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

}  // namespace

std::string Membership::describe(Rank of) const {
  const Peer& peer = peers[static_cast<std::size_t>(of)];
  return fmt::format("rank {}/{} (process {} on {})", of, ranks, peer.pid, peer.host);
}

std::size_t Communicator::PlanKeyHash::operator()(const PlanKey& key) const {
  const auto small = (static_cast<std::size_t>(key.root) << 8) | (static_cast<std::size_t>(key.collective) << 4) |
                     static_cast<std::size_t>(key.access);
  return std::hash<const void*>{}(key.algorithm) ^ (small * 0x9e3779b97f4a7c15u);
}

Communicator::Communicator(Process& process, Membership members)
    : process_(process),
      members_(std::move(members)),
      who_(fmt::format("{} rank {}", members_.name, members_.rank)),
      forced_algorithms_(process.config.text("TUTTI_ALGO")),
      forced_access_(tutti::forced_access(process.config)),
      rank_order_(members_.ranks),
      nontemporal_bytes_(static_cast<std::size_t>(process.config.integer("TUTTI_NT_THRESHOLD"))),
      autotuner_(members_.spans_hosts() ? 0 : static_cast<int>(process.config.integer("TUTTI_AUTOTUNE"))),
      lines_(rings_of(members_), members_.rank, members_.area->area.shape().payload_bytes),
      plans_(plans_max),
      notes_{.lines = std::vector<const CallDescriptor*>(members_.peers.size()),
             .memory = std::vector<PeerMemory>(members_.peers.size()),
             .scalars = std::vector<std::uint64_t>(members_.peers.size())},
      mapped_(members_.peers.size()),
      mapped_next_(members_.peers.size()),
      retired_seen_(members_.peers.size()) {
  if (nontemporal_bytes_ == 0) nontemporal_bytes_ = nontemporal_bytes_auto;
  if (spans_hosts()) {
    history_ = std::make_shared<CallHistory>();
    members_.control->answers_from(history_);
    comparison_ = std::make_unique<CallComparison>(*this);
  }
  open_channels();
  members_.area->area.header().state.store(RankState::open, std::memory_order_release);
}

Communicator::~Communicator() {
  auto& state = members_.area->area.header().state;
  if (auto open = RankState::open; state.compare_exchange_strong(open, RankState::closed)) ring_all();
  if (members_.control) {
    if (const auto last = history_->last()) members_.control->tell_summary(*last, /*ask=*/false);
    members_.control->announce(RankState::closed, Code::success, -1, {});
    std::vector<Socket> data;
    if (state.load() == RankState::closed) {
      for (const auto& channel : remote_channels_) std::ranges::move(channel->take_sockets(), std::back_inserter(data));
      process_.pending_closes.add(members_.control);
    }
    members_.control->leave(std::move(data));
    process_.service.wake();  // all peers may have left already
  }
  if (staging_ != nullptr) (void)process_.segments.free(staging_);
}

void Communicator::open_channels() {
  slot_bytes_ = members_.area->area.shape().slot_bytes;
  if (members_.each_on_its_own()) slot_bytes_ = std::max(slot_bytes_, socket_slot_bytes);
  const auto& mine = members_.area->area;
  const int channels = mine.shape().channels;
  for (const auto& peer : members_.peers) doorbells_.push_back(&peer.area.header().doorbell);
  const auto open = [&](int index, bool is_signed) {
    Channel channel;
    channel.reserve(ranks());
    for (Rank peer = 0; peer < ranks(); ++peer)
      if (peer != rank()) open_peer(channel, index, peer, is_signed);
    return channel;
  };
  for (int index = 0; index + 1 < channels; ++index) channels_.push_back(open(index, spans_hosts()));
  point_to_point_ = open(channels - 1, /*is_signed=*/false);
}

void Communicator::open_peer(Channel& channel, int index, Rank peer, bool is_signed) {
  const auto& mine = members_.area->area;
  const Peer& other = members_.peers[peer];
  const auto& theirs = other.area;
  auto& sender = channel.senders[peer];
  auto& receiver = channel.receivers[peer];
  if (other.remote()) {
    const AreaShape& shape = mine.shape();
    auto remote = std::make_shared<RemoteChannel>(process_.system, members_.arrivals,
                                                  RemotePlace{.rank = rank(),
                                                              .peer = peer,
                                                              .channel = index,
                                                              .sockets = members_.sockets,
                                                              .congestion = process_.config.text("TUTTI_SOCKET_CC"),
                                                              .slots = shape.slots,
                                                              .slot_bytes = slot_bytes(),
                                                              .addresses = other.addresses,
                                                              .who = describe(peer),
                                                              .connect_limit_ns = init_limit_ns(),
                                                              .header = &theirs.header()});
    sender = std::make_unique<RemoteSender>(remote);
    receiver = std::make_unique<RemoteReceiver>(remote);
    remote_channels_.push_back(std::move(remote));
  } else {
    sender = std::make_unique<ShmSender>(process_.system, mine, rank(), theirs, peer, index, members_.oversubscribed);
    receiver =
        std::make_unique<ShmReceiver>(process_.system, mine, rank(), theirs, peer, index, members_.oversubscribed);
    channel.signals[peer] = Signal(theirs.signal(index, rank()), mine.signal(index, peer));
  }
  if (!is_signed) return;
  sender = std::make_unique<SignedSender>(std::move(sender), mark_);
  receiver = std::make_unique<SignedReceiver>(std::move(receiver), process_.system, mark_, *history_, rank(), peer);
}

void Communicator::look_at_device() {
  if (!device_ || failed()) return;
  if (auto trouble = device_->trouble()) fail(*std::move(trouble));
}

bool Communicator::opening(std::vector<PollItem>& items) const {
  bool any = false;
  for (const auto& channel : remote_channels_) {
    channel->poll_set(items);
    any = any || channel->awaits_arrival();
  }
  return any;
}

std::int64_t Communicator::nap_until(bool awaited) const {
  constexpr std::int64_t arrival_look_ns = 1'000'000;
  constexpr std::int64_t shared_look_ns = 500'000;  // what comes through shared memory does not end a poll
  constexpr std::int64_t nap_ns = 10'000'000;
  const std::int64_t now = process_.system.now_ns();
  if (awaited) return now + arrival_look_ns;
  return now + (members_.shares_memory() ? shared_look_ns : nap_ns);
}

/// Of a fifo, for plans: where the mark of a call takes one, they have one less.
int Communicator::slots() const {
  return members_.area->area.shape().slots - (spans_hosts() ? 1 : 0);
}

/// The levels that all shapes of this communicator have: its hosts, where those have several ranks.
Shape Communicator::with_levels(const Shape& shape) const {
  Shape whole = shape;
  bool several = false;
  for (Rank rank = 0; rank < ranks(); ++rank) several = several || members_.hosts[rank] != rank;
  if (spans_hosts() && several) whole.levels = {members_.hosts};
  return whole;
}

/// What a call meets may only follow from something that is known better elsewhere.
Error Communicator::understood(Error error) const {
  if (error.code != Code::remote && error.sys_errno == 0) return error;
  // What a call on the GPU met is this rank's own failure too, whoever of those that share the GPU tells it first.
  if (device_ && error.code == Code::remote)
    if (auto cause = device_->cause()) return *std::move(cause);
  if (error.peer < 0 || error.peer >= ranks() || error.peer == rank()) return error;
  // Mapping or copying memory of a process that is gone is how some calls learn of its death; it may have said why
  // before it went.
  const auto& peer = members_.peers[error.peer];
  const auto state = peer.area.header().state.load(std::memory_order_acquire);
  if (peer.process && state != RankState::closed && (error.sys_errno == ESRCH || peer.process->ended()))
    return failure_of(*this, error.peer).value_or(lost(error.peer));
  if (comparison_ && state == RankState::closed)
    if (auto early = comparison_->left_early(error.peer)) return *std::move(early);
  return error;
}

void Communicator::fail(Error error) {
  const Uncancelled whole;
  auto& header = members_.area->area.header();
  // Where no call is under way nobody is harmed by a rank that goes.
  const bool quiet = error.code == Code::remote && idle();
  error = understood(std::move(error));
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_) return;
    failure_ = std::make_unique<Error>(std::move(error));
    // Under the lock: on return from a second failure too, peers can see that there is one.
    header.failure.store(static_cast<std::uint32_t>(failure_->code), std::memory_order_relaxed);
    header.culprit.store(failure_->peer, std::memory_order_relaxed);
    put_text(header.message, failure_->what);
    auto open = RankState::open;
    header.state.compare_exchange_strong(open, RankState::failed, std::memory_order_seq_cst);
  }
  failed_.store(true, std::memory_order_release);
  if (members_.control) {
    const RankState state = header.state.load(std::memory_order_acquire);
    members_.control->announce(state, failure_->code, failure_->peer, failure_->what);
  }
  if (device_) device_->abort();
  if (quiet)
    process_.log.info(LogTopic::coll, who_, "{}", failure_->text());
  else
    process_.log.warn(who_, "{}", failure_->text());
  header.doorbell.ring(process_.system, /*oversubscribed=*/true);
  ring_all();
}

void Communicator::abort() {
  auto& header = members_.area->area.header();
  auto open = RankState::open;
  header.state.compare_exchange_strong(open, RankState::aborted);
  fail(Error{.code = Code::invalid_usage, .what = "the communicator was aborted by tuttiCommAbort"});
}

Error Communicator::failure() const {
  const std::lock_guard lock(failure_mutex_);
  return *failure_;
}

void Communicator::ring_all() {
  for (Rank peer = 0; peer < ranks(); ++peer)
    if (peer != rank()) doorbells_[peer]->ring(process_.system, members_.oversubscribed);
}

Links Communicator::links() {
  return {.channels = channels_,
          .lines = &lines_,
          .doorbells = doorbells_,
          .system = &process_.system,
          .oversubscribed = members_.oversubscribed,
          .nontemporal_bytes = nontemporal_bytes_};
}

std::string Communicator::filter(Collective collective, Access access) {
  if (!members_.deterministic || !reduces(collective)) return forced_algorithms_;
  return rank_order_.filter(collective, access, forced_algorithms_);
}

Result<void> Communicator::check_algorithms() {
  if (!members_.deterministic) return {};
  const auto& file = process_.plan_file;
  if (file && !file->rank_order() && file->schedule().ranks() == ranks())
    return Error{.code = Code::invalid_usage,
                 .what = fmt::format("TUTTI_PLAN_FILE, {}, does not sum up in the order of ranks, as a deterministic "
                                     "communicator does",
                                     file->text())};
  return rank_order_.check(forced_algorithms_);
}

std::string_view Communicator::transport(Access access) const {
  return access == Access::slots && members_.spans_hosts() ? "socket" : name(access);
}

AccessFacts Communicator::access_facts() const {
  const auto here = [this](const Peer& peer) { return peer.token == members_.peers[0].token; };
  return {.forced = forced_access_,
          .spans_hosts = spans_hosts(),
          .one_process = std::ranges::all_of(members_.peers, here),
          .pulls = members_.pulls,
          .payload_bytes = lines_.payload_bytes()};
}

Conditions Communicator::conditions() const {
  const AreaShape& area = members_.area->area.shape();
  // Not what TUTTI_NT_THRESHOLD says, which ranks need not agree on.
  return {.cores = members_.cores,
          .channels = area.channels - 1,
          .slots = slots(),
          .slot_bytes = slot_bytes(),
          .nontemporal_bytes = nontemporal_bytes_auto};
}

const Algorithm& Communicator::algorithm(const Shape& shape, Access access, std::size_t bytes, bool counts) {
  if (counts) return algorithm_for_counts(shape, access, bytes);
  auto& envelope = envelopes_[static_cast<std::size_t>(shape.collective)][static_cast<std::size_t>(access)];
  if (envelope == nullptr)
    envelope = process_.envelopes.of(with_levels(shape), access, filter(shape.collective, access), members_.machine,
                                     conditions());
  return envelope->at(bytes);
}

const Algorithm& Communicator::algorithm_for_counts(const Shape& shape, Access access, std::size_t bytes) {
  if (!chosen_for_counts_) chosen_for_counts_ = std::make_unique<Chosen>();
  auto& known = (*chosen_for_counts_)[static_cast<std::size_t>(shape.collective)][static_cast<std::size_t>(access)]
                                     [static_cast<std::size_t>(std::bit_width(bytes))];
  // All sizes of one power of two are served alike, by what suits the smallest of them.
  if (known == nullptr)
    known = select_for_counts(with_levels(shape), access, std::bit_floor(bytes), filter(shape.collective, access));
  return *known;
}

/// Entrants are those predicted to be the fastest for a root of 0 and the smallest size of the kind. Of algorithms
/// whose plans are the same, as their times tell, one runs.
const Algorithm& Communicator::tuned(const Shape& shape, Access access, std::size_t bytes) {
  if (!is_modelled(shape, access)) return algorithm(shape, access, bytes, false);
  const TuningKind kind = TuningKind::of(shape.collective, access, bytes);
  if (const auto* tuning = autotuner_.find(kind)) return Autotuner::turn(*tuning);
  Shape any_root = shape;
  any_root.root = 0;
  const auto all = candidates(any_root, access, filter(shape.collective, access));
  std::vector<const Algorithm*> candidates;
  if (all.size() > 1) {
    double us = -1;
    for (const Prediction& one :
         predictions(any_root, access, std::bit_floor(bytes), all, members_.machine, conditions()))
      if (std::exchange(us, one.us) != one.us) candidates.push_back(one.algorithm);
  } else {
    candidates.push_back(&algorithm(shape, access, bytes, false));
  }
  return Autotuner::turn(autotuner_.enter(kind, std::move(candidates)));
}

const Plan& Communicator::plan(const Shape& shape, Access access, std::size_t bytes, bool counts) {
  const Algorithm& chosen =
      autotuner_.on() && !counts ? tuned(shape, access, bytes) : algorithm(shape, access, bytes, counts);
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): a literal
  used = {.algorithm = chosen.name.c_str(), .transport = transport(access).data()};
  const PlanKey key{&chosen, shape.collective, access, shape.root};
  if (const Plan* known = plans_.find(key)) return *known;
  process_.log.info(LogTopic::coll, who_, "{} uses {} over {}", name(shape.collective), chosen.name, transport(access));
  return plans_.insert(key, fuse(lower(chosen.build(with_levels(shape)), rank(), access), slots()));
}

const Plan& Communicator::plan_from_file(const Shape& shape, Access access) {
  const PlanFile& file = *process_.plan_file;
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): a literal
  used = {.algorithm = file.name().c_str(), .transport = transport(access).data()};
  const PlanKey key{nullptr, shape.collective, access, shape.root};
  if (const Plan* known = plans_.find(key)) return *known;
  process_.log.info(LogTopic::coll, who_, "{} uses {} over {}", name(shape.collective), file.name(), transport(access));
  return plans_.insert(key, fuse(lower(file.schedule(), rank(), access), slots()));
}

Result<std::byte*> Communicator::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return scratch_.data();
}

Result<std::byte*> Communicator::staging(std::size_t bytes) {
  if (staging_bytes_ >= bytes) return staging_;
  if (staging_ != nullptr) (void)process_.segments.free(std::exchange(staging_, nullptr));
  staging_bytes_ = 0;
  auto memory = process_.segments.allocate(bytes, /*touch=*/true);
  if (!memory) return std::move(memory).error().during("make room for an all-to-all in place");
  staging_ = *memory;
  staging_bytes_ = bytes;
  return staging_;
}

Result<std::byte*> Communicator::window(Rank peer, BufferDescriptor line, std::size_t bytes) {
  const Peer& from = members_.peers[peer];
  if (from.same_process) return reinterpret_cast<std::byte*>(line.address);
  if (line.segment == 0) return static_cast<std::byte*>(nullptr);

  const SegmentName name{.id = line.segment, .generation = line.generation};
  const std::uint64_t end = line.offset + bytes;
  if (end < bytes)
    return Error{.code = Code::remote, .what = "a call descriptor names memory beyond the end of the address space"}
        .at_peer(peer);
  for (const auto& known : mapped_[peer])
    if (known.mapping && known.name == name && known.mapping->bytes() >= end)
      return known.mapping->data() + line.offset;

  const auto fetch = [this, &from](std::uint64_t, SegmentName wanted) -> Result<SegmentTable::Export> {
    auto fetched = fetch_segment(from.fd_server, from.key, wanted, init_limit_ns(), [this] { return failed(); });
    if (!fetched) return std::move(fetched).error();
    return std::move(fetched->segment);
  };
  auto mapping = process_.cache.map(from.token, name, end, fetch);
  if (!mapping) return std::move(mapping).error().during("map the buffer of a peer").at_peer(peer);
  std::byte* const base = (*mapping)->data();
  mapped_[peer][mapped_next_[peer]++ % mapped_[peer].size()] = {.name = name, .mapping = *std::move(mapping)};
  return base + line.offset;
}

void Communicator::drop_if_retired(Rank peer, std::uint32_t retired) {
  if (retired_seen_[peer] == retired) return;
  retired_seen_[peer] = retired;
  mapped_[peer] = {};
}

Error Communicator::lost(Rank rank, std::string_view why) const {
  return {.code = Code::remote, .what = fmt::format("{} lost: {}", describe(rank), why), .peer = rank};
}

Result<void> Communicator::look_before_leaving() {
  constexpr std::int64_t limit_ns = 500'000'000;
  auto alike = comparison_ ? comparison_->look_before_leaving(limit_ns) : tutti::look_before_leaving(*this, limit_ns);
  if (!alike) return alike;
  // Of a rank that has found a mismatch nothing more is to be compared.
  if (auto failure = failure_of_any(*this); failure && failure->code == Code::invalid_usage) return *std::move(failure);
  return {};
}

}  // namespace tutti
