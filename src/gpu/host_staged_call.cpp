#include "gpu/host_staged_call.h"

#include <algorithm>

#include "call/held_operation.h"
#include "call/layout.h"
#include "gpu/gpu_context.h"
#include "gpu/gpu_peers.h"
#include "gpu/host_staged_operation.h"
#include "plan/schedule.h"

namespace tutti {
namespace {

constexpr std::size_t output_alignment = 4096;

/// Sorts the extents, drops empty ones and merges adjacent ones.
std::vector<Extent> merged(std::vector<Extent> all) {
  std::erase_if(all, [](const Extent& one) { return one.bytes == 0; });
  std::ranges::sort(all, {}, &Extent::begin);
  std::vector<Extent> result;
  for (const Extent& one : all) {
    if (result.empty() || result.back().begin + result.back().bytes < one.begin) {
      result.push_back(one);
      continue;
    }
    Extent& last = result.back();  // blocks that are only read may overlap
    last.bytes = std::max(last.begin + last.bytes, one.begin + one.bytes) - last.begin;
  }
  return result;
}

std::vector<Extent> extents_of(const std::vector<Range>& groups, std::size_t element) {
  std::vector<Extent> all;
  for (const Range& group : groups) all.push_back({.begin = group.begin * element, .bytes = group.count * element});
  return merged(std::move(all));
}

}  // namespace

HostStagedBuffers host_staged_buffers(const Request& request, Rank rank, int ranks) {
  HostStagedBuffers buffers;
  buffers.input.at = const_cast<std::byte*>(request.input);
  buffers.output.at = request.output;
  if (request.layout) {
    buffers.input.extents = extents_of(request.layout->input, size_of(request.type));
    buffers.output.extents = extents_of(request.layout->output, size_of(request.type));
    return buffers;
  }
  const auto whole = [&](int groups) {
    return merged({{.begin = 0, .bytes = static_cast<std::size_t>(groups) * request.group_bytes()}});
  };
  buffers.input.extents = whole(input_groups(request.collective, ranks, rank, request.root));
  buffers.output.extents = whole(output_groups(request.collective, ranks, rank, request.root));
  return buffers;
}

HostStagedBuffers host_staged_buffers(const PeerRequest& request) {
  HostStagedBuffers buffers;
  HostStagedBuffer& only = request.send ? buffers.input : buffers.output;
  only.at = request.data;
  only.extents = merged({{.begin = 0, .bytes = request.bytes}});
  return buffers;
}

Result<std::shared_ptr<HostStagedCall>> stage(Communicator& communicator, const Request& request, cuda::Stream stream) {
  const GpuContext& context = *gpu_context(communicator);
  if (request.form != Form::device)
    return std::make_shared<HostStagedCall>(context.bounce_pool, stream,
                                            host_staged_buffers(request, communicator.rank(), communicator.ranks()));
  auto setup = TUTTI_TRY(context.peers->prepare(communicator, request));
  return std::make_shared<HostStagedCall>(context.bounce_pool, stream, std::move(setup));
}

Result<std::shared_ptr<HostStagedCall>> stage(Communicator& communicator, const PeerRequest& request,
                                              cuda::Stream stream) {
  return std::make_shared<HostStagedCall>(gpu_context(communicator)->bounce_pool, stream, host_staged_buffers(request));
}

void HostStagedCall::make(HeldOperation& made, Communicator& communicator, Request& request) {
  made.emplace<HostStagedCollective>(communicator, request, *this);
}

std::byte* HostStagedCall::transfer_buffer() const {
  if (!landed()) return nullptr;
  return buffers_.input.at != nullptr ? input() : output();
}

HostStagedCall::~HostStagedCall() {
  give_up();
  finish();
}

std::size_t HostStagedCall::output_at() const {
  return (buffers_.input.bytes() + output_alignment - 1) / output_alignment * output_alignment;
}

/// Takes a bounce buffer. finish() sets finished_ and then reads begun_; this function sets begun_ and then reads
/// finished_. So at least one of both sees the other, and the buffer is released.
Result<bool> HostStagedCall::take_buffer(std::uint64_t batch, bool signals) {
  auto buffer = TUTTI_TRY(pool_->lease(output_at() + buffers_.output.bytes(), batch));
  if (buffer == nullptr) return false;
  buffer_ = std::move(buffer);
  signals_ = signals;
  begun_.store(true, std::memory_order_seq_cst);
  if (finished_.load(std::memory_order_seq_cst)) finish();
  return true;
}

Result<void> HostStagedCall::copy(const HostStagedBuffer& buffer, std::byte* host, bool in) const {
  const auto& gpu = *pool_->gpu();
  for (const Extent& part : buffer.extents) {
    const auto there = reinterpret_cast<cuda::Address>(buffer.at + part.begin);
    const auto here = reinterpret_cast<cuda::Address>(host + part.begin);
    const cuda::Status queued = gpu.api().copy_async(in ? here : there, in ? there : here, part.bytes, stream_);
    TUTTI_TRY(gpu.check(queued, "cuMemcpyAsync"));
  }
  return {};
}

/// Copies between the caller's buffer and the buffer used in its place, if they differ.
Result<void> HostStagedCall::copy_buffer(std::byte* to, const std::byte* from, std::size_t bytes) const {
  if (bytes == 0 || to == from) return {};
  const auto& gpu = *pool_->gpu();
  const cuda::Status queued =
      gpu.api().copy_async(reinterpret_cast<cuda::Address>(to), reinterpret_cast<cuda::Address>(from), bytes, stream_);
  return gpu.check(queued, "cuMemcpyAsync");
}

Result<void> HostStagedCall::queue_kernels() const {
  for (std::uint32_t kernel = 1; kernel <= peers_->kernels.size(); ++kernel) {
    TUTTI_TRY(buffer_->await(stream_, kernel));
    TUTTI_TRY(peers_->of->launch(*peers_, kernel, stream_, buffer_->device_table()));
    TUTTI_TRY(buffer_->signal(stream_, kernel));
  }
  return {};
}

Result<bool> HostStagedCall::queue_input(std::uint64_t batch) {
  const auto current = TUTTI_TRY(cuda::Current::enter(*pool_->gpu()));
  if (peers_)
    if (auto settled = peers_->of->choose_buffers(*peers_); !settled || !*settled) return settled;
  auto taken = take_buffer(batch, /*signals=*/true);
  if (!taken || !*taken) return taken;
  if (peers_) {
    TUTTI_TRY(peers_->of->take_turn(stream_));
    const PeerCallSetup::Side& input = peers_->input;
    TUTTI_TRY(copy_buffer(input.used, input.given, input.bytes));
  }
  TUTTI_TRY(copy(buffers_.input, buffer_->data(), /*in=*/true));
  TUTTI_TRY(buffer_->signal(stream_));
  return true;
}

Result<bool> HostStagedCall::queue_nothing(std::uint64_t batch) {
  const auto current = TUTTI_TRY(cuda::Current::enter(*pool_->gpu()));
  return take_buffer(batch, /*signals=*/false);
}

Result<void> HostStagedCall::queue_output() {
  const auto current = TUTTI_TRY(cuda::Current::enter(*pool_->gpu()));
  if (peers_) TUTTI_TRY(queue_kernels());
  TUTTI_TRY(buffer_->await(stream_));
  if (peers_) {
    const PeerCallSetup::Side& output = peers_->output;
    TUTTI_TRY(copy_buffer(output.given, output.used, output.bytes));
    TUTTI_TRY(peers_->of->end_turn(stream_));
  }
  TUTTI_TRY(copy(buffers_.output, buffer_->data() + output_at(), /*in=*/false));
  sealed_ = true;
  return buffer_->seal(stream_);
}

void HostStagedCall::give_up() {
  if (!buffer_ || sealed_) return;
  sealed_ = true;
  if (auto current = cuda::Current::enter(*pool_->gpu())) (void)buffer_->seal(stream_);
}

bool HostStagedCall::landed(std::uint32_t kernel) const {
  return begun_.load(std::memory_order_acquire) && (!signals_ || buffer_->landed(kernel));
}

void HostStagedCall::finish() {
  finished_.store(true, std::memory_order_seq_cst);
  if (begun_.load(std::memory_order_seq_cst) && !released_.exchange(true, std::memory_order_acq_rel))
    buffer_->release();
}

}  // namespace tutti
