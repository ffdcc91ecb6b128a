#include "gpu/launch_group.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "call/layout.h"
#include "call/mismatch.h"
#include "call/packed_signature.h"
#include "gpu/peer_sharing.h"

namespace tutti {
namespace {

constexpr std::uint64_t remembered = 64;

/// Of the input of an all-to-all in place.
std::size_t staged_bytes(const Request& request, int ranks) {
  if (!request.copies_input()) return 0;
  if (request.layout) return request.layout->input_elements * size_of(request.type);
  return request.group_bytes() * static_cast<std::size_t>(ranks);
}

}  // namespace

LaunchGroup::LaunchGroup(GpuProcess& process, std::vector<Rank> members, int ranks)
    : process_(process), ranks_(std::move(members)), communicator_ranks_(ranks), members_(ranks_.size()) {}

std::shared_ptr<LaunchGroup> LaunchGroup::of(GpuProcess& process, std::uint32_t key, std::vector<Rank> members,
                                             int ranks) {
  return process.directory.find_or_make<LaunchGroup>(
      key, [&] { return std::make_shared<LaunchGroup>(process, std::move(members), ranks); });
}

std::size_t LaunchGroup::index_of(Rank rank) const {
  return static_cast<std::size_t>(std::ranges::find(ranks_, rank) - ranks_.begin());
}

LaunchGroup::~LaunchGroup() {
  if (!engine_) return;
  if (!process_.idle_or_keep([this] { return engine_->idle(); }, {engine_})) return;
  engine_.reset();
  process_.deferred->empty();
}

void LaunchGroup::enter(Rank rank, cuda::SharedGpu gpu) {
  const std::lock_guard lock(mutex_);
  Member& entered = member(rank);
  entered.gpu = std::move(gpu);
  entered.driver = std::this_thread::get_id();
}

bool LaunchGroup::has_all() const {
  return std::ranges::all_of(members_, [](const Member& one) { return one.gpu != nullptr; });
}

Result<void> LaunchGroup::enter(Rank rank, cuda::SharedGpu gpu, RemoteGroups remote) {
  enter(rank, std::move(gpu));
  const std::lock_guard lock(mutex_);
  remote_groups_.areas = std::move(remote.areas);
  remote_groups_.channels = remote.channels;
  for (auto& held : remote.held) remote_groups_.held.push_back(std::move(held));
  if (!has_all()) return {};
  constexpr std::int64_t longest_ns = 5'000'000'000;  // processes that share a GPU take turns
  auto launched = open();
  if (launched) launched = engine_->prove(longest_ns);
  if (!launched) failure_ = launched.error();
  return launched;
}

std::optional<Result<void>> LaunchGroup::proof() const {
  const std::lock_guard lock(mutex_);
  if (failure_) return Result<void>(*failure_);
  if (!engine_) return std::nullopt;
  auto ended = engine_->idle();
  if (!ended) return Result<void>(ended.error());
  if (!*ended) return std::nullopt;
  if (auto met = engine_->failures().trouble()) return Result<void>(*std::move(met));
  return Result<void>();
}

Error LaunchGroup::mixed(Rank host, Rank device) {
  return {.code = Code::invalid_usage,
          .what = fmt::format("in one call rank {} has host memory and rank {} device memory: all ranks of a call must "
                              "use the same kind of memory",
                              host, device)};
}

Result<void> LaunchGroup::host_call(Rank rank, bool host_staged) {
  const std::lock_guard lock(mutex_);
  Member& own = member(rank);
  own.host_calls |= std::uint64_t{1} << (++own.calls % remembered);
  if (!host_staged) own.driver = std::this_thread::get_id();
  for (const Member& peer : members_)
    if (peer.waiting && peer.calls == own.calls) return mixed(rank, rank_of(peer));
  return {};
}

bool LaunchGroup::arrive(Rank rank, const GpuOffer& offer) {
  const std::lock_guard lock(mutex_);
  Member& own = member(rank);
  assert(!own.waiting);
  own.host_calls &= ~(std::uint64_t{1} << (++own.calls % remembered));
  own.driver = std::this_thread::get_id();
  own.offer = offer;
  own.waiting = true;
  ++arrived_;
  for (const Member& peer : members_)
    if (peer.calls >= own.calls && peer.calls < own.calls + remembered &&
        (peer.host_calls >> (own.calls % remembered) & 1) != 0) {
      failure_ = mixed(rank_of(peer), rank);
      own.waiting = false;  // the other ranks learn of it from this rank's failure
      own.offer = {};
      --arrived_;
      return true;
    }
  if (arrived_ < static_cast<int>(members_.size())) return false;
  if (auto launched = launch(); !launched) failure_ = launched.error();
  for (Member& one : members_) {
    one.waiting = false;
    one.offer = {};  // it keeps buffers from being unmapped
  }
  arrived_ = 0;
  return true;
}

bool LaunchGroup::finished(Rank rank) const {
  const std::lock_guard lock(mutex_);
  return !member(rank).waiting;
}

Result<void> LaunchGroup::outcome() const {
  const std::lock_guard lock(mutex_);
  if (failure_) return *failure_;
  return {};
}

void LaunchGroup::withdraw(Rank rank) {
  const std::lock_guard lock(mutex_);
  Member& own = member(rank);
  if (!own.waiting) return;
  own.waiting = false;
  own.offer = {};
  --arrived_;
}

Rank LaunchGroup::missing(Rank rank) const {
  const std::lock_guard lock(mutex_);
  if (!member(rank).waiting) return -1;
  for (const Member& one : members_)
    if (!one.waiting) return rank_of(one);
  return -1;
}

bool LaunchGroup::waits_for_itself(Rank rank) const {
  const std::lock_guard lock(mutex_);
  if (!member(rank).waiting) return false;
  for (const Member& one : members_)
    if (!one.waiting && one.driver != std::this_thread::get_id()) return false;
  return true;
}

Result<void> LaunchGroup::compare() const {
  const Request& first = *members_.front().offer.request;
  for (const Member& one : members_) {
    const Request& request = *one.offer.request;
    if (request.signature() == first.signature()) continue;
    return Error{.code = Code::invalid_usage,
                 .what = fmt::format("ranks make different calls: rank {} {}, rank {} {}", ranks_.front(),
                                     call_text(first.signature()), rank_of(one), call_text(request.signature()))};
  }
  return {};
}

/// Opens the engine when all ranks have arrived for the first time.
Result<void> LaunchGroup::open() {
  if (engine_) return {};
  const auto refused = [](std::string what) { return Error{.code = Code::invalid_usage, .what = std::move(what)}; };
  cuda::EngineShape shape{.ranks = communicator_ranks_,
                          .local = ranks_,
                          .channels_max = is_single_launch() ? process_.settings.channels_max : remote_groups_.channels,
                          .limit_ns = process_.settings.limit_ns,
                          .scratch_bytes = process_.settings.scratch_bytes,
                          .specialised = process_.settings.specialised,
                          .frees_late = !is_single_launch(),
                          .areas = remote_groups_.areas,
                          .held = remote_groups_.held};
  const auto& gpu = members_.front().gpu;
  for (const Member& other : members_)
    if (other.gpu->ordinal() != gpu->ordinal())
      return refused(
          fmt::format("rank {} is on GPU {} and rank {} on GPU {}: kernels that launch together must be on one GPU",
                      ranks_.front(), gpu->ordinal(), rank_of(other), other.gpu->ordinal()));
  if (!is_single_launch()) shape.order = TUTTI_TRY(process_.launch_order(gpu));
  auto kernels = TUTTI_TRY(process_.kernels(gpu));
  engine_ = TUTTI_TRY(cuda::Engine::open(gpu, std::move(kernels), std::move(shape), process_.deferred));
  launched_.store(engine_.get(), std::memory_order_release);
  return {};
}

void LaunchGroup::be_watched(const std::shared_ptr<PeerSharing>& sharing) const {
  const std::lock_guard lock(mutex_);
  sharing->watch(*engine_);
  engine_->hold(sharing);
}

Result<void> LaunchGroup::launch() {
  TUTTI_TRY(compare());
  TUTTI_TRY(open());
  std::vector<cuda::Part> parts;
  std::vector<device::PeerBuffers> buffers(static_cast<std::size_t>(communicator_ranks_));
  for (Member& one : members_) {
    const GpuOffer& offer = one.offer;
    const Request& request = *offer.request;
    cuda::Part& part = parts.emplace_back(offer.part);
    part.staged = staged_bytes(request, communicator_ranks_);
    for (const auto& [plan, to] : {std::pair{offer.plan, &part.plan},
                                   {offer.combine, &part.reduction.combine.uploaded},
                                   {offer.scale, &part.reduction.scale.uploaded},
                                   {offer.windows, &part.windows}}) {
      if (plan == nullptr) continue;
      if (!plan->uploaded) plan->uploaded = TUTTI_TRY(engine_->upload(plan->plan));
      *to = plan->uploaded;
    }
    buffers[static_cast<std::size_t>(rank_of(one))] = {
        .input = request.input, .output = request.output, .scalar = request.scalar};
  }
  const Request& first = *members_.front().offer.request;
  GpuPlan* const windows = members_.front().offer.windows;
  cuda::Job job{.plan = &members_.front().offer.plan->plan,
                .windows = windows == nullptr ? nullptr : &windows->plan,
                .type = first.type,
                .op = first.op,
                .count = first.count,
                .exchange = first.layout != nullptr};
  if (!is_single_launch())
    job.signature = [call = first.signature()](std::uint32_t channels) {
      return PackedSignature{.signature = call, .channels = channels}.pack();
    };
  if (members_.front().offer.combine != nullptr) return engine_->launch_reduction(job, parts, buffers);
  return engine_->launch(job, parts, buffers);
}

Result<void> LaunchGroup::launch_messages(const cuda::MessagesJob& job) {
  const std::lock_guard lock(mutex_);
  TUTTI_TRY(open());
  return engine_->launch_messages(job);
}

void LaunchGroup::abort() {
  if (auto* engine = launched_.load(std::memory_order_acquire)) engine->failures().abort();
}

Error LaunchGroup::different(const cuda::KernelFailures::Difference& calls) {
  const auto own = PackedSignature::unpack(calls.own), theirs = PackedSignature::unpack(calls.theirs);
  const auto text = [&own, &theirs](const PackedSignature& one) {
    if (own.signature == theirs.signature)
      return fmt::format("{} by {} blocks", call_text(one.signature), one.channels);
    return call_text(one.signature);
  };
  return {.code = Code::invalid_usage,
          .what = fmt::format("ranks make different calls: rank {} {}, rank {} {} (found by the kernel of rank {})",
                              calls.rank, text(own), calls.peer, text(theirs), calls.rank),
          .peer = calls.peer};
}

std::optional<Error> LaunchGroup::trouble() const {
  auto* engine = launched_.load(std::memory_order_acquire);
  if (engine == nullptr) return std::nullopt;
  if (const auto differs = engine->failures().difference()) return different(*differs);
  return engine->failures().trouble();
}

Result<bool> LaunchGroup::idle() const {
  auto* engine = launched_.load(std::memory_order_acquire);
  if (engine == nullptr) return true;
  return engine->idle();
}

}  // namespace tutti
