// The GPU memory of an engine: plans, buffers, and objects that a captured graph may still use.
#include <algorithm>
#include <cstring>

#include "cuda/engine.h"
#include "exec/device_program.h"

namespace tutti::cuda {
namespace {

constexpr std::size_t in_flight_most = 64;
constexpr std::size_t plan_buffer_bytes = std::size_t{1} << 20;

/// Objects that a captured graph keeps alive.
struct Kept {
  std::shared_ptr<DeferredReleases> deferred;
  std::vector<std::shared_ptr<const void>> all;
};

/// Called by the driver; must not call the driver.
void defer_release(void* kept) {
  std::shared_ptr<Kept> owned(static_cast<Kept*>(kept));
  const auto deferred = owned->deferred;
  deferred->defer_release(std::move(owned));
}

}  // namespace

Result<std::shared_ptr<const DevicePlan>> Engine::upload(const Plan& plan) {
  const auto current = TUTTI_TRY(Current::enter(*gpu_));
  auto made = std::make_shared<DevicePlan>();
  made->body = kernel_for(plan, {}).body;
  // Its kernel reads no plan. So no such call waits for a copy, which kernels that wait for other ranks hold up if
  // their streams share a hardware queue.
  if (synchronises() && made->body == device::Body::one_shot) return std::shared_ptr<const DevicePlan>(std::move(made));
  const std::vector<Action> actions = device_actions(plan);
  const std::size_t action_bytes = actions.size() * sizeof(Action);
  const std::size_t place_bytes = plan.places.size() * sizeof(Place);
  made->action_count = static_cast<std::uint32_t>(actions.size());
  made->place_count = device::place_count_of(plan.places.size());
  made->scratch_groups = plan.scratch_groups;
  const std::size_t bytes = action_bytes + place_bytes;
  if (bytes == 0) return std::shared_ptr<const DevicePlan>(std::move(made));
  const bool waits = !shape_.frees_late;
  std::byte* at = nullptr;
  const std::byte* from_actions = reinterpret_cast<const std::byte*>(actions.data());
  const std::byte* from_places = reinterpret_cast<const std::byte*>(plan.places.data());
  if (!waits) {
    auto slice = TUTTI_TRY(plan_buffer(bytes));
    at = slice.on_gpu;
    std::memcpy(slice.on_host, from_actions, action_bytes);
    if (place_bytes > 0) std::memcpy(slice.on_host + action_bytes, from_places, place_bytes);
    from_actions = slice.on_host;
    from_places = slice.on_host + action_bytes;
  } else {
    made->memory = TUTTI_TRY(DeviceMemory::allocate(gpu_, bytes));
    at = made->memory.data();
  }
  made->actions = reinterpret_cast<const Action*>(at);
  made->places = reinterpret_cast<const Place*>(at + action_bytes);
  if (action_bytes > 0) TUTTI_TRY(gpu_->copy(at, from_actions, action_bytes, setup_.get()));
  if (place_bytes > 0) TUTTI_TRY(gpu_->copy(at + action_bytes, from_places, place_bytes, setup_.get()));
  if (waits) {
    TUTTI_TRY(gpu_->synchronize(setup_.get()));
  } else {
    TUTTI_TRY(gpu_->record(uploaded_.get(), setup_.get()));
    uploads_pending_ = true;
  }
  return std::shared_ptr<const DevicePlan>(std::move(made));
}

/// Takes memory from a few large allocations that live as long as the engine.
Result<Engine::PlanSlice> Engine::plan_buffer(std::size_t bytes) {
  if (plan_buffers_.empty() || plan_buffer_used_ + bytes > plan_buffers_.back().memory.bytes()) {
    auto larger = TUTTI_TRY(DeviceMemory::allocate(gpu_, std::max(plan_buffer_bytes, bytes)));
    auto mirror = TUTTI_TRY(PinnedMemory::allocate(gpu_, larger.bytes()));
    plan_buffers_.push_back({.memory = std::move(larger), .mirror = std::move(mirror)});
    plan_buffer_used_ = 0;
  }
  const PlanBuffer& buffer = plan_buffers_.back();
  const PlanSlice slice{.on_gpu = buffer.memory.data() + plan_buffer_used_,
                        .on_host = buffer.mirror.host() + plan_buffer_used_};
  plan_buffer_used_ += round_up(bytes);
  return slice;
}

/// The copies of plans precede what `stream` gets from now on. A graph is replayed without them, so they must have
/// ended.
Result<void> Engine::follow_uploads(Stream stream, bool captured) {
  if (!uploads_pending_) return {};
  const Status status = captured ? status::success : gpu_->api().event_query(uploaded_.get());
  if (status == status::not_ready) return gpu_->follow(stream, uploaded_.get());
  TUTTI_TRY(gpu_->check(status, "cuEventQuery"));
  if (captured) TUTTI_TRY(gpu_->synchronize(setup_.get()));
  uploads_pending_ = false;
  return {};
}

/// Replaces `memory` by a larger allocation if it has fewer than `bytes`.
Result<void> Engine::enlarge(std::shared_ptr<const DeviceMemory>& memory, std::size_t bytes) {
  if (memory != nullptr && memory->bytes() >= bytes) return {};
  auto larger = TUTTI_TRY(DeviceMemory::allocate(gpu_, std::max(bytes, memory == nullptr ? 0 : 2 * memory->bytes())));
  if (memory != nullptr) in_flight_.push_back(memory);
  memory = std::make_shared<const DeviceMemory>(std::move(larger));
  return {};
}

Result<void> Engine::make_buffers(const Job& job, std::span<const Part> parts,
                                  std::span<const device::PeerBuffers> buffers) {
  int groups = 0;
  std::size_t staged = 0, blocks = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    if (part.scratch == nullptr) groups = std::max(groups, part.plan->scratch_groups);
    if (part.windows) groups = std::max(groups, part.windows->scratch_groups);
    staged = std::max(staged, part.staged);
    blocks = std::max(blocks, reduction_bytes(job, part, buffers[static_cast<std::size_t>(shape_.local[i])]));
  }
  const std::size_t group_bytes = job.count * size_of(job.type);
  const std::size_t scratch_bytes = round_up(std::max(static_cast<std::size_t>(groups) * group_bytes, blocks));
  const std::size_t staging_bytes = round_up(staged);
  if (scratch_bytes > 0) TUTTI_TRY(enlarge(scratch_, scratch_bytes * parts.size()));
  if (staging_bytes > 0) TUTTI_TRY(enlarge(staging_, staging_bytes * parts.size()));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    local_ranks_[i].scratch = scratch_bytes > 0 ? scratch_->data() + i * scratch_bytes : parts[i].scratch;
    local_ranks_[i].staging = staging_bytes > 0 ? staging_->data() + i * staging_bytes : nullptr;
  }
  return {};
}

/// The oldest one if its kernel has ended and it is large enough, otherwise another. A graph gets one of its own.
Result<Engine::Table> Engine::take_table(std::size_t bytes, bool captured) {
  if (!captured && launched_.any && !tables_.empty()) {
    const Status status = gpu_->api().event_query(tables_.front().ended.get());
    if (status == status::success) {
      Table oldest = std::move(tables_.front());
      tables_.erase(tables_.begin());
      if (oldest.memory->bytes() >= bytes) return oldest;
      in_flight_.push_back(std::move(oldest.memory));  // freed late: to free it now may wait for kernels
    } else if (status != status::not_ready) {
      TUTTI_TRY(gpu_->check(status, "cuEventQuery"));
    }
  }
  Table made;
  constexpr std::size_t usual_bytes = 48 * 1024;  // transfers of 16 local ranks, or 2,048 messages
  made.memory =
      std::make_shared<const PinnedMemory>(TUTTI_TRY(PinnedMemory::allocate(gpu_, std::max(bytes, usual_bytes))));
  if (captured) return made;
  made.ended = TUTTI_TRY(OwnEvent::create(gpu_));
  return made;
}

/// Makes the graph own all that a call of it may use, so that it may outlive the communicator and its plans.
Result<void> Engine::retain(const Capture& capture, std::vector<std::shared_ptr<const void>> what) {
  auto* const kept = new Kept;  // owned by the driver once the user object is created
  kept->deferred = deferred_;
  kept->all = std::move(what);
  kept->all.push_back(graphs_);
  kept->all.push_back(shared_from_this());
  const Api& api = gpu_->api();
  UserObject object = nullptr;
  if (auto made = gpu_->check(api.user_object_create(&object, kept, defer_release, 1, user_object_unsynchronized),
                              "cuUserObjectCreate");
      !made) {
    delete kept;
    return made;
  }
  auto retained =
      gpu_->check(api.graph_retain(capture.graph, object, 1, graph_takes_reference), "cuGraphRetainUserObject");
  if (!retained) (void)api.user_object_release(object, 1);
  return retained;
}

/// Plans may leave the cache while kernels still read them. in_flight_ keeps such plans until no kernel runs.
void Engine::keep(std::span<const Part> parts) {
  if (!shape_.frees_late && in_flight_.size() > in_flight_most &&
      gpu_->api().event_query(launched_.ended.get()) == status::success)
    in_flight_.clear();
  for (const Part& part : parts)
    for (const auto& plan : {part.plan, part.windows, part.reduction.combine.uploaded, part.reduction.scale.uploaded})
      if (plan && std::ranges::find(in_flight_, std::static_pointer_cast<const void>(plan)) == in_flight_.end())
        in_flight_.push_back(plan);
}

}  // namespace tutti::cuda
