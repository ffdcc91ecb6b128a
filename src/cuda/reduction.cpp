#include "cuda/reduction.h"

#include <algorithm>

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

/// Slices need no more than the first one.
std::size_t reduction_bytes(const CollectiveJob& job, const LocalReduction& reduction, int ranks) {
  if (reduction.combine.plan == nullptr) return 0;
  const std::size_t element = size_of(job.type);
  const std::size_t scaled = reduction.scale.plan != nullptr ? reduction.input_elements * element : 0;
  return static_cast<std::size_t>(ranks + 1) * in_words(reduction.count * element) + 3 * word + scaled;
}

ReductionSlice ReductionSlice::of(const CollectiveJob& job, Parts parts, Buffers buffers, std::span<const Rank> local,
                                  std::size_t begin, std::size_t each) {
  const std::size_t element = size_of(job.type);
  const auto skipped = [&](std::size_t bytes) { return std::min(bytes, begin * element); };
  const auto sliced = [&](std::size_t bytes) { return std::min(bytes - skipped(bytes), each * element); };
  ReductionSlice slice{.parts = {parts.begin(), parts.end()},
                       .buffers = {buffers.begin(), buffers.end()},
                       .transfers = std::vector<std::vector<device::Transfer>>(parts.size())};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto& transfers = slice.transfers[i];
    transfers.assign(parts[i].transfers.begin(), parts[i].transfers.end());
    for (device::Transfer& transfer : transfers) {
      transfer.from += skipped(transfer.sent);
      transfer.sent = sliced(transfer.sent);
      transfer.received = sliced(transfer.received);
    }
    slice.parts[i].transfers = transfers;
    LocalReduction& reduction = slice.parts[i].reduction;
    const std::size_t bytes = reduction.count * element;
    slice.buffers[static_cast<std::size_t>(local[i])].output += skipped(bytes);
    reduction.own_at += skipped(bytes) / element;
    reduction.count = sliced(bytes) / element;
  }
  return slice;
}

ReductionBlocks RankReduction::blocks() const {
  const std::size_t element = size_of(job.type);
  const device::PeerBuffers& own = buffers[static_cast<std::size_t>(rank)];
  ReductionBlocks made{.first = skew_of(own.output), .stride = in_words(part.reduction.count * element)};
  made.scaled = in_words(made.at(buffers.size() + 1)) + skew_of(own.input);
  made.brings_own = skew_of(own.input + part.reduction.own_at * element) != made.first;
  return made;
}

device::Transfer* RankReduction::write_transfers(device::Transfer* to) const {
  auto* const end = std::ranges::copy(part.transfers, to).out;
  if (part.reduction.combine.plan == nullptr) return end;
  const ReductionBlocks to_blocks = blocks();
  for (std::size_t peer = 0; peer < buffers.size(); ++peer) to[peer].to = to_blocks.at(peer);
  if (!to_blocks.brings_own) to[rank] = {};
  return end;
}

std::optional<Pass> RankReduction::scaling(std::byte* scratch) const {
  const LocalReduction& reduction = part.reduction;
  if (reduction.scale.plan == nullptr || reduction.input_elements == 0) return std::nullopt;
  return Pass{.plan = reduction.scale,
              .type = job.type,
              .op = job.op,
              .count = reduction.input_elements,
              .local = local,
              .input = buffers[static_cast<std::size_t>(rank)].input,
              .output = scratch + blocks().scaled,
              .scratch = nullptr,
              .buffers = buffers};
}

Pass RankReduction::combining(std::byte* scratch, std::span<device::PeerBuffers> sources) const {
  const LocalReduction& reduction = part.reduction;
  const auto own = static_cast<std::size_t>(rank);
  const ReductionBlocks from = blocks();
  for (std::size_t peer = 0; peer < sources.size(); ++peer) sources[peer].input = scratch + from.at(peer);
  if (!from.brings_own) sources[own].input = buffers[own].input + reduction.own_at * size_of(job.type);
  return {.plan = reduction.combine,
          .type = job.type,
          .op = job.op == ReduceOp::pre_mul_sum ? ReduceOp::sum : job.op,
          .count = reduction.count,
          .local = local,
          .input = nullptr,
          .output = buffers[own].output,
          .scratch = scratch + from.at(buffers.size()),
          .buffers = sources};
}

}  // namespace tutti::cuda
