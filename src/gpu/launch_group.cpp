#include "gpu/launch_group.h"

#include <cassert>

#include <fmt/format.h>

#include "call/mismatch.h"

namespace tutti {
namespace {

constexpr std::uint64_t remembered = 64;

}  // namespace

LaunchGroup::LaunchGroup(GpuProcess& process, int ranks)
    : process_(process), ranks_(ranks), members_(static_cast<std::size_t>(ranks)) {}

std::shared_ptr<LaunchGroup> LaunchGroup::of(GpuProcess& process, std::uint32_t key, int ranks) {
  return process.directory.find_or_make<LaunchGroup>(key,
                                                     [&] { return std::make_shared<LaunchGroup>(process, ranks); });
}

LaunchGroup::~LaunchGroup() {
  if (!engine_) return;
  if (!process_.idle_or_keep([this] { return engine_->idle(); }, {engine_})) return;
  engine_.reset();
  process_.deferred->empty();
}

void LaunchGroup::enter(Rank rank, cuda::SharedGpu gpu) {
  const std::lock_guard lock(mutex_);
  Member& member = members_[static_cast<std::size_t>(rank)];
  member.gpu = std::move(gpu);
  member.driver = std::this_thread::get_id();
}

Error LaunchGroup::mixed(Rank host, Rank device) {
  return {.code = Code::invalid_usage,
          .what = fmt::format("in one call rank {} has host memory and rank {} device memory: all ranks of a call must "
                              "use the same kind of memory",
                              host, device)};
}

Result<void> LaunchGroup::host_call(Rank rank, bool host_staged) {
  const std::lock_guard lock(mutex_);
  Member& own = members_[static_cast<std::size_t>(rank)];
  own.host_calls |= std::uint64_t{1} << (++own.calls % remembered);
  if (!host_staged) own.driver = std::this_thread::get_id();
  for (const Member& peer : members_)
    if (peer.waiting && peer.calls == own.calls) return mixed(rank, static_cast<Rank>(&peer - members_.data()));
  return {};
}

bool LaunchGroup::arrive(Rank rank, const GpuOffer& offer) {
  const std::lock_guard lock(mutex_);
  Member& own = members_[static_cast<std::size_t>(rank)];
  assert(!own.waiting);
  own.host_calls &= ~(std::uint64_t{1} << (++own.calls % remembered));
  own.driver = std::this_thread::get_id();
  own.offer = offer;
  own.waiting = true;
  ++arrived_;
  for (const Member& peer : members_)
    if (peer.calls >= own.calls && peer.calls < own.calls + remembered &&
        (peer.host_calls >> (own.calls % remembered) & 1) != 0) {
      failure_ = mixed(static_cast<Rank>(&peer - members_.data()), rank);
      own.waiting = false;  // the other ranks learn of it from this rank's failure
      --arrived_;
      return true;
    }
  if (arrived_ < ranks_) return false;
  if (auto launched = launch(); !launched) failure_ = launched.error();
  for (Member& member : members_) member.waiting = false;
  arrived_ = 0;
  return true;
}

bool LaunchGroup::finished(Rank rank) const {
  const std::lock_guard lock(mutex_);
  return !members_[static_cast<std::size_t>(rank)].waiting;
}

Result<void> LaunchGroup::outcome() const {
  const std::lock_guard lock(mutex_);
  if (failure_) return *failure_;
  return {};
}

void LaunchGroup::withdraw(Rank rank) {
  const std::lock_guard lock(mutex_);
  Member& member = members_[static_cast<std::size_t>(rank)];
  if (!member.waiting) return;
  member.waiting = false;
  --arrived_;
}

Rank LaunchGroup::missing(Rank rank) const {
  const std::lock_guard lock(mutex_);
  if (!members_[static_cast<std::size_t>(rank)].waiting) return -1;
  for (const Member& member : members_)
    if (!member.waiting) return static_cast<Rank>(&member - members_.data());
  return -1;
}

bool LaunchGroup::waits_for_itself(Rank rank) const {
  const std::lock_guard lock(mutex_);
  if (!members_[static_cast<std::size_t>(rank)].waiting) return false;
  for (const Member& member : members_)
    if (!member.waiting && member.driver != std::this_thread::get_id()) return false;
  return true;
}

Result<void> LaunchGroup::compare() const {
  const Request& first = *members_.front().offer.request;
  for (const Member& member : members_) {
    const Request& request = *member.offer.request;
    if (request.signature() == first.signature()) continue;
    return Error{.code = Code::invalid_usage,
                 .what = fmt::format("ranks make different calls: rank 0 {}, rank {} {}", call_text(first.signature()),
                                     &member - members_.data(), call_text(request.signature()))};
  }
  return {};
}

/// Opens the engine when all ranks have arrived for the first time.
Result<void> LaunchGroup::open() {
  if (engine_) return {};
  const auto refused = [](std::string what) { return Error{.code = Code::invalid_usage, .what = std::move(what)}; };
  cuda::EngineShape shape{.ranks = ranks_,
                          .channels_max = process_.channels_max,
                          .limit_ns = process_.limit_ns,
                          .specialised = process_.specialised};
  const auto& gpu = members_.front().gpu;
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const auto& other = members_[static_cast<std::size_t>(rank)].gpu;
    if (other->ordinal() != gpu->ordinal())
      return refused(
          fmt::format("rank 0 is on GPU {} and rank {} on GPU {}: kernels that launch together must be on one GPU",
                      gpu->ordinal(), rank, other->ordinal()));
    shape.local.push_back(rank);
  }
  auto kernels = process_.kernels(gpu);
  if (!kernels) return std::move(kernels).error();
  auto engine = cuda::Engine::open(gpu, *std::move(kernels), std::move(shape), process_.deferred);
  if (!engine) return std::move(engine).error();
  engine_ = *std::move(engine);
  launched_.store(engine_.get(), std::memory_order_release);
  return {};
}

Result<void> LaunchGroup::launch() {
  if (auto same = compare(); !same) return same;
  if (auto ready = open(); !ready) return ready;
  std::vector<cuda::Part> parts;
  std::vector<device::PeerBuffers> buffers;
  for (Member& member : members_) {
    const Request& request = *member.offer.request;
    GpuPlan& plan = *member.offer.plan;
    if (!plan.uploaded) {
      auto uploaded = engine_->upload(plan.plan);
      if (!uploaded) return std::move(uploaded).error();
      plan.uploaded = *std::move(uploaded);
    }
    parts.push_back(
        {.stream = member.offer.stream, .plan = plan.uploaded, .staged = request.copies_input() && request.count > 0});
    buffers.push_back({.input = request.input, .output = request.output, .scalar = request.scalar});
  }
  const Request& first = *members_.front().offer.request;
  const cuda::Job job{.plan = &members_.front().offer.plan->plan,
                      .type = first.type,
                      .op = first.op,
                      .count = first.count,
                      .input_bytes = first.collective == Collective::all_to_all
                                         ? first.group_bytes() * static_cast<std::size_t>(ranks_)
                                         : 0};
  return engine_->launch(job, parts, buffers);
}

void LaunchGroup::abort() {
  if (auto* engine = launched_.load(std::memory_order_acquire)) engine->abort();
}

std::optional<Error> LaunchGroup::trouble() const {
  const auto* engine = launched_.load(std::memory_order_acquire);
  return engine == nullptr ? std::nullopt : engine->trouble();
}

Result<bool> LaunchGroup::idle() const {
  auto* engine = launched_.load(std::memory_order_acquire);
  if (engine == nullptr) return true;
  return engine->idle();
}

}  // namespace tutti
