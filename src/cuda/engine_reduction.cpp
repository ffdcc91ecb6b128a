// Reductions with a count per rank: ranks exchange blocks, then each reduces what it has got. A pre-multiplied sum
// begins with scaling what is sent.
#include <algorithm>

#include "cuda/engine.h"
#include "exec/device_program.h"

namespace tutti::cuda {
namespace {

constexpr std::size_t word = 16;

constexpr std::size_t in_words(std::size_t bytes) {
  return (bytes + word - 1) / word * word;
}

std::size_t skew_of(const std::byte* at) {
  return reinterpret_cast<std::uintptr_t>(at) % word;
}

}  // namespace

/// Where a rank's scratch memory holds the blocks of all ranks, the partial result, and the scaled input. Each lies as
/// its result does, modulo 16, so that passes take 16 bytes at a time.
struct Engine::Blocks {
  std::size_t first = 0;    ///< offset of rank 0's block
  std::size_t stride = 0;   ///< from block to block; the partial result is behind the last one
  std::size_t scaled = 0;   ///< offset of the scaled input, behind all else
  bool brings_own = false;  ///< the rank's own block is copied there, too, as it lies differently in the input

  std::size_t at(int rank) const { return first + static_cast<std::size_t>(rank) * stride; }
};

Engine::Blocks Engine::blocks_of(const Job& job, const Part& part, const device::PeerBuffers& own) const {
  const LocalReduction& reduction = part.reduction;
  const std::size_t element = size_of(job.type);
  Blocks blocks{.first = skew_of(own.output), .stride = in_words(reduction.count * element)};
  blocks.scaled = in_words(blocks.at(shape_.ranks + 1)) + skew_of(own.input);
  blocks.brings_own = skew_of(own.input + reduction.own_at * element) != blocks.first;
  return blocks;
}

std::size_t Engine::reduction_bytes(const Job& job, const Part& part, const device::PeerBuffers& own) const {
  const LocalReduction& reduction = part.reduction;
  if (reduction.combine.plan == nullptr) return 0;
  // Wherever the buffers lie modulo 16, so that slices need no more than the first one.
  const std::size_t scaled = reduction.scale.plan != nullptr ? reduction.input_elements * size_of(job.type) : 0;
  return static_cast<std::size_t>(shape_.ranks + 1) * blocks_of(job, part, own).stride + 3 * word + scaled;
}

void Engine::write_transfers(const Job& job, std::span<const Part> parts, std::span<const device::PeerBuffers> buffers,
                             const Table& table) const {
  auto* to = reinterpret_cast<device::Transfer*>(table.memory->host());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto* const begin = to;
    to = std::ranges::copy(parts[i].transfers, to).out;
    if (parts[i].reduction.combine.plan == nullptr) continue;
    const Rank rank = shape_.local[i];
    const Blocks blocks = blocks_of(job, parts[i], buffers[static_cast<std::size_t>(rank)]);
    for (Rank peer = 0; peer < shape_.ranks; ++peer) begin[peer].to = blocks.at(peer);
    if (!blocks.brings_own) begin[rank] = {};
  }
}

Result<void> Engine::launch_reduction(const Job& job, std::span<const Part> parts,
                                      std::span<const device::PeerBuffers> buffers) {
  constexpr std::size_t least = 16 * 1024;
  const std::size_t element = size_of(job.type);
  const LocalReduction& any = parts.front().reduction;
  const std::size_t some = std::max(least, shape_.scratch_bytes / static_cast<std::size_t>(shape_.ranks + 1)) / element;
  const std::size_t few = any.largest / slices_max + 1;
  const std::size_t each = any.scale.plan != nullptr ? any.largest : std::max(some, few);  // all is scaled at once
  std::size_t begin = 0;
  do {
    const auto skipped = [&](std::size_t bytes) { return std::min(bytes, begin * element); };
    const auto sliced = [&](std::size_t bytes) { return std::min(bytes - skipped(bytes), each * element); };
    std::vector<Part> slices(parts.begin(), parts.end());
    std::vector<device::PeerBuffers> moved(buffers.begin(), buffers.end());
    std::vector<std::vector<device::Transfer>> transfers(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      transfers[i].assign(parts[i].transfers.begin(), parts[i].transfers.end());
      for (device::Transfer& transfer : transfers[i]) {
        transfer.from += skipped(transfer.sent);
        transfer.sent = sliced(transfer.sent);
        transfer.received = sliced(transfer.received);
      }
      slices[i].transfers = transfers[i];
      LocalReduction& reduction = slices[i].reduction;
      const std::size_t bytes = reduction.count * element;
      moved[static_cast<std::size_t>(shape_.local[i])].output += skipped(bytes);
      reduction.own_at += skipped(bytes) / element;
      reduction.count = sliced(bytes) / element;
    }
    TUTTI_TRY(launch(job, slices, moved));
    begin += each;
  } while (begin < any.largest);
  return {};
}

/// A pass over memory of a local rank.
struct Engine::Pass {
  const LocalPlan& plan;
  DataType type;
  ReduceOp op;
  std::size_t count;
  std::size_t local;  ///< index of the rank
  const std::byte* input;
  std::byte* output;
  std::byte* scratch;
  std::span<const device::PeerBuffers> buffers;
};

Result<void> Engine::start_pass(const Pass& pass, Stream stream) const {
  const DevicePlan& plan = *pass.plan.uploaded;
  Binding binding{.type = pass.type, .op = pass.op, .split = Split(pass.count, size_of(pass.type), 1)};
  share(binding.split, channels_, channel_bytes_min);
  device::Call call{};
  describe(call, *pass.plan.plan, binding);
  fill_common(call, area_);
  call.synchronises = 0;
  call.checks_abort = 1;
  call.local_ranks = 1;
  call.channels = static_cast<std::uint32_t>(
      std::clamp<std::size_t>(binding.split.tiles(), 1, static_cast<std::size_t>(channels_)));
  std::ranges::copy(pass.buffers, call.buffers);
  call.local[0] = {.actions = plan.actions,
                   .places = plan.places,
                   .links = local_ranks_[pass.local].links,
                   .errors = records(shared_.device(), pass.local),
                   .input = pass.input,
                   .output = pass.output,
                   .scratch = pass.scratch,
                   .action_count = plan.action_count,
                   .place_count = plan.place_count,
                   .rank = static_cast<std::uint16_t>(shape_.local[pass.local])};
  return start(kernels_->function(device::Body::run_plan, pass.type), call, device::block_threads, stream);
}

/// Ranks whose inputs are scaled send the scaled ones.
Result<void> Engine::scale_inputs(const Job& job, std::span<const Part> parts,
                                  std::span<device::PeerBuffers> buffers) const {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const LocalReduction& reduction = parts[i].reduction;
    device::PeerBuffers& own = buffers[static_cast<std::size_t>(shape_.local[i])];
    if (reduction.scale.plan == nullptr || reduction.input_elements == 0) continue;
    std::byte* const scaled = local_ranks_[i].scratch + blocks_of(job, parts[i], own).scaled;
    const Pass pass{.plan = reduction.scale,
                    .type = job.type,
                    .op = job.op,
                    .count = reduction.input_elements,
                    .local = i,
                    .input = own.input,
                    .output = scaled,
                    .scratch = nullptr,
                    .buffers = buffers};
    TUTTI_TRY(start_pass(pass, parts.front().stream));
    own.input = scaled;
  }
  return {};
}

Result<void> Engine::combine_blocks(const Job& job, std::span<const Part> parts,
                                    std::span<const device::PeerBuffers> buffers) const {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const LocalReduction& reduction = parts[i].reduction;
    if (reduction.count == 0) continue;
    const auto rank = static_cast<std::size_t>(shape_.local[i]);
    const Blocks blocks = blocks_of(job, parts[i], buffers[rank]);
    std::byte* const scratch = local_ranks_[i].scratch;
    std::vector<device::PeerBuffers> sources(buffers.size());
    for (Rank peer = 0; peer < shape_.ranks; ++peer)
      sources[static_cast<std::size_t>(peer)].input = scratch + blocks.at(peer);
    if (!blocks.brings_own) sources[rank].input = buffers[rank].input + reduction.own_at * size_of(job.type);
    const Pass pass{.plan = reduction.combine,
                    .type = job.type,
                    .op = job.op == ReduceOp::pre_mul_sum ? ReduceOp::sum : job.op,
                    .count = reduction.count,
                    .local = i,
                    .input = nullptr,
                    .output = buffers[rank].output,
                    .scratch = scratch + blocks.at(shape_.ranks),
                    .buffers = sources};
    TUTTI_TRY(start_pass(pass, parts.front().stream));
  }
  return {};
}

}  // namespace tutti::cuda
