#include "process/gpu_process.h"

#include <cstdlib>

#include <fmt/format.h>

#include "base/file.h"
#include "kernels/image.h"

namespace tutti {
namespace {

constexpr std::size_t image_bytes_max = std::size_t{1} << 30;

Result<std::vector<std::byte>> read_image(const std::string& path) {
  const auto text = read_file(path, image_bytes_max);
  if (!text || text->empty())
    return Error{.code = Code::cuda,
                 .what = fmt::format("TUTTI_CUDA_KERNELS={}: {}", path, text ? "is empty" : text.error().text())};
  const auto* const begin = reinterpret_cast<const std::byte*>(text->data());
  std::vector<std::byte> image(begin, begin + text->size());
  image.resize(image.size() + 1);  // PTX ends with a zero byte
  return image;
}

/// Loads the kernels from the file if a path is given, else those inside the library.
Result<std::shared_ptr<const cuda::Kernels>> load_kernels(const cuda::SharedGpu& gpu, const std::string& path) {
  if (path.empty()) return cuda::Kernels::load(gpu, kernel_image);
  const auto image = TUTTI_TRY(read_image(path));
  return cuda::Kernels::load(gpu, [&image](device::Body, DataType) { return std::span(image); });
}

PeerUse peer_use(std::string_view setting) {
  if (setting == "off") return PeerUse::off;
  if (setting == "flags") return PeerUse::flags;
  if (setting == "apart") return PeerUse::apart;
  if (setting == "host") return PeerUse::host;
  return setting == "always" ? PeerUse::always : PeerUse::automatic;
}

/// What the CUDA driver reads when it starts.
bool streams_share_one_queue() {
  const char* const queues = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  return queues != nullptr && std::string_view(queues) == "1";
}

}  // namespace

GpuSettings::GpuSettings(const Config& config)
    : channels_max(static_cast<int>(config.integer("TUTTI_MAX_CTAS"))),
      scratch_bytes(static_cast<std::size_t>(config.integer("TUTTI_GPU_SCRATCH"))),
      specialised(config.text("TUTTI_GPU_KERNELS") != "run_plan"),
      staged(config.text("TUTTI_GPU_STAGED") == "always"),
      peers(peer_use(config.text("TUTTI_GPU_P2P"))),
      virtual_memory(config.text("TUTTI_CUMEM_ENABLE") == "1"),
      ordered(config.text("TUTTI_LAUNCH_ORDER_IMPLICIT") == "1" && peers != PeerUse::apart),
      limit_ns(config.integer("TUTTI_TIMEOUT_MS") * 1'000'000),
      meeting_ns(config.integer("TUTTI_MEET_TIMEOUT_MS") * 1'000'000),
      kernels_file(config.text("TUTTI_CUDA_KERNELS")),
      one_queue(streams_share_one_queue()) {}

std::shared_ptr<const void> WaitingStreams::enter(Log& log, std::string_view who) {
  auto entered = count_;
  constexpr long with_itself = 2;  // and the one that is kept here
  if (one_queue_ && entered.use_count() > with_itself && !told_.exchange(true))
    log.warn(
        who,
        "CUDA_DEVICE_MAX_CONNECTIONS is 1: all streams share one queue, so a stream that waits in a call on device "
        "memory holds up the others. With several communicators, ranks must make all their calls in one order, "
        "or they hang; unset the variable to be free of this");
  return entered;
}

GpuProcess::GpuProcess(System& system, const Config& config)
    : driver(config.text("TUTTI_CUDA_LIBRARY")),
      deferred(std::make_shared<cuda::DeferredReleases>()),
      settings(config),
      waiting(settings.one_queue),
      system_(system) {}

Result<std::shared_ptr<cuda::LaunchOrder>> GpuProcess::launch_order(const cuda::SharedGpu& gpu) {
  if (!settings.ordered) return std::shared_ptr<cuda::LaunchOrder>();
  const std::lock_guard lock(mutex_);
  std::weak_ptr<cuda::LaunchOrder>& known = orders_[gpu->ordinal()];
  if (auto order = known.lock()) return order;
  auto made = cuda::LaunchOrder::make(gpu);
  if (made) known = *made;
  return made;
}

bool GpuProcess::await_idle(const std::function<Result<bool>()>& idle, std::int64_t longest_ns) {
  const std::int64_t deadline_ns = system_.now_ns() + longest_ns;
  for (auto is_idle = idle(); is_idle && !*is_idle; is_idle = idle()) {
    if (system_.now_ns() > deadline_ns) return false;
    system_.yield();
  }
  return true;
}

bool GpuProcess::idle_or_keep(const std::function<Result<bool>()>& idle,
                              const std::vector<std::shared_ptr<const void>>& held) {
  constexpr std::int64_t longest_ns = 1'000'000'000;
  if (await_idle(idle, longest_ns)) return true;
  for (const auto& one : held) keep(one);
  return false;
}

Result<cuda::SharedGpu> GpuProcess::gpu(cuda::Ordinal ordinal) {
  auto loaded = TUTTI_TRY(driver.get());
  deferred->empty();
  const std::lock_guard lock(mutex_);
  if (auto known = gpus_[ordinal].lock()) return known;
  auto opened = cuda::Gpu::open(loaded, ordinal, quiet);
  if (opened) gpus_[ordinal] = *opened;
  return opened;
}

Result<cuda::SharedGpu> GpuProcess::current() {
  const auto loaded = driver.if_loaded();
  if (!loaded) return cuda::SharedGpu();
  cuda::Context context = nullptr;
  TUTTI_TRY(loaded->check(loaded->api.context_current(&context), "cuCtxGetCurrent"));
  if (context == nullptr) return cuda::SharedGpu();
  cuda::Ordinal ordinal = 0;
  TUTTI_TRY(loaded->check(loaded->api.context_device(&ordinal), "cuCtxGetDevice"));
  return gpu(ordinal);
}

Result<std::shared_ptr<const cuda::Kernels>> GpuProcess::kernels(const cuda::SharedGpu& gpu) {
  const std::lock_guard lock(mutex_);
  if (auto known = kernels_[gpu->ordinal()].lock()) return known;
  auto loaded = load_kernels(gpu, settings.kernels_file);
  if (loaded) kernels_[gpu->ordinal()] = *loaded;
  return loaded;
}

Result<std::byte*> GpuProcess::allocate(cuda::Ordinal ordinal, std::size_t bytes) {
  auto on = TUTTI_TRY(gpu(ordinal));
  const auto current = TUTTI_TRY(cuda::Current::enter(*on));
  auto memory = TUTTI_TRY(cuda::DeviceMemory::allocate(on, bytes));
  auto stream = TUTTI_TRY(cuda::OwnStream::create(on));
  std::byte* const at = memory.data();
  TUTTI_TRY(on->clear(at, bytes, stream.get()));
  TUTTI_TRY(on->synchronize(stream.get()));
  const std::lock_guard lock(mutex_);
  allocated_.emplace(at, std::move(memory));
  return at;
}

bool GpuProcess::free(std::byte* at) {
  cuda::DeviceMemory gone;
  {
    const std::lock_guard lock(mutex_);
    const auto found = allocated_.find(at);
    if (found == allocated_.end()) return false;
    gone = std::move(found->second);
    allocated_.erase(found);
  }
  gone.free();
  return true;
}

void GpuProcess::keep(std::shared_ptr<const void> what) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(what));
}

}  // namespace tutti
