#include "cuda/engine.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "kernels/moving.h"

namespace tutti::cuda {
namespace {

constexpr int slices_max = 8;  // of a reduction: each needs a table

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

/// One for each word of the largest tile.
unsigned threads_for(std::span<const device::Message> messages, std::uint64_t channels) {
  constexpr std::uint64_t warp = 32, word = 16, least = device::block_threads_min, most = device::block_threads;
  std::uint64_t largest = 0;
  for (const device::Message& message : messages)
    largest = std::max(largest, std::min(message.bytes, device::tile_bytes(message.bytes, channels, most * word)));
  return static_cast<unsigned>(std::clamp((largest / word + warp) / warp * warp, least, most));
}

/// Without repetitions.
std::vector<Stream> streams_of(Parts parts) {
  std::vector<Stream> streams;
  for (const Part& part : parts)
    if (std::ranges::find(streams, part.stream) == streams.end()) streams.push_back(part.stream);
  return streams;
}

}  // namespace

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
  TUTTI_TRY(engine->set_up());
  return engine;
}

Result<void> Engine::set_up() {
  const std::size_t local = shape_.local.size();
  const int channels = std::min(shape_.channels_max, kernels_->blocks_max() / static_cast<int>(local));
  if (channels < 1)
    return Error{.code = Code::invalid_usage,
                 .what = fmt::format("GPU {} holds {} blocks at once, too few for {} ranks", gpu_->ordinal(),
                                     kernels_->blocks_max(), local)};
  if (shape_.synchronises() && channels < shape_.channels_max)
    return Error{.code = Code::invalid_usage,
                 .what = fmt::format("GPU {} holds {} blocks at once, fewer than the {} of each of {} ranks that all "
                                     "ranks agreed on",
                                     gpu_->ordinal(), kernels_->blocks_max(), shape_.channels_max, local)};
  const auto current = TUTTI_TRY(Current::enter(*gpu_));

  uploads_ = TUTTI_TRY(PlanUploads::make(gpu_, shape_));
  sequence_ = TUTTI_TRY(LaunchSequence::make(gpu_, local, shape_.order));
  failures_ = TUTTI_TRY(KernelFailures::make(gpu_, shape_.local, channels, shape_.limit_ns));
  constexpr int usual_tables = 2 * slices_max;  // more than so many exchanges under way need more memory
  memory_ = TUTTI_TRY(LaunchMemory::make(gpu_, shape_.frees_late, shape_.synchronises() ? usual_tables : 0));
  links_ = TUTTI_TRY(LocalLinks::make(gpu_, shape_, channels, uploads_.stream()));
  if (shape_.synchronises() || shape_.frees_late) watch_ = Quiet::Watch(gpu_->quiet(), [this] { return is_quiet(); });
  return {};
}

/// So that the graph may outlive the communicator and its plans.
Result<void> Engine::retain(const Capture& capture, LaunchMemory::Held what) {
  what.insert(what.end(), {graphs_, shared_from_this()});
  return capture.retain(*gpu_, deferred_, std::move(what));
}

Result<void> Engine::launch_in_order(std::span<const Stream> streams, const Capture& capture,
                                     LaunchMemory::Table& table, const std::function<Result<void>()>& queue) {
  const auto turn = TUTTI_TRY(sequence_.enter(streams, capture));
  auto queued = queue();
  if (!queued)
    memory_.keep(std::move(table.memory));  // perhaps some of it is queued
  else if (table.memory != nullptr && capture.graph == nullptr)
    queued = memory_.put_back(std::move(table), streams.front());
  auto left = sequence_.leave(streams, capture);
  if (queued) return left;
  return queued;
}

Result<void> Engine::make_buffers(const CollectiveJob& job, Parts parts) {
  int groups = 0;
  std::size_t staged = 0, blocks = 0;
  for (const Part& part : parts) {
    if (part.scratch == nullptr) groups = std::max(groups, part.plan->scratch_groups);
    if (part.windows) groups = std::max(groups, part.windows->scratch_groups);
    staged = std::max(staged, part.staged);
    blocks = std::max(blocks, reduction_bytes(job, part.reduction, shape_.ranks));
  }
  const std::size_t group_bytes = job.count * size_of(job.type);
  return memory_.make_buffers(std::max(static_cast<std::size_t>(groups) * group_bytes, blocks), staged, parts.size());
}

Result<void> Engine::launch(const CollectiveJob& job, Parts parts, Buffers buffers) {
  assert(parts.size() == shape_.local.size() && buffers.size() == static_cast<std::size_t>(shape_.ranks));
  const auto current = TUTTI_TRY(Current::enter(*gpu_));
  deferred_->empty();
  const Quiet::Queueing queueing(gpu_->quiet());
  const std::vector<Stream> streams = streams_of(parts);
  auto capture = TUTTI_TRY(Capture::of(*gpu_, streams));
  TUTTI_TRY(make_buffers(job, parts));
  const bool captured = capture.graph != nullptr;
  TUTTI_TRY(uploads_.follow(streams.front(), captured));
  LaunchMemory::Table table;
  if (job.exchange) {
    table = TUTTI_TRY(
        memory_.take_table(parts.size() * static_cast<std::size_t>(shape_.ranks) * sizeof(device::Transfer), captured));
    auto* to = reinterpret_cast<device::Transfer*>(table.memory->host());
    for (std::size_t i = 0; i < parts.size(); ++i)
      to = RankReduction{job, parts[i], i, shape_.local[i], buffers}.write_transfers(to);
  }
  if (!captured) {
    memory_.keep_plans(parts, sequence_.ended());
  } else {
    LaunchMemory::Held used = memory_.buffers();
    used.push_back(table.memory);
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
Result<void> Engine::run(const CollectiveJob& job, Parts parts, std::vector<device::PeerBuffers> buffers,
                         const LaunchMemory::Table& table) const {
  TUTTI_TRY(bring_inputs(job, parts, buffers));
  const bool combines = job.exchange && parts.front().reduction.combine.plan != nullptr;
  device::Call call{};
  if (job.exchange) call.transfers = reinterpret_cast<const device::Transfer*>(table.memory->device());
  const device::Body body = calls_.body_of(job, parts);
  calls_.write(call, body, job, parts, buffers);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (auto* const scratch = memory_.scratch(i)) call.local[i].scratch = scratch;
    if (combines) call.local[i].output = call.local[i].scratch;
  }
  unsigned threads = job.exchange ? device::block_threads : threads_for(body, call.cut);
  if (job.windows != nullptr) threads = std::max(threads, threads_for(body, call.window_cut));
  const DataType type = reduces(job.plan->collective) ? job.type : DataType::uint8;
  const bool together = !job.passes_only && call.local_ranks > 1;
  auto started = kernels_->start(body, type, call, threads, parts.front().stream, together);
  if (!started || !combines) return started;
  return combine_blocks(job, parts, buffers);
}

Result<void> Engine::launch_reduction(const CollectiveJob& job, Parts parts, Buffers buffers) {
  constexpr std::size_t least = 16 * 1024;
  const std::size_t element = size_of(job.type);
  const LocalReduction& any = parts.front().reduction;
  const std::size_t some = std::max(least, shape_.scratch_bytes / static_cast<std::size_t>(shape_.ranks + 1)) / element;
  const std::size_t few = any.largest / slices_max + 1;
  const std::size_t each = any.scale.plan != nullptr ? any.largest : std::max(some, few);  // all is scaled at once
  std::size_t begin = 0;
  do {
    const auto slice = ReductionSlice::of(job, parts, buffers, shape_.local, begin, each);
    TUTTI_TRY(launch(job, slice.parts, slice.buffers));
    begin += each;
  } while (begin < any.largest);
  return {};
}

Result<void> Engine::start_pass(const Pass& pass, Stream stream) const {
  device::Call call{};
  calls_.write(call, pass);
  return kernels_->start(device::Body::run_plan, pass.type, call, device::block_threads, stream);
}

/// Ranks whose inputs are copied first, or scaled, send these.
Result<void> Engine::bring_inputs(const CollectiveJob& job, Parts parts, std::span<device::PeerBuffers> buffers) const {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto& own = buffers[static_cast<std::size_t>(shape_.local[i])];
    if (parts[i].staged > 0) {
      TUTTI_TRY(gpu_->copy(memory_.staging(i), own.input, parts[i].staged, parts.front().stream));
      own.input = memory_.staging(i);
    }
    const auto pass = RankReduction{job, parts[i], i, shape_.local[i], buffers}.scaling(memory_.scratch(i));
    if (!pass) continue;
    TUTTI_TRY(start_pass(*pass, parts.front().stream));
    own.input = pass->output;
  }
  return {};
}

Result<void> Engine::combine_blocks(const CollectiveJob& job, Parts parts, Buffers buffers) const {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].reduction.count == 0) continue;
    std::vector<device::PeerBuffers> sources(buffers.size());
    const RankReduction own{job, parts[i], i, shape_.local[i], buffers};
    TUTTI_TRY(start_pass(own.combining(memory_.scratch(i), sources), parts.front().stream));
  }
  return {};
}

Result<void> Engine::launch_messages(const MessagesJob& job) {
  assert(serves_messages() && !job.streams.empty());
  const auto current = TUTTI_TRY(Current::enter(*gpu_));
  deferred_->empty();
  const Quiet::Queueing queueing(gpu_->quiet());
  auto capture = TUTTI_TRY(Capture::of(*gpu_, job.streams));
  const bool captured = capture.graph != nullptr;
  device::Call call{};
  LaunchMemory::Table table;
  if (job.messages.size() <= std::size(call.few_messages)) {
    std::ranges::copy(job.messages, call.few_messages);
  } else {
    table = TUTTI_TRY(memory_.take_table(job.messages.size_bytes(), captured));
    std::ranges::copy(job.messages, reinterpret_cast<device::Message*>(table.memory->host()));
    call.messages = reinterpret_cast<const device::Message*>(table.memory->device());
  }
  if (captured) TUTTI_TRY(retain(capture, {table.memory}));

  calls_.write(call, job);
  return launch_in_order(job.streams, capture, table, [&]() -> Result<void> {
    for (const auto& [to, from, bytes] : job.copies) TUTTI_TRY(gpu_->copy(to, from, bytes, job.streams.front()));
    if (job.messages.empty()) return {};
    return kernels_->start(device::Body::run_plan, DataType::uint8, call, threads_for(job.messages, call.channels),
                           job.streams.front());
  });
}

Result<void> Engine::prove(std::int64_t limit_ns) {
  assert(shape_.synchronises());
  const Plan nothing{.collective = Collective::barrier, .access = Access::mapped, .ranks = shape_.ranks};
  auto plan = TUTTI_TRY(upload(nothing));
  const std::vector<Part> parts(shape_.local.size(), Part{.stream = uploads_.stream(), .plan = std::move(plan)});
  const std::vector<device::PeerBuffers> none(static_cast<std::size_t>(shape_.ranks));
  return launch({.plan = &nothing, .limit_ns = limit_ns}, parts, none);
}

/// Nobody knows when a graph is replayed. An engine whose kernels fail does nothing any more.
bool Engine::is_quiet() const {
  if (graphs_.use_count() > 1) return false;
  const auto current = Current::enter(*gpu_);
  return !current || gpu_->api().event_query(sequence_.ended()) != status::not_ready;
}

Result<bool> Engine::idle() const {
  const auto current = TUTTI_TRY(Current::enter(*gpu_));
  const Status status = gpu_->api().event_query(sequence_.ended());
  if (status == status::not_ready) return false;
  TUTTI_TRY(gpu_->check(status, "cuEventQuery"));
  return true;
}

}  // namespace tutti::cuda
