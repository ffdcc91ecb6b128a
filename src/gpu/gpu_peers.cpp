#include "gpu/gpu_peers.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "comm/communicator.h"
#include "gpu/bounce_buffer.h"
#include "gpu/gpu_plan.h"
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

std::byte* pointer(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT: an address of the GPU's
}

}  // namespace

Result<std::shared_ptr<GpuPeers>> GpuPeers::open(GpuProcess& process, const cuda::SharedGpu& gpu, Rank rank, int ranks,
                                                 cuda::Audience audience) {
  std::shared_ptr<GpuPeers> peers(new GpuPeers(process, gpu, rank, ranks, std::move(audience)));
  if (auto ready = peers->set_up(); !ready) return std::move(ready).error();
  return peers;
}

Result<void> GpuPeers::set_up() {
  auto kernels = process_.kernels(gpu_);
  if (!kernels) return std::move(kernels).error();
  cuda::EngineShape shape{.ranks = ranks_,
                          .local = {rank_},
                          .channels_max = process_.channels_max,
                          .specialised = false,
                          .frees_late = true};
  auto engine =
      cuda::Engine::open(gpu_, *std::move(kernels), std::move(shape), std::make_shared<cuda::DeferredReleases>());
  if (!engine) return std::move(engine).error();
  engine_ = *std::move(engine);
  auto current = cuda::Current::enter(*gpu_);
  if (!current) return std::move(current).error();
  auto event = cuda::OwnEvent::create(gpu_);
  if (!event) return std::move(event).error();
  ended_ = *std::move(event);
  return {};
}

Result<void> GpuPeers::take_turn(cuda::Stream stream) const {
  return gpu_->check(gpu_->api().stream_wait(stream, ended_.get(), 0), "cuStreamWaitEvent");
}

Result<void> GpuPeers::end_turn(cuda::Stream stream) const {
  return gpu_->check(gpu_->api().event_record(ended_.get(), stream), "cuEventRecord");
}

GpuPeers::~GpuPeers() {
  std::vector<std::shared_ptr<const void>> held{engine_};
  held.insert(held.end(), buffers_.begin(), buffers_.end());
  held.insert(held.end(), outgrown_.begin(), outgrown_.end());
  process_.idle_or_keep([this] { return idle(); }, held);
}

Result<std::byte*> GpuPeers::buffer(Scratch which, std::size_t bytes) {
  auto& buffer = buffers_[which];
  if (!buffer || buffer->bytes() < bytes) {
    if (buffer) outgrown_.push_back(std::move(buffer));
    auto larger = cuda::DeviceMemory::allocate(gpu_, std::bit_ceil(bytes));
    if (!larger) return std::move(larger).error();
    buffer = std::make_shared<cuda::DeviceMemory>(*std::move(larger));
  }
  return buffer->data();
}

/// Describes a buffer to peers. If not all of them can access it, describes one of our own buffers that they can
/// access, to use in its place. What can be exported is open to this process's other GPUs, too.
Result<cuda::MemoryLine> GpuPeers::locate(Scratch which, const std::byte* at, std::size_t bytes) {
  if (bytes == 0) return cuda::MemoryLine{};
  const auto described = [&](const std::byte* where) -> Result<cuda::MemoryLine> {
    if (audience_.processes) return exports_.locate(where, bytes);
    return cuda::MemoryLine{.address = reinterpret_cast<std::uint64_t>(where)};
  };
  auto open = audience_.processes ? Result<bool>(true) : is_open_to(*gpu_, at, bytes, audience_.gpus);
  if (!open) return std::move(open).error();
  if (*open) {
    auto descriptor = described(at);
    if (!descriptor || descriptor->exported != 0 || !audience_.processes) return descriptor;
  }
  auto place = buffer(which, bytes);
  if (!place) return std::move(place).error();
  return described(*place);
}

Result<std::shared_ptr<const PeerCallSetup>> GpuPeers::prepare(Communicator& communicator, const Request& request) {
  auto current = cuda::Current::enter(*gpu_);
  if (!current) return std::move(current).error();
  auto setup = std::make_shared<PeerCallSetup>(PeerCallSetup{.of = this,
                                                             .type = request.type,
                                                             .op = request.op,
                                                             .count = request.count,
                                                             .given_input = request.input,
                                                             .given_output = request.output});
  setup->plan = plan_on_gpu(communicator, request, /*one_launch=*/false);
  if (!setup->plan->uploaded) {
    auto uploaded = engine_->upload(setup->plan->plan);
    if (!uploaded) return std::move(uploaded).error();
    setup->plan->uploaded = *std::move(uploaded);
  }
  setup->kernels = kernels_of(setup->plan->plan);
  if (setup->kernels.size() >= BounceBuffer::last_phase)
    return Error{.code = Code::internal,
                 .what = fmt::format("a plan has {} kernels, but at most {} are possible", setup->kernels.size(),
                                     BounceBuffer::last_phase - 1)};
  const auto bytes = [&](int groups) { return static_cast<std::size_t>(groups) * request.group_bytes(); };
  setup->input_bytes = bytes(input_groups(request.collective, ranks_, rank_, request.root));
  setup->output_bytes = bytes(output_groups(request.collective, ranks_, rank_, request.root));
  const std::byte* input = request.input;
  if (request.copies_input()) {
    auto place = buffer(input_buffer, setup->input_bytes);
    if (!place) return std::move(place).error();
    input = *place;
  }
  auto in = locate(input_buffer, input, setup->input_bytes);
  if (!in) return std::move(in).error();
  auto out = locate(output_buffer, request.output, setup->output_bytes);
  if (!out) return std::move(out).error();
  setup->own = {.input = *in, .output = *out};
  setup->input = pointer(in->address);
  setup->output = pointer(out->address);
  if (const int groups = setup->plan->plan.scratch_groups; groups > 0) {
    auto place = buffer(plan_scratch, bytes(groups));
    if (!place) return std::move(place).error();
    setup->scratch = *place;
  }
  return std::shared_ptr<const PeerCallSetup>(std::move(setup));
}

Result<void> GpuPeers::launch(const PeerCallSetup& setup, std::uint32_t kernel, cuda::Stream stream,
                              const device::PeerBuffers* table) {
  const PeerCallSetup::Kernel& one = setup.kernels[kernel - 1];
  const cuda::Job job{.plan = &setup.plan->plan,
                      .type = setup.type,
                      .op = setup.op,
                      .count = setup.count,
                      .passes_only = true,
                      .table = table};
  const cuda::Part part{.stream = stream,
                        .plan = setup.plan->uploaded,
                        .first_action = one.first,
                        .action_count = one.count,
                        .scratch = setup.scratch};
  std::vector<device::PeerBuffers> own(static_cast<std::size_t>(ranks_));
  own[static_cast<std::size_t>(rank_)] = {.input = setup.input, .output = setup.output};
  return engine_->launch(job, {&part, 1}, own);
}

Result<std::byte*> GpuPeers::map(Rank rank, const cuda::MemoryLine& descriptor, std::size_t bytes) {
  auto current = cuda::Current::enter(*gpu_);
  if (!current) return std::move(current).error();
  return maps_.map(rank, descriptor, bytes);
}

}  // namespace tutti
