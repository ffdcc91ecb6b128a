#include "cuda/call_writer.h"

#include <algorithm>

#include "cuda/areas.h"
#include "exec/device_program.h"

namespace tutti::cuda {

/// Each plan names the kernel for its own rank; if the plans differ, run_plan serves all.
device::Body CallWriter::body_of(const CollectiveJob& job, Parts parts) const {
  if (job.passes_only) return device::Body::run_plan;
  const device::Body first = parts.front().plan->body;
  const bool alike = std::ranges::all_of(parts, [first](const Part& part) { return part.plan->body == first; });
  const bool wanted = shape.specialised || first == device::Body::one_shot;  // alone runs Access::in_line
  return alike && wanted ? first : device::Body::run_plan;
}

/// The other plans of the call, and what ranks offer for these. Returns the number of their tiles.
std::size_t CallWriter::write_windows(device::Call& call, const CollectiveJob& job, Parts parts) const {
  Split split(job.count, size_of(job.type), job.windows->parts);
  share(split, channels(), channel_bytes_min);
  call.choose = 1;
  call.window_cut = cut_of(split);
  for (std::size_t i = 0; i < parts.size(); ++i)
    call.by_windows[i] = {.actions = parts[i].windows->actions,
                          .places = parts[i].windows->places,
                          .mapped = parts[i].offer.mapped,
                          .input = parts[i].offer.input,
                          .output = parts[i].offer.output,
                          .action_count = parts[i].windows->action_count,
                          .place_count = parts[i].windows->place_count};
  return split.tiles();
}

/// What calls of all kinds say. `through`: which they go.
void CallWriter::write_common(device::Call& call, const device::Area& through) const {
  call.abort = failures.abort_word();
  call.slots = through.slots;
  call.slot_bytes = through.slot_bytes;
  call.inbox_bytes = through.inbox_bytes;
  call.limit_ns = static_cast<std::uint64_t>(shape.limit_ns);
  call.synchronises = shape.synchronises() ? 1 : 0;
}

std::uint32_t CallWriter::channels_for(std::size_t tiles) const {
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(tiles, 1, links.area.channels));
}

void CallWriter::write(device::Call& call, device::Body body, const CollectiveJob& job, Parts parts,
                       Buffers buffers) const {
  Binding binding{.type = job.type, .op = job.op, .split = Split(job.count, size_of(job.type), job.plan->parts)};
  if (job.plan->access == Access::slots)
    share_slots(binding.split, channels(), channel_bytes_min, links.area.slot_bytes, job.plan->items_max);
  else
    share(binding.split, channels(), body == device::Body::one_shot ? one_shot_channel_bytes_min : channel_bytes_min);
  describe(call, *job.plan, binding);
  write_common(call, links.area);
  call.table = job.table;
  call.checks_abort = job.table != nullptr ? 1 : 0;
  if (job.limit_ns != 0) call.limit_ns = static_cast<std::uint64_t>(job.limit_ns);
  call.local_ranks = static_cast<std::uint32_t>(parts.size());
  std::size_t tiles = binding.split.tiles();
  if (job.windows != nullptr) tiles = std::max(tiles, write_windows(call, job, parts));
  if (job.exchange) tiles = links.area.channels;
  call.channels = channels_for(tiles);
  if (job.signature) call.signature = job.signature(call.channels);
  std::ranges::copy(buffers, call.buffers);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto rank = static_cast<std::size_t>(shape.local[i]);
    const std::uint32_t skipped = parts[i].first_action;
    call.local[i] = {.actions = parts[i].plan->actions + skipped,
                     .places = parts[i].plan->places,
                     .links = links.links[i],
                     .errors = failures.records(i),
                     .input = buffers[rank].input,
                     .output = buffers[rank].output,
                     .scratch = parts[i].scratch,
                     .action_count = std::min(parts[i].action_count, parts[i].plan->action_count - skipped),
                     .place_count = parts[i].plan->place_count,
                     .rank = static_cast<std::uint16_t>(rank)};
  }
}

void CallWriter::write(device::Call& call, const Pass& pass) const {
  const DevicePlan& plan = *pass.plan.uploaded;
  Binding binding{.type = pass.type, .op = pass.op, .split = Split(pass.count, size_of(pass.type), 1)};
  share(binding.split, channels(), channel_bytes_min);
  describe(call, *pass.plan.plan, binding);
  write_common(call, links.area);
  call.synchronises = 0;
  call.checks_abort = 1;
  call.local_ranks = 1;
  call.channels = channels_for(binding.split.tiles());
  std::ranges::copy(pass.buffers, call.buffers);
  call.local[0] = {.actions = plan.actions,
                   .places = plan.places,
                   .links = links.links[pass.local],
                   .errors = failures.records(pass.local),
                   .input = pass.input,
                   .output = pass.output,
                   .scratch = pass.scratch,
                   .action_count = plan.action_count,
                   .place_count = plan.place_count,
                   .rank = static_cast<std::uint16_t>(shape.local[pass.local])};
}

void CallWriter::write(device::Call& call, const MessagesJob& job) const {
  write_common(call, links.message_area);
  call.ranks = static_cast<std::uint32_t>(shape.ranks);
  call.local_ranks = 1;
  call.channels = links.message_area.channels;
  call.message_count = static_cast<std::uint32_t>(job.messages.size());
  call.local[0].links = links.message_links;
  call.local[0].errors = failures.records(0);
  call.local[0].rank = static_cast<std::uint16_t>(shape.local[0]);
}

}  // namespace tutti::cuda
