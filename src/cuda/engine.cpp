#include "cuda/engine.h"

#include <algorithm>
#include <atomic>
#include <cassert>

#include "exec/device_program.h"

namespace tutti::cuda {
namespace {

std::atomic_ref<std::uint32_t> word(std::byte* at) {
  return std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(at));
}

/// One thread for each word that a channel moves at a time. More threads would cost time: all threads also execute the
/// code that moves no words, and compete for the processor while they do.
unsigned threads_for(device::Body body, const device::Cut& cut) {
  const std::uint64_t part = (cut.part_units + (cut.part_rest > 0 ? 1 : 0)) * cut.unit;
  const std::uint64_t elements = cut.tile_elements == 0 ? part : std::min(part, cut.tile_elements);
  const std::uint64_t word_bytes = body == device::Body::one_shot ? 8 : 16;
  constexpr std::uint64_t warp = 32, least = device::block_threads_min, most = device::block_threads;
  const std::uint64_t words = (elements * cut.element_bytes + word_bytes - 1) / word_bytes;
  return static_cast<unsigned>(std::clamp((words + warp - 1) / warp * warp, least, most));
}

/// Without repetitions.
std::vector<Stream> streams_of(std::span<const Part> parts) {
  std::vector<Stream> streams;
  for (const Part& part : parts)
    if (std::ranges::find(streams, part.stream) == streams.end()) streams.push_back(part.stream);
  return streams;
}

}  // namespace

Result<Engine::Capture> Engine::capture_of(std::span<const Stream> streams) const {
  Capture first;
  for (auto* const stream : streams) {
    int state = capture_none;
    Capture one;
    const Status asked = gpu_->api().capture_info(stream, &state, &one.id, &one.graph, nullptr, nullptr);
    TUTTI_TRY(gpu_->check(asked, "cuStreamGetCaptureInfo"));
    if (state == capture_none) one = {};
    if (state == capture_invalidated)
      return Error{.code = Code::invalid_usage,
                   .what = "the capture of a stream failed before this call: end that capture, and begin a new one"};
    if (stream == streams.front()) {
      first = one;
    } else if ((one.graph == nullptr) != (first.graph == nullptr) || one.id != first.id) {
      return Error{.code = Code::invalid_usage,
                   .what =
                       "the streams of a call must be captured together or not at all, also those of ranks that share "
                       "a GPU: fork their streams from one capture, and put their calls into one group"};
    }
  }
  return first;
}

/// Makes the first stream wait for the work that the other streams hold, and for the launch before this one.
Result<void> Engine::join(std::span<const Stream> streams, Launched& last, std::uint64_t capture) {
  auto* const first = streams.front();
  // The id must not be queried during a capture. There the handle serves: streams outlive the capture.
  auto stream = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(first));
  if (capture == 0) TUTTI_TRY(gpu_->check(gpu_->api().stream_id(first, &stream), "cuStreamGetId"));
  if (last.any && last.stream != stream && last.capture == capture) TUTTI_TRY(gpu_->follow(first, last.ended.get()));
  last.stream = stream;
  last.capture = capture;
  for (std::size_t i = 1; i < streams.size(); ++i) {
    if (i >= ready_.size()) ready_.push_back(TUTTI_TRY(OwnEvent::create(gpu_)));
    TUTTI_TRY(gpu_->record(ready_[i].get(), streams[i]));
    TUTTI_TRY(gpu_->follow(first, ready_[i].get()));
  }
  return {};
}

/// Makes the other streams wait for the launch.
Result<void> Engine::fork(std::span<const Stream> streams, Launched& last) const {
  TUTTI_TRY(gpu_->record(last.ended.get(), streams.front()));
  last.any = true;
  for (auto* const stream : streams.subspan(1)) TUTTI_TRY(gpu_->follow(stream, last.ended.get()));
  return {};
}

Result<void> Engine::launch_in_order(std::span<const Stream> streams, const Capture& capture, Table& table,
                                     const std::function<Result<void>()>& queue) {
  const bool captured = capture.graph != nullptr;
  Launched& last = captured ? captured_ : launched_;
  LaunchOrder* const order = captured ? nullptr : shape_.order.get();
  std::unique_lock<std::mutex> turn;
  if (order != nullptr) {
    turn = order->enter();
    TUTTI_TRY(order->follow(streams.front()));
  }
  TUTTI_TRY(join(streams, last, capture.id));
  if (auto queued = queue(); !queued) {  // perhaps some of it is
    in_flight_.push_back(std::move(table.memory));
    if (order != nullptr) (void)order->record(streams.front());
    (void)fork(streams, last);
    return queued;
  }
  if (table.memory != nullptr && !captured) {
    tables_.push_back(std::move(table));
    TUTTI_TRY(gpu_->record(tables_.back().ended.get(), streams.front()));
  }
  if (order != nullptr) TUTTI_TRY(order->record(streams.front()));
  return fork(streams, last);
}

Result<void> Engine::stage(std::span<const Part> parts, std::span<device::PeerBuffers> buffers) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].staged == 0) continue;
    auto& own = buffers[static_cast<std::size_t>(shape_.local[i])];
    TUTTI_TRY(gpu_->copy(local_ranks_[i].staging, own.input, parts[i].staged, parts.front().stream));
    own.input = local_ranks_[i].staging;
  }
  return {};
}

device::ErrorRecord* Engine::records(std::byte* base, std::size_t local) const {
  return reinterpret_cast<device::ErrorRecord*>(base + records_offset) + local * static_cast<std::size_t>(channels_);
}

/// The other plans of the call, and what ranks offer for these. Returns the number of their tiles.
std::size_t Engine::fill_windows(device::Call& call, const Job& job, std::span<const Part> parts) const {
  Split split(job.count, size_of(job.type), job.windows->parts);
  share(split, channels_, channel_bytes_min);
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

/// What calls of all kinds say. `area`: through which they go.
void Engine::fill_common(device::Call& call, const device::Area& area) const {
  call.abort = reinterpret_cast<std::uint32_t*>(shared_.device());
  call.slots = area.slots;
  call.slot_bytes = area.slot_bytes;
  call.inbox_bytes = area.inbox_bytes;
  call.limit_ns = static_cast<std::uint64_t>(shape_.limit_ns);
  call.synchronises = synchronises() ? 1 : 0;
}

void Engine::fill(device::Call& call, device::Body body, const Job& job, std::span<const Part> parts,
                  std::span<const device::PeerBuffers> buffers) const {
  Binding binding{.type = job.type, .op = job.op, .split = Split(job.count, size_of(job.type), job.plan->parts)};
  if (job.plan->access == Access::slots)
    share_slots(binding.split, channels_, channel_bytes_min, area_.slot_bytes, job.plan->items_max);
  else
    share(binding.split, channels_, body == device::Body::one_shot ? one_shot_channel_bytes_min : channel_bytes_min);
  describe(call, *job.plan, binding);
  fill_common(call, area_);
  call.table = job.table;
  call.checks_abort = job.table != nullptr ? 1 : 0;
  if (job.limit_ns != 0) call.limit_ns = static_cast<std::uint64_t>(job.limit_ns);
  call.local_ranks = static_cast<std::uint32_t>(parts.size());
  std::size_t tiles = binding.split.tiles();
  if (job.windows != nullptr) tiles = std::max(tiles, fill_windows(call, job, parts));
  if (job.exchange) tiles = static_cast<std::size_t>(channels_);
  call.channels = static_cast<std::uint32_t>(std::clamp<std::size_t>(tiles, 1, static_cast<std::size_t>(channels_)));
  if (job.signature) call.signature = job.signature(call.channels);
  std::ranges::copy(buffers, call.buffers);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto rank = static_cast<std::size_t>(shape_.local[i]);
    const std::uint32_t skipped = parts[i].first_action;
    call.local[i] = {.actions = parts[i].plan->actions + skipped,
                     .places = parts[i].plan->places,
                     .links = local_ranks_[i].links,
                     .errors = records(shared_.device(), i),
                     .input = buffers[rank].input,
                     .output = buffers[rank].output,
                     .scratch = local_ranks_[i].scratch,
                     .action_count = std::min(parts[i].action_count, parts[i].plan->action_count - skipped),
                     .place_count = parts[i].plan->place_count,
                     .rank = static_cast<std::uint16_t>(rank)};
  }
}

Result<void> Engine::launch(const Job& job, std::span<const Part> parts, std::span<const device::PeerBuffers> buffers) {
  assert(parts.size() == local_ranks_.size() && buffers.size() == static_cast<std::size_t>(shape_.ranks));
  const auto current = TUTTI_TRY(Current::enter(*gpu_));
  deferred_->empty();
  const Quiet::Queueing queueing(gpu_->quiet());
  const std::vector<Stream> streams = streams_of(parts);
  auto capture = TUTTI_TRY(capture_of(streams));
  TUTTI_TRY(make_buffers(job, parts, buffers));
  const bool captured = capture.graph != nullptr;
  TUTTI_TRY(follow_uploads(streams.front(), captured));
  Table table;
  if (job.exchange) {
    table = TUTTI_TRY(
        take_table(parts.size() * static_cast<std::size_t>(shape_.ranks) * sizeof(device::Transfer), captured));
    write_transfers(job, parts, buffers, table);
  }
  if (!captured) {
    keep(parts);
  } else {
    std::vector<std::shared_ptr<const void>> used{scratch_, staging_, table.memory};
    for (const Part& part : parts)
      used.insert(used.end(), {part.plan, part.windows, part.offer.held, part.reduction.combine.uploaded,
                               part.reduction.scale.uploaded});
    TUTTI_TRY(retain(capture, std::move(used)));
  }
  return launch_in_order(streams, capture, table, [&] {
    return run(job, parts, {buffers.begin(), buffers.end()}, table);
  });
}

/// Queues all that the call consists of on the first stream.
Result<void> Engine::run(const Job& job, std::span<const Part> parts, std::vector<device::PeerBuffers> buffers,
                         const Table& table) {
  TUTTI_TRY(stage(parts, buffers));
  const bool combines = job.exchange && parts.front().reduction.combine.plan != nullptr;
  if (combines) TUTTI_TRY(scale_inputs(job, parts, buffers));
  device::Call call{};
  if (job.exchange) call.transfers = reinterpret_cast<const device::Transfer*>(table.memory->device());
  const device::Body body = job.passes_only ? device::Body::run_plan : body_of(parts);
  fill(call, body, job, parts, buffers);
  for (std::size_t i = 0; combines && i < parts.size(); ++i) call.local[i].output = local_ranks_[i].scratch;
  unsigned threads = job.exchange ? device::block_threads : threads_for(body, call.cut);
  if (job.windows != nullptr) threads = std::max(threads, threads_for(body, call.window_cut));
  auto* const function = kernels_->function(body, reduces(job.plan->collective) ? job.type : DataType::uint8);
  const bool together = !job.passes_only && call.local_ranks > 1;
  auto started = start(function, call, threads, parts.front().stream, together);
  if (!started || !combines) return started;
  return combine_blocks(job, parts, buffers);
}

/// Blocks that wait for others of their launch must all be on the GPU at once, which only a cooperative launch
/// guarantees: it begins when the GPU has room for all of them. The passes of a plan wait for nobody, and the blocks of
/// a single rank only for those of other launches, so their blocks begin one by one.
Result<void> Engine::start(Function function, device::Call& call, unsigned threads, Stream stream,
                           bool together) const {
  void* parameters[] = {&call};
  const unsigned blocks = call.local_ranks * call.channels;
  const Api& api = gpu_->api();
  if (!together)
    return gpu_->check(api.launch(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr),
                       "cuLaunchKernel");
  return gpu_->check(api.launch_cooperative(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters),
                     "cuLaunchCooperativeKernel");
}

/// The kernel that runs the plans of all ranks. Each plan names the kernel for its own rank; if the plans differ,
/// run_plan serves all.
device::Body Engine::body_of(std::span<const Part> parts) const {
  const device::Body first = parts.front().plan->body;
  const bool alike = std::ranges::all_of(parts, [first](const Part& part) { return part.plan->body == first; });
  const bool wanted = shape_.specialised || first == device::Body::one_shot;  // alone runs Access::in_line
  return alike && wanted ? first : device::Body::run_plan;
}

void Engine::abort() {
  word(shared_.host()).store(device::AbortWord::all_ends, std::memory_order_release);
}

void Engine::say_some_gone() {
  std::uint32_t before = device::AbortWord::goes_on;
  (void)word(shared_.host()).compare_exchange_strong(before, device::AbortWord::some_gone);
}

Result<void> Engine::prove(std::int64_t limit_ns) {
  assert(synchronises());
  const Plan nothing{.collective = Collective::barrier, .access = Access::mapped, .ranks = shape_.ranks};
  auto plan = TUTTI_TRY(upload(nothing));
  const std::vector<Part> parts(shape_.local.size(), Part{.stream = setup_.get(), .plan = std::move(plan)});
  const std::vector<device::PeerBuffers> none(static_cast<std::size_t>(shape_.ranks));
  return launch({.plan = &nothing, .limit_ns = limit_ns}, parts, none);
}

}  // namespace tutti::cuda
