#include "gpu/gpu_peers.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "comm/communicator.h"
#include "cuda/areas.h"
#include "gpu/bounce_buffer.h"
#include "gpu/gpu_context.h"
#include "plan/schedule.h"

namespace tutti {
namespace {

std::vector<PeerCallSetup::Kernel> kernels_of(const Plan& plan) {
  std::vector<PeerCallSetup::Kernel> kernels;
  bool open = false;
  for (std::uint32_t i = 0; i < plan.actions.size(); ++i) {
    const bool pass = is_pass(plan.actions[i]);
    if (pass && !open) kernels.push_back({.first = i});
    if (pass) ++kernels.back().count;
    open = pass;
  }
  return kernels;
}

}  // namespace

GpuPeers::GpuPeers(GpuProcess& process, const GpuContext& context)
    : process_(process),
      gpu_(context.gpu),
      rank_(context.paths.rank()),
      ranks_(context.neighbours->ranks()),
      audience_(context.audience),
      sharing_(context.sharing) {}

Result<std::shared_ptr<GpuPeers>> GpuPeers::open(GpuProcess& process, const GpuContext& context) {
  std::shared_ptr<GpuPeers> peers(new GpuPeers(process, context));
  const cuda::SharedGpu& gpu = context.gpu;
  auto kernels = TUTTI_TRY(process.kernels(gpu));
  cuda::EngineShape shape{.ranks = peers->ranks_,
                          .local = {peers->rank_},
                          .channels_max = process.settings.channels_max,
                          .specialised = false,
                          .frees_late = true};
  peers->engine_ = TUTTI_TRY(
      cuda::Engine::open(gpu, std::move(kernels), std::move(shape), std::make_shared<cuda::DeferredReleases>()));
  const auto current = TUTTI_TRY(cuda::Current::enter(*gpu));
  peers->ended_ = TUTTI_TRY(cuda::OwnEvent::create(gpu));
  peers->sharing_->watch(*peers->engine_);
  return peers;
}

GpuPeers::~GpuPeers() {
  std::vector<std::shared_ptr<const void>> held{engine_, sharing_};
  held.insert(held.end(), buffers_.begin(), buffers_.end());
  held.insert(held.end(), outgrown_.begin(), outgrown_.end());
  process_.idle_or_keep([this] { return idle(); }, held);
}

Result<std::byte*> GpuPeers::buffer(Scratch which, std::size_t bytes) {
  auto& buffer = buffers_[which];
  if (!buffer || buffer->bytes() < bytes) {
    if (buffer) outgrown_.push_back(std::move(buffer));
    buffer = std::make_shared<cuda::DeviceMemory>(TUTTI_TRY(cuda::DeviceMemory::allocate(gpu_, std::bit_ceil(bytes))));
  }
  return buffer->data();
}

/// Where all peers are in this process: their kernels use the caller's buffer if all their GPUs may access it.
Result<bool> GpuPeers::show_here(Scratch which, PeerCallSetup::Side& side) {
  if (!side.copied) side.copied = !TUTTI_TRY(is_open_to(*gpu_, side.given, side.bytes, audience_.gpus));
  side.used = side.given;
  if (side.copied) side.used = TUTTI_TRY(buffer(which, side.bytes));
  side.location = {.address = reinterpret_cast<std::uint64_t>(side.used)};
  return true;
}

/// Offers the caller's buffer to other processes, or a copy. True: all have mapped it. What can be exported is open to
/// this process's other GPUs, too.
Result<bool> GpuPeers::show(Scratch which, PeerCallSetup::Side& side) {
  if (!side.shared) {
    std::byte* at = side.given;
    if (side.copied) at = TUTTI_TRY(buffer(which, side.bytes));
    bool possible = false;
    side.shared = TUTTI_TRY(sharing_->shared().offer(at, side.bytes, possible));
    if (!possible) side.copied = true;
  }
  if (!side.shared || !sharing_->shared().mapped(*side.shared)) return false;
  side.location = side.shared->location;
  side.used = reinterpret_cast<std::byte*>(side.location.address);  // NOLINT: an address of the GPU's
  return true;
}

Result<bool> GpuPeers::choose_buffers(PeerCallSetup& setup) {
  if (setup.chosen) return true;
  sharing_->hurry();
  std::size_t arena_used = 0;
  bool all = true;
  for (const auto& [which, side] : {std::pair{input_buffer, &setup.input}, {output_buffer, &setup.output}}) {
    if (side->bytes == 0) continue;
    const std::size_t bytes = cuda::round_up(side->bytes);
    const bool fits = arena_used + bytes <= sharing_->arena_bytes();
    // A copy in the arena is as good as one elsewhere.
    auto shown = !audience_.processes   ? show_here(which, *side)
                 : side->copied && fits ? Result<bool>(false)
                                        : show(which, *side);
    if (!shown) return shown;
    if (*shown) continue;
    if (fits) {
      side->used = sharing_->arena() + arena_used;
      side->location = {.place = cuda::SharedLocation::arena,
                        .version = 1,
                        .offset = arena_used,
                        .address = reinterpret_cast<std::uint64_t>(side->used)};
      arena_used += bytes;
    } else if (side->shared && sharing_->shared().refused(*side->shared)) {
      return Error{.code = Code::cuda, .what = "another process could not map device memory of this rank: see its log"};
    } else {
      all = false;
    }
  }
  setup.chosen = all;
  return all;
}

Result<std::shared_ptr<PeerCallSetup>> GpuPeers::prepare(Communicator& communicator, const Request& request) {
  const auto current = TUTTI_TRY(cuda::Current::enter(*gpu_));
  auto setup = std::make_shared<PeerCallSetup>();
  setup->of = this;
  setup->plan = plan_on_gpu(communicator, request, Waiting::by_host);
  setup->job = {
      .plan = &setup->plan->plan, .type = request.type, .op = request.op, .count = request.count, .passes_only = true};
  communicator.past_calls().note_used(setup->plan->algorithm->name.c_str(), "p2p");
  if (!setup->plan->uploaded) setup->plan->uploaded = TUTTI_TRY(engine_->upload(setup->plan->plan));
  setup->kernels = kernels_of(setup->plan->plan);
  if (setup->kernels.size() >= BounceBuffer::last_phase)
    return Error{.code = Code::internal,
                 .what = fmt::format("a plan has {} kernels, but at most {} are possible", setup->kernels.size(),
                                     BounceBuffer::last_phase - 1)};
  const auto bytes = [&](int groups) { return static_cast<std::size_t>(groups) * request.group_bytes(); };
  setup->input = {.given = const_cast<std::byte*>(request.input),
                  .bytes = bytes(input_groups(request.collective, ranks_, rank_, request.root)),
                  .copied = request.copies_input()};
  setup->output = {.given = request.output,
                   .bytes = bytes(output_groups(request.collective, ranks_, rank_, request.root))};
  TUTTI_TRY(choose_buffers(*setup));
  if (const int groups = setup->plan->plan.scratch_groups; groups > 0)
    setup->scratch = TUTTI_TRY(buffer(plan_scratch, bytes(groups)));
  return setup;
}

Result<void> GpuPeers::launch(const PeerCallSetup& setup, std::uint32_t kernel, cuda::Stream stream,
                              const device::PeerBuffers* table) {
  const PeerCallSetup::Kernel& one = setup.kernels[kernel - 1];
  cuda::CollectiveJob job = setup.job;
  job.table = table;
  const cuda::Part part{.stream = stream,
                        .plan = setup.plan->uploaded,
                        .first_action = one.first,
                        .action_count = one.count,
                        .scratch = setup.scratch};
  std::vector<device::PeerBuffers> own(static_cast<std::size_t>(ranks_));
  own[static_cast<std::size_t>(rank_)] = {.input = setup.input.used, .output = setup.output.used};
  return engine_->launch(job, {&part, 1}, own);
}

}  // namespace tutti
