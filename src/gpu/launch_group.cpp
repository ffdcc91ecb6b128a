#include "gpu/launch_group.h"

#include <algorithm>

#include <fmt/format.h>

#include "call/layout.h"
#include "call/mismatch.h"
#include "call/packed_signature.h"
#include "gpu/peer_sharing.h"

namespace tutti {
namespace {

/// Of the input of an all-to-all in place.
std::size_t staged_bytes(const Request& request, int ranks) {
  if (!request.copies_input()) return 0;
  if (request.layout) return request.layout->input_elements * size_of(request.type);
  return request.group_bytes() * static_cast<std::size_t>(ranks);
}

Error different(const cuda::KernelFailures::Difference& calls) {
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

}  // namespace

LaunchGroup::LaunchGroup(GpuProcess& process, std::vector<Rank> members, int ranks)
    : process_(process), communicator_ranks_(ranks), arrivals_(std::move(members)), gpus_(arrivals_.ranks().size()) {}

std::shared_ptr<LaunchGroup> LaunchGroup::of(GpuProcess& process, std::uint32_t key, std::vector<Rank> members,
                                             int ranks) {
  return process.directory.find_or_make<LaunchGroup>(
      key, [&] { return std::make_shared<LaunchGroup>(process, std::move(members), ranks); });
}

LaunchGroup::~LaunchGroup() {
  if (!engine_) return;
  if (!process_.idle_or_keep([this] { return engine_->idle(); }, {engine_})) return;
  engine_.reset();
  process_.deferred->empty();
}

Result<void> LaunchGroup::enter(Rank rank, cuda::SharedGpu gpu, RemoteGroups remote) {
  const std::lock_guard lock(mutex_);
  gpus_[arrivals_.index_of(rank)] = std::move(gpu);
  arrivals_.enter(rank);
  if (remote.areas.empty()) return {};
  remote_groups_.areas = std::move(remote.areas);
  remote_groups_.channels = remote.channels;
  for (auto& held : remote.held) remote_groups_.held.push_back(std::move(held));
  if (std::ranges::find(gpus_, nullptr) != gpus_.end()) return {};
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

Result<void> LaunchGroup::host_call(Rank rank, bool host_staged) {
  const std::lock_guard lock(mutex_);
  return arrivals_.host_call(rank, host_staged);
}

bool LaunchGroup::arrive(Rank rank, const GpuOffer& offer) {
  const std::lock_guard lock(mutex_);
  const auto all = arrivals_.arrive(rank, offer);
  if (!all) {
    failure_ = all.error();
    return true;
  }
  if (!*all) return false;
  if (auto launched = launch(); !launched) failure_ = launched.error();
  arrivals_.end();
  return true;
}

Result<void> LaunchGroup::outcome() const {
  const std::lock_guard lock(mutex_);
  if (failure_) return *failure_;
  return {};
}

void LaunchGroup::withdraw(Rank rank) {
  const std::lock_guard lock(mutex_);
  arrivals_.withdraw(rank);
}

/// Opens the engine when all ranks have arrived for the first time.
Result<void> LaunchGroup::open() {
  if (engine_) return {};
  const auto refused = [](std::string what) { return Error{.code = Code::invalid_usage, .what = std::move(what)}; };
  cuda::EngineShape shape{.ranks = communicator_ranks_,
                          .local = arrivals_.ranks(),
                          .channels_max = is_single_launch() ? process_.settings.channels_max : remote_groups_.channels,
                          .limit_ns = process_.settings.limit_ns,
                          .scratch_bytes = process_.settings.scratch_bytes,
                          .specialised = process_.settings.specialised,
                          .frees_late = !is_single_launch(),
                          .areas = remote_groups_.areas,
                          .held = remote_groups_.held};
  const auto& gpu = gpus_.front();
  for (std::size_t i = 0; i < gpus_.size(); ++i)
    if (gpus_[i]->ordinal() != gpu->ordinal())
      return refused(
          fmt::format("rank {} is on GPU {} and rank {} on GPU {}: kernels that launch together must be on one GPU",
                      shape.local.front(), gpu->ordinal(), shape.local[i], gpus_[i]->ordinal()));
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
  TUTTI_TRY(arrivals_.compare());
  TUTTI_TRY(open());
  std::vector<cuda::Part> parts;
  std::vector<device::PeerBuffers> buffers(static_cast<std::size_t>(communicator_ranks_));
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    const GpuOffer& offer = arrivals_.offer(i);
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
    buffers[static_cast<std::size_t>(arrivals_.ranks()[i])] = {
        .input = request.input, .output = request.output, .scalar = request.scalar};
  }
  const GpuOffer& any = arrivals_.offer(0);
  const Request& first = *any.request;
  cuda::CollectiveJob job{.plan = &any.plan->plan,
                          .windows = any.windows == nullptr ? nullptr : &any.windows->plan,
                          .type = first.type,
                          .op = first.op,
                          .count = first.count,
                          .exchange = first.layout != nullptr};
  if (!is_single_launch())
    job.signature = [call = first.signature()](std::uint32_t channels) {
      return PackedSignature{.signature = call, .channels = channels}.pack();
    };
  if (any.combine != nullptr) return engine_->launch_reduction(job, parts, buffers);
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
