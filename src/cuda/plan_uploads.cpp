#include "cuda/plan_uploads.h"

#include <algorithm>
#include <span>
#include <utility>

#include "cuda/areas.h"
#include "exec/device_program.h"

namespace tutti::cuda {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

}  // namespace

Result<PlanUploads> PlanUploads::make(const SharedGpu& gpu, const EngineShape& shape) {
  PlanUploads made;
  made.gpu_ = gpu;
  made.synchronises_ = shape.synchronises();
  made.frees_late_ = shape.frees_late;
  made.stream_ = TUTTI_TRY(OwnStream::create(gpu));
  made.uploaded_ = TUTTI_TRY(OwnEvent::create(gpu));
  if (shape.frees_late) TUTTI_TRY(made.take(0));
  return made;
}

Result<std::shared_ptr<const DevicePlan>> PlanUploads::upload(const Plan& plan) {
  const auto current = TUTTI_TRY(Current::enter(*gpu_));
  auto made = std::make_shared<DevicePlan>();
  made->body = kernel_for(plan, {}).body;
  // Its kernel reads no plan. So no such call waits for a copy, which kernels that wait for other ranks hold up if
  // their streams share a hardware queue.
  if (synchronises_ && made->body == device::Body::one_shot) return std::shared_ptr<const DevicePlan>(std::move(made));
  const std::vector<Action> actions = device_actions(plan);
  const std::size_t action_bytes = actions.size() * sizeof(Action);
  made->action_count = static_cast<std::uint32_t>(actions.size());
  made->place_count = device::place_count_of(plan.places.size());
  made->scratch_groups = plan.scratch_groups;
  const std::size_t bytes = action_bytes + plan.places.size() * sizeof(Place);
  if (bytes == 0) return std::shared_ptr<const DevicePlan>(std::move(made));
  std::byte *at = nullptr, *mirror = nullptr;
  std::vector<std::byte> until_copied;
  if (frees_late_) {
    const std::size_t offset = TUTTI_TRY(take(bytes));
    at = buffers_.back().memory.data() + offset;
    mirror = buffers_.back().mirror.host() + offset;
  } else {
    made->memory = TUTTI_TRY(DeviceMemory::allocate(gpu_, bytes));
    at = made->memory.data();
    until_copied.resize(bytes);
    mirror = until_copied.data();
  }
  std::ranges::copy(std::as_bytes(std::span(actions)), mirror);
  std::ranges::copy(std::as_bytes(std::span(plan.places)), mirror + action_bytes);
  made->actions = reinterpret_cast<const Action*>(at);
  made->places = reinterpret_cast<const Place*>(at + action_bytes);
  TUTTI_TRY(gpu_->copy(at, mirror, bytes, stream_.get()));
  if (frees_late_)
    TUTTI_TRY(gpu_->record(uploaded_.get(), stream_.get()));
  else
    TUTTI_TRY(gpu_->synchronize(stream_.get()));
  pending_ = frees_late_;
  return std::shared_ptr<const DevicePlan>(std::move(made));
}

/// Takes memory from a few large allocations that live as long as this. Returns where it begins in the last one.
Result<std::size_t> PlanUploads::take(std::size_t bytes) {
  if (buffers_.empty() || used_ + bytes > buffers_.back().memory.bytes()) {
    auto larger = TUTTI_TRY(DeviceMemory::allocate(gpu_, std::max(buffer_bytes, bytes)));
    auto mirror = TUTTI_TRY(PinnedMemory::allocate(gpu_, larger.bytes()));
    buffers_.push_back({.memory = std::move(larger), .mirror = std::move(mirror)});
    used_ = 0;
  }
  return std::exchange(used_, used_ + round_up(bytes));
}

Result<void> PlanUploads::follow(Stream stream, bool captured) {
  if (!pending_) return {};
  const Status status = captured ? status::success : gpu_->api().event_query(uploaded_.get());
  if (status == status::not_ready) return gpu_->follow(stream, uploaded_.get());
  TUTTI_TRY(gpu_->check(status, "cuEventQuery"));
  if (captured) TUTTI_TRY(gpu_->synchronize(stream_.get()));
  pending_ = false;
  return {};
}

}  // namespace tutti::cuda
