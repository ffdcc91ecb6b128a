#include "cuda/engine.h"

#include <algorithm>
#include <atomic>
#include <cassert>

#include <fmt/format.h>

#include "exec/device_program.h"

namespace tutti::cuda {
namespace {

constexpr std::size_t record_offset = 128;  // the abort word has a cache line to itself
constexpr std::size_t channel_bytes_min = 16 * 1024;
constexpr std::size_t one_shot_channel_bytes_min = 2 * 1024;
constexpr std::size_t alignment = 256;

constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// The most bytes of one call that a channel's inbox must hold: no less than share() gives a channel.
constexpr std::size_t one_shot_channel_bytes(std::size_t bytes, int channels) {
  const auto each = (bytes + static_cast<std::size_t>(channels) - 1) / static_cast<std::size_t>(channels);
  return round_up(std::max(each, one_shot_channel_bytes_min));
}

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

/// Whether an earlier part has the same stream.
bool repeated(std::span<const Part> parts, std::size_t i) {
  return std::any_of(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i),
                     [&](const Part& part) { return part.stream == parts[i].stream; });
}

}  // namespace

device::Area areas_for(int ranks, int channels, bool apart) {
  device::Area area{
      .ranks = static_cast<std::uint32_t>(ranks),
      .channels = static_cast<std::uint32_t>(channels),
      .inbox_bytes = alignment + 2 * one_shot_channel_bytes(Engine::one_shot_bytes_max(ranks, apart), channels)};
  if (!apart) return area;
  constexpr std::size_t most = std::size_t{128} << 10, of_all = std::size_t{32} << 20;
  area.slots = ring_slots;
  area.slot_bytes = std::min(most, of_all / ring_slots / area.links()) / alignment * alignment;
  return area;
}

Engine::Engine(SharedGpu gpu, std::shared_ptr<const Kernels> kernels, EngineShape shape,
               std::shared_ptr<DeferredReleases> deferred)
    : gpu_(std::move(gpu)),
      kernels_(std::move(kernels)),
      shape_(std::move(shape)),
      deferred_(std::move(deferred)),
      local_ranks_(shape_.local.size()) {}

Engine::~Engine() {
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
  if (auto ready = engine->set_up(); !ready) return ready.error();
  return engine;
}

Result<void> Engine::write(Address to, const void* from, std::size_t bytes) {
  return gpu_->check(gpu_->api().copy_async(to, reinterpret_cast<Address>(from), bytes, setup_.get()), "cuMemcpyAsync");
}

Result<void> Engine::finish_setup() {
  return gpu_->check(gpu_->api().stream_synchronize(setup_.get()), "cuStreamSynchronize");
}

Result<void> Engine::set_up() {
  const std::size_t local = shape_.local.size();
  channels_ = std::min(shape_.channels_max, kernels_->blocks_max() / static_cast<int>(local));
  if (channels_ < 1)
    return Error{.code = Code::invalid_usage,
                 .what = fmt::format("GPU {} holds {} blocks at once, too few for {} ranks", gpu_->ordinal(),
                                     kernels_->blocks_max(), local)};
  if (meets_others() && channels_ < shape_.channels_max)
    return Error{.code = Code::invalid_usage,
                 .what = fmt::format("GPU {} holds {} blocks at once, fewer than the {} of each of {} ranks that all "
                                     "ranks agreed on",
                                     gpu_->ordinal(), kernels_->blocks_max(), shape_.channels_max, local)};
  auto current = Current::enter(*gpu_);
  if (!current) return std::move(current).error();

  auto streams = OwnStream::create(gpu_);
  if (!streams) return std::move(streams).error();
  setup_ = *std::move(streams);
  ready_.resize(local);
  std::vector<OwnEvent*> events{&launched_.ended, &captured_.ended};
  for (OwnEvent& one : ready_) events.push_back(&one);
  for (OwnEvent* const one : events) {
    auto event = OwnEvent::create(gpu_);
    if (!event) return std::move(event).error();
    *one = *std::move(event);
  }

  area_ = areas_for(shape_.ranks, channels_, meets_others());
  const std::size_t area_bytes = meets_others() ? 0 : round_up(area_.bytes());
  const std::size_t link_bytes = round_up(area_.links() * sizeof(device::Link));
  auto memory = DeviceMemory::allocate(gpu_, local * (area_bytes + link_bytes));
  if (!memory) return std::move(memory).error();
  memory_ = *std::move(memory);
  auto shared = PinnedMemory::allocate(
      gpu_, record_offset + local * static_cast<std::size_t>(channels_) * sizeof(device::ErrorRecord));
  if (!shared) return std::move(shared).error();
  shared_ = *std::move(shared);

  constexpr int usual_tables = 8;  // more than so many exchanges under way need more memory
  for (int i = 0; i < usual_tables && meets_others(); ++i) {
    auto table = take_table(/*captured=*/false);
    if (!table) return std::move(table).error();
    tables_.push_back(*std::move(table));
  }

  if (shape_.frees_late)
    if (auto buffer = plan_buffer(0); !buffer) return std::move(buffer).error();

  const Status cleared = gpu_->api().set_async(memory_.address(), 0, memory_.bytes(), setup_.get());
  if (auto zeroed = gpu_->check(cleared, "cuMemsetD8Async"); !zeroed) return zeroed;
  std::vector<std::byte*> areas = shape_.areas;
  areas.resize(static_cast<std::size_t>(shape_.ranks));
  for (std::size_t i = 0; i < local && !meets_others(); ++i)
    areas[static_cast<std::size_t>(shape_.local[i])] = memory_.data() + i * area_bytes;
  for (std::size_t i = 0; i < local; ++i) {
    local_ranks_[i].links = reinterpret_cast<device::Link*>(memory_.data() + local * area_bytes + i * link_bytes);
    if (auto written = write_links(i, areas); !written) return written;
  }
  return finish_setup();
}

/// Of one local rank to all ranks whose areas are known, and waits for the copy.
Result<void> Engine::write_links(std::size_t local, std::span<std::byte* const> areas) {
  std::vector<device::Link> links(area_.links());
  const auto mine = static_cast<std::uint32_t>(shape_.local[local]);
  for (std::uint32_t channel = 0; channel < area_.channels; ++channel)
    for (std::uint32_t peer = 0; peer < area_.ranks; ++peer)
      if (peer != mine && areas[peer] != nullptr)
        links[area_.index(channel, peer)] = area_.link(channel, mine, peer, areas[mine], areas[peer]);
  const auto at = reinterpret_cast<Address>(local_ranks_[local].links);
  if (auto written = write(at, links.data(), links.size() * sizeof(device::Link)); !written) return written;
  return finish_setup();
}

Result<Engine::Capture> Engine::capture_of(std::span<const Part> parts) const {
  Capture first;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (repeated(parts, i)) continue;
    const Part& part = parts[i];
    int state = capture_none;
    Capture one;
    const Status asked = gpu_->api().capture_info(part.stream, &state, &one.id, &one.graph, nullptr, nullptr);
    if (auto known = gpu_->check(asked, "cuStreamGetCaptureInfo"); !known) return known.error();
    if (state == capture_none) one = {};
    if (state == capture_invalidated)
      return Error{.code = Code::invalid_usage,
                   .what = "the capture of a stream failed before this call: end that capture, and begin a new one"};
    if (i == 0) {
      first = one;
    } else if ((one.graph == nullptr) != (first.graph == nullptr) || one.id != first.id) {
      return Error{.code = Code::invalid_usage,
                   .what =
                       "ranks that share a GPU must be captured together or not at all: fork their streams from one "
                       "capture, and put their calls into one group"};
    }
  }
  return first;
}

Result<void> Engine::follow(Stream stream, const OwnEvent& event) const {
  return gpu_->check(gpu_->api().stream_wait(stream, event.get(), 0), "cuStreamWaitEvent");
}

/// Makes the first rank's stream wait for the work that the other ranks' streams hold, and for the launch before this
/// one.
Result<void> Engine::join(std::span<const Part> parts, Launched& last, std::uint64_t capture) {
  auto* const first = parts.front().stream;
  // The id must not be queried during a capture. There the handle serves: streams outlive the capture.
  auto stream = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(first));
  if (capture == 0)
    if (auto known = gpu_->check(gpu_->api().stream_id(first, &stream), "cuStreamGetId"); !known) return known;
  if (last.any && last.stream != stream && last.capture == capture)
    if (auto waits = follow(first, last.ended); !waits) return waits;
  last.stream = stream;
  last.capture = capture;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (repeated(parts, i)) continue;
    const Status recorded = gpu_->api().event_record(ready_[i].get(), parts[i].stream);
    if (auto told = gpu_->check(recorded, "cuEventRecord"); !told) return told;
    if (auto waits = follow(first, ready_[i]); !waits) return waits;
  }
  return {};
}

/// Makes the other ranks' streams wait for the launch.
Result<void> Engine::fork(std::span<const Part> parts, Launched& last) const {
  const Status recorded = gpu_->api().event_record(last.ended.get(), parts.front().stream);
  if (auto told = gpu_->check(recorded, "cuEventRecord"); !told) return told;
  last.any = true;
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (!repeated(parts, i))
      if (auto waits = follow(parts[i].stream, last.ended); !waits) return waits;
  return {};
}

Result<void> Engine::stage(std::span<const Part> parts, std::span<device::PeerBuffers> buffers) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].staged == 0) continue;
    auto& own = buffers[static_cast<std::size_t>(shape_.local[i])];
    const Status copied =
        gpu_->api().copy_async(reinterpret_cast<Address>(local_ranks_[i].staging), reinterpret_cast<Address>(own.input),
                               parts[i].staged, parts.front().stream);
    if (auto queued = gpu_->check(copied, "cuMemcpyAsync"); !queued) return queued;
    own.input = local_ranks_[i].staging;
  }
  return {};
}

device::ErrorRecord* Engine::records(std::byte* base, std::size_t local) const {
  return reinterpret_cast<device::ErrorRecord*>(base + record_offset) + local * static_cast<std::size_t>(channels_);
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

void Engine::fill(device::Call& call, device::Body body, const Job& job, std::span<const Part> parts,
                  std::span<const device::PeerBuffers> buffers) const {
  Binding binding{.type = job.type, .op = job.op, .split = Split(job.count, size_of(job.type), job.plan->parts)};
  if (job.plan->access == Access::slots)
    share_slots(binding.split, channels_, channel_bytes_min, area_.slot_bytes, job.plan->items_max);
  else
    share(binding.split, channels_, body == device::Body::one_shot ? one_shot_channel_bytes_min : channel_bytes_min);
  describe(call, *job.plan, binding);
  call.abort = reinterpret_cast<std::uint32_t*>(shared_.device());
  call.slots = area_.slots;
  call.slot_bytes = area_.slot_bytes;
  call.inbox_bytes = area_.inbox_bytes;
  call.table = job.table;
  call.limit_ns = static_cast<std::uint64_t>(job.limit_ns != 0 ? job.limit_ns : shape_.limit_ns);
  call.meet = meets_others() ? 1 : 0;
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
  auto current = Current::enter(*gpu_);
  if (!current) return std::move(current).error();
  deferred_->empty();
  auto capture = capture_of(parts);
  if (!capture) return std::move(capture).error();
  if (auto ready = make_buffers(parts, job.count * size_of(job.type)); !ready) return ready;
  const bool captured = capture->graph != nullptr;
  TransferTable table;
  if (job.exchange) {
    auto taken = take_table(captured);
    if (!taken) return std::move(taken).error();
    table = *std::move(taken);
    write_transfers(parts, table);
  }
  if (!captured)
    keep(parts);
  else if (auto retained = retain(*capture, parts, table); !retained)
    return retained;

  Launched& last = captured ? captured_ : launched_;
  LaunchOrder* const order = captured ? nullptr : shape_.order.get();
  std::unique_lock<std::mutex> turn;
  if (order != nullptr) {
    turn = order->enter();
    if (auto follows = order->follow(parts.front().stream); !follows) return follows;
  }
  if (auto joined = join(parts, last, capture->id); !joined) return joined;
  std::vector<device::PeerBuffers> seen(buffers.begin(), buffers.end());
  if (auto staged = stage(parts, seen); !staged) return staged;
  device::Call call{};
  const device::Body body = job.passes_only ? device::Body::run_plan : body_of(parts);
  fill(call, body, job, parts, seen);
  if (job.exchange) call.transfers = reinterpret_cast<const device::Transfer*>(table.memory->device());
  if (auto started = start(job, body, call, parts.front().stream); !started) return started;
  if (job.exchange && !captured) {
    tables_.push_back(std::move(table));
    const Status recorded = gpu_->api().event_record(tables_.back().ended.get(), parts.front().stream);
    if (auto told = gpu_->check(recorded, "cuEventRecord"); !told) return told;
  }
  if (order != nullptr)
    if (auto recorded = order->record(parts.front().stream); !recorded) return recorded;
  return fork(parts, last);
}

/// Blocks that wait for others of their launch must all be on the GPU at once, which only a cooperative launch
/// guarantees: it begins when the GPU has room for all of them. The passes of a plan wait for nobody, and the blocks of
/// a single rank only for those of other launches, so their blocks begin one by one.
Result<void> Engine::start(const Job& job, device::Body body, device::Call& call, Stream stream) const {
  void* parameters[] = {&call};
  auto* const function = kernels_->function(body, reduces(job.plan->collective) ? job.type : DataType::uint8);
  const unsigned blocks = call.local_ranks * call.channels;
  unsigned threads = job.exchange ? device::block_threads : threads_for(body, call.cut);
  if (job.windows != nullptr) threads = std::max(threads, threads_for(body, call.window_cut));
  const Api& api = gpu_->api();
  if (job.passes_only || call.local_ranks == 1)
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
  word(shared_.host()).store(1, std::memory_order_release);
}

Result<void> Engine::prove(std::int64_t limit_ns) {
  assert(meets_others());
  const Plan nothing{.collective = Collective::barrier, .access = Access::mapped, .ranks = shape_.ranks};
  auto plan = upload(nothing);
  if (!plan) return std::move(plan).error();
  const std::vector<Part> parts(shape_.local.size(), Part{.stream = setup_.get(), .plan = *plan});
  const std::vector<device::PeerBuffers> none(static_cast<std::size_t>(shape_.ranks));
  return launch({.plan = &nothing, .limit_ns = limit_ns}, parts, none);
}

}  // namespace tutti::cuda
