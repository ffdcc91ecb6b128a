#include "gpu/host_staged_call.h"

#include <algorithm>

#include "call/layout.h"
#include "cuda/areas.h"
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

std::size_t HostStagedCall::output_at() const {
  return cuda::round_up(buffers_.input.bytes(), output_alignment);
}

Result<void> HostStagedCall::copy_extents(const HostStagedBuffer& caller, std::byte* host, bool in) const {
  for (const Extent& part : caller.extents) {
    std::byte* const there = caller.at + part.begin;
    std::byte* const here = host + part.begin;
    TUTTI_TRY(gpu().copy(in ? here : there, in ? there : here, part.bytes, stream()));
  }
  return {};
}

void HostStagedCall::bind(Request& request) const {
  request.input = buffer().data();
  request.output = output();
}

void HostStagedCall::bind(PeerRequest& request) const {
  request.data = request.send ? buffer().data() : output();
}

}  // namespace tutti
