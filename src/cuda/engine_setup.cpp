// What an engine makes before its first launch.
#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "cuda/engine.h"

namespace tutti::cuda {

Engine::Engine(SharedGpu gpu, std::shared_ptr<const Kernels> kernels, EngineShape shape,
               std::shared_ptr<DeferredReleases> deferred)
    : gpu_(std::move(gpu)),
      kernels_(std::move(kernels)),
      shape_(std::move(shape)),
      deferred_(std::move(deferred)),
      local_ranks_(shape_.local.size()) {}

Engine::~Engine() {
  watch_ = {};
  auto current = Current::enter(*gpu_);
  if (!current) return;
  in_flight_.clear();
}

Result<std::shared_ptr<Engine>> Engine::open(SharedGpu gpu, std::shared_ptr<const Kernels> kernels, EngineShape shape,
                                             std::shared_ptr<DeferredReleases> deferred) {
  assert(!shape.local.empty());
  const auto refused = [](std::string what) { return Error{.code = Code::invalid_usage, .what = std::move(what)}; };
  if (shape.local.size() > device::local_ranks_max)
    return refused(fmt::format("{} ranks of one communicator are on GPU {}: at most {} can share one",
                               shape.local.size(), gpu->ordinal(), device::local_ranks_max));
  if (shape.ranks > device::ranks_max)
    return refused(fmt::format("calls on device memory support at most {} ranks; this communicator has {}",
                               device::ranks_max, shape.ranks));
  std::shared_ptr<Engine> engine(new Engine(std::move(gpu), std::move(kernels), std::move(shape), std::move(deferred)));
  TUTTI_TRY(engine->set_up());
  return engine;
}

Result<void> Engine::set_up() {
  const std::size_t local = shape_.local.size();
  channels_ = std::min(shape_.channels_max, kernels_->blocks_max() / static_cast<int>(local));
  if (channels_ < 1)
    return Error{.code = Code::invalid_usage,
                 .what = fmt::format("GPU {} holds {} blocks at once, too few for {} ranks", gpu_->ordinal(),
                                     kernels_->blocks_max(), local)};
  if (synchronises() && channels_ < shape_.channels_max)
    return Error{.code = Code::invalid_usage,
                 .what = fmt::format("GPU {} holds {} blocks at once, fewer than the {} of each of {} ranks that all "
                                     "ranks agreed on",
                                     gpu_->ordinal(), kernels_->blocks_max(), shape_.channels_max, local)};
  const auto current = TUTTI_TRY(Current::enter(*gpu_));

  setup_ = TUTTI_TRY(OwnStream::create(gpu_));
  ready_.resize(local);
  std::vector<OwnEvent*> events{&launched_.ended, &captured_.ended, &uploaded_};
  for (OwnEvent& one : ready_) events.push_back(&one);
  for (OwnEvent* const one : events) *one = TUTTI_TRY(OwnEvent::create(gpu_));

  area_ = area_for(shape_.ranks, channels_, synchronises());
  if (synchronises() && local == 1) message_area_ = message_area_for(shape_.ranks, channels_);
  const std::size_t area_bytes = synchronises() ? 0 : round_up(area_.bytes());
  const std::size_t link_bytes = round_up(area_.links() * sizeof(device::Link));
  const std::size_t message_link_bytes = round_up(message_area_.links() * sizeof(device::Link));
  memory_ = TUTTI_TRY(DeviceMemory::allocate(gpu_, local * (area_bytes + link_bytes) + message_link_bytes));
  shared_ = TUTTI_TRY(PinnedMemory::allocate(
      gpu_, records_offset + local * static_cast<std::size_t>(channels_) * sizeof(device::ErrorRecord)));

  constexpr int usual_tables = 2 * slices_max;  // more than so many exchanges under way need more memory
  for (int i = 0; i < usual_tables && synchronises(); ++i)
    tables_.push_back(TUTTI_TRY(take_table(/*bytes=*/0, /*captured=*/false)));

  if (shape_.frees_late) TUTTI_TRY(plan_buffer(0));

  TUTTI_TRY(gpu_->clear(memory_.data(), memory_.bytes(), setup_.get()));
  std::vector<std::byte*> areas = shape_.areas;
  areas.resize(static_cast<std::size_t>(shape_.ranks));
  for (std::size_t i = 0; i < local && !synchronises(); ++i)
    areas[static_cast<std::size_t>(shape_.local[i])] = memory_.data() + i * area_bytes;
  for (std::size_t i = 0; i < local; ++i) {
    local_ranks_[i].links = reinterpret_cast<device::Link*>(memory_.data() + local * area_bytes + i * link_bytes);
    TUTTI_TRY(write_links(i, area_, areas, local_ranks_[i].links));
  }
  if (serves_messages()) {
    const std::size_t offset = SyncMemory::of(shape_.ranks).messages_offset;
    for (std::byte*& area : areas)
      if (area != nullptr) area += offset;
    local_ranks_[0].message_links = reinterpret_cast<device::Link*>(memory_.data() + link_bytes);
    TUTTI_TRY(write_links(0, message_area_, areas, local_ranks_[0].message_links));
  }
  if (synchronises() || shape_.frees_late) watch_ = Quiet::Watch(gpu_->quiet(), [this] { return is_quiet(); });
  return gpu_->synchronize(setup_.get());
}

/// Of one local rank to all ranks whose areas are known, and waits for the copy.
Result<void> Engine::write_links(std::size_t local, const device::Area& area, std::span<std::byte* const> areas,
                                 device::Link* to) {
  std::vector<device::Link> links(area.links());
  const auto mine = static_cast<std::uint32_t>(shape_.local[local]);
  for (std::uint32_t channel = 0; channel < area.channels; ++channel)
    for (std::uint32_t peer = 0; peer < area.ranks; ++peer)
      if (peer != mine && areas[peer] != nullptr)
        links[area.index(channel, peer)] = area.link(channel, mine, peer, areas[mine], areas[peer]);
  TUTTI_TRY(gpu_->copy(to, links.data(), links.size() * sizeof(device::Link), setup_.get()));
  return gpu_->synchronize(setup_.get());
}

}  // namespace tutti::cuda
