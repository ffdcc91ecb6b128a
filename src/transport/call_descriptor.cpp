#include "transport/call_descriptor.h"

#include <algorithm>

#include <fmt/format.h>

namespace tutti {
namespace {

constexpr std::size_t line_align = 128;    // two cache lines: a core's prefetcher fetches this much at once
constexpr std::size_t alias_bytes = 4096;  // a load waits for an earlier store whose address is equal modulo this

static_assert(sizeof(CallDescriptor) == line_align && limits::call_descriptors % limits::call_payloads == 0);

/// Payloads of successive calls do not alias each other. One more pair of lines than the payload: without it, reading
/// the end of one payload would fetch the begin of the next, which its owner may be writing.
std::size_t payload_stride(std::size_t payload_bytes) {
  const std::size_t bytes = (payload_bytes + 2 * line_align - 1) / line_align * line_align;
  return bytes % alias_bytes == 0 ? bytes + line_align : bytes;
}

/// All areas place their rings at the same offset; without a stagger, all ranks' descriptors of one call would alias.
std::size_t stagger(int rank) {
  return static_cast<std::size_t>(rank) % (alias_bytes / line_align) * line_align;
}

std::string text(const Signature& call) {
  return fmt::format("collective {} type {} op {} root {} count {}", call.collective, call.type, call.op, call.root,
                     call.count);
}

}  // namespace

DescriptorRings::DescriptorRings(std::vector<std::byte*> rings, std::size_t payload_bytes)
    : rings_(std::move(rings)), payload_bytes_(payload_bytes), payload_stride_(payload_stride(payload_bytes)) {
  for (int r = 0; r < static_cast<int>(rings_.size()); ++r) rings_[r] += stagger(r);
}

std::size_t DescriptorRings::ring_bytes(std::size_t payload_bytes) {
  return descriptors_bytes + limits::call_payloads * payload_stride(payload_bytes) + alias_bytes;
}

CallDescriptors::CallDescriptors(std::vector<std::byte*> rings, int rank, std::size_t payload_bytes,
                                 std::size_t streamed_bytes)
    : rings_(std::move(rings), payload_bytes), rank_(rank), streamed_bytes_(streamed_bytes), seen_(rings_.ranks()) {}

Result<bool> CallDescriptors::catch_up(std::uint64_t sequence, std::uint64_t ahead) {
  TUTTI_TRY(look());
  seen_by_all_ = *std::ranges::min_element(seen_);
  return sequence <= seen_by_all_ + ahead;
}

/// Earlier calls needed nothing of this peer. Compares its calls of that time now, so that the next call that needs the
/// peer reports a mismatch.
Result<const CallDescriptor*> CallDescriptors::pass_over(int peer, std::uint64_t sequence) {
  while (seen_[peer] + 1 < sequence) {
    const std::uint64_t next = seen_[peer] + 1;
    auto line = open(peer, next);
    if (!line) return line;
    if (*line == nullptr) return jumped(peer, next, sequence);
  }
  return open(peer, sequence);
}

Result<void> CallDescriptors::look() {
  for (int peer = 0; peer < rings_.ranks(); ++peer) {
    while (seen_[peer] < published_) {
      auto line = TUTTI_TRY(open(peer, seen_[peer] + 1));
      if (line == nullptr) break;
    }
  }
  return {};
}

int CallDescriptors::last_to_arrive() const {
  return static_cast<int>(std::ranges::min_element(seen_) - seen_.begin());
}

std::uint64_t CallDescriptors::last_sequence(int rank) const {
  std::uint64_t last = 0;
  for (std::uint64_t place = 0; place < limits::call_descriptors; ++place) {
    const std::uint64_t sequence = rings_.at(rank, place).sequence.load(std::memory_order_acquire);
    if (sequence % limits::call_descriptors == place) last = std::max(last, sequence);
  }
  return last;
}

CallMark CallDescriptors::last(int rank) const {
  CallMark last{.sequence = last_sequence(rank), .signature = {}};
  // The last descriptor stays valid until this rank makes more calls; an earlier one may be overwritten at any moment.
  if (last.sequence > 0) last.signature = rings_.at(rank, last.sequence).signature;
  return last;
}

std::vector<std::optional<Signature>> CallDescriptors::calls(std::uint64_t sequence) const {
  assert(sequence + ahead_max > published_);
  std::vector<std::optional<Signature>> calls(rings_.ranks());
  for (int rank = 0; rank < rings_.ranks(); ++rank) {
    const CallDescriptor& line = rings_.at(rank, sequence);
    if (line.sequence.load(std::memory_order_acquire) == sequence) calls[rank] = line.signature;
  }
  return calls;
}

Error CallDescriptors::differs(int peer, std::uint64_t sequence) {
  if (differing_ == 0) differing_ = sequence;
  return Error{
      .code = Code::invalid_usage,
      .what = fmt::format("call #{} of rank {} is {}, of this rank {}", sequence, peer,
                          text(rings_.at(peer, sequence).signature), text(mine_[sequence % limits::call_descriptors])),
      .peer = peer};
}

Error CallDescriptors::jumped(int peer, std::uint64_t sequence, std::uint64_t found) {
  return remote_error(
      fmt::format("rank {} shows call #{} where #{} belongs: its shared memory is damaged", peer, found, sequence),
      peer);
}

}  // namespace tutti
