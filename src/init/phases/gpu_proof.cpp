#include "init/phases/gpu_proof.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>

#include "base/descriptors.h"
#include "cuda/areas.h"

namespace tutti {
namespace {

constexpr std::size_t place_bytes = 64;
/// Calls whose buffers have more, and are not mapped by peers yet, wait until they are.
constexpr std::size_t copies_bytes = std::size_t{32} << 20;
static_assert(place_bytes * (device::ranks_max + 1) <= cuda::PeerArena::area_offset);

/// The bytes that `writer` stores in the probe of `owner`.
std::array<std::byte, place_bytes> pattern(Rank owner, Rank writer) {
  std::array<std::byte, place_bytes> bytes{};
  std::uint64_t state =
      0x9e37'79b9'7f4a'7c15u * (static_cast<std::uint64_t>(owner) + 1) + static_cast<unsigned>(writer);
  for (std::byte& one : bytes) {
    state = state * 0x5851'f42d'4c95'7f2du + 1;
    one = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

}  // namespace

Result<std::unique_ptr<GpuProof>> GpuProof::open(Process& process, std::string name, const cuda::SharedGpu& gpu,
                                                 Rank rank, int ranks, std::uint32_t key) {
  std::unique_ptr<GpuProof> proof(new GpuProof(process, std::move(name), gpu, rank, ranks));
  proof->arena_ =
      process.gpus.directory.find_or_make<cuda::PeerArena>(key, [] { return std::make_shared<cuda::PeerArena>(); });
  TUTTI_TRY(proof->set_up());
  return proof;
}

Result<void> GpuProof::set_up() {
  const auto current = TUTTI_TRY(cuda::Current::enter(*gpu_));
  arena_->of.resize(static_cast<std::size_t>(ranks_));
  arena_->at.resize(static_cast<std::size_t>(ranks_));
  const auto areas = cuda::SyncMemory::of(ranks_);
  arena_->copies_offset = cuda::PeerArena::area_offset + areas.bytes;
  arena_->bytes = arena_->copies_offset + copies_bytes;
  std::byte* const own = arena_->at[static_cast<std::size_t>(rank_)] = TUTTI_TRY(make_arena());
  words_ = TUTTI_TRY(cuda::PinnedMemory::allocate(gpu_, place_bytes));
  stream_ = TUTTI_TRY(cuda::OwnStream::create(gpu_));
  const auto probe = pattern(rank_, -1);
  std::memcpy(words_.host(), probe.data(), probe.size());
  for (const auto& [at, bytes] :
       {std::pair{own, cuda::PeerArena::area_offset + areas.zeroed},
        std::pair{own + cuda::PeerArena::area_offset + areas.messages_offset, areas.messages_zeroed}}) {
    TUTTI_TRY(gpu_->clear(at, bytes, stream_.get()));
  }
  TUTTI_TRY(gpu_->synchronize(stream_.get()));  // before anything is given back
  TUTTI_TRY(copy(own, words_.device()));
  // Memory that goes by a descriptor is not asked for CUDA IPC: the driver refuses, and tools that report errors of the
  // driver would name a call that is of no use.
  line_ = {.address = reinterpret_cast<std::uint64_t>(own)};
  if (described_bytes_ == 0) line_ = TUTTI_TRY(cuda::describe(*gpu_, own, arena_->bytes));
  const int most = std::min(cuda::sync_channels_max, process_.settings.channels_max);
  const int all =
      process_.settings.ordered ? INT_MAX : gpu_->multiprocessors();  // in order, never two kernels at a time
  blocks_ = BlockBudget::take(process_.blocks, gpu_->ordinal(), most, all);
  return {};
}

/// Memory that other processes map by a descriptor, or else by CUDA IPC.
Result<std::byte*> GpuProof::make_arena() {
  if (process_.settings.virtual_memory && cuda::VirtualMemory::is_available(*gpu_)) {
    auto created = cuda::VirtualMemory::create(gpu_, arena_->bytes);
    if (created) {
      std::byte* const at = created->memory.data();
      described_bytes_ = created->memory.bytes();
      arena_->own = std::move(created->memory);
      descriptor_ = segments_.offer({.fd = std::move(created->descriptor), .bytes = described_bytes_});
      return at;
    }
    log_.info(LogTopic::init, name_, "memory of GPU {} for other ranks goes by CUDA IPC: {}", gpu_->ordinal(),
              created.error().text());
  }
  auto memory = TUTTI_TRY(cuda::DeviceMemory::allocate(gpu_, arena_->bytes));
  std::byte* const at = memory.data();
  arena_->own = std::move(memory);
  return at;
}

GpuInfo GpuProof::info() const {
  return {.gpu = static_cast<std::uint32_t>(gpu_->ordinal()) + 1,
          .blocks = static_cast<std::uint32_t>(blocks_->blocks()),
          .processors = static_cast<std::uint32_t>(gpu_->multiprocessors()),
          .shared_by_mps = gpu_->driver().shares_by_mps(gpu_->ordinal()) ? 1u : 0u,
          .uuid = gpu_->driver().uuid(gpu_->ordinal()),
          .probe = line_,
          .descriptor = descriptor_ ? descriptor_->name() : SegmentName{},
          .described_bytes = described_bytes_};
}

/// Copies one place and waits for the copy.
Result<void> GpuProof::copy(std::byte* to, const std::byte* from) const {
  TUTTI_TRY(gpu_->copy(to, from, place_bytes, stream_.get()));
  return gpu_->synchronize(stream_.get());
}

/// Lets kernels on this GPU access memory of another GPU of this process.
Result<void> GpuProof::allow(cuda::Ordinal other) const {
  if (other == gpu_->ordinal()) return {};
  int can = 0;
  const auto& driver = gpu_->driver();
  if (driver.api.can_access_peer(&can, gpu_->ordinal(), other) != cuda::status::success || can == 0)
    return remote_error("the driver says that the one cannot access the other");
  cuda::Context context = nullptr;  // its rank keeps it too
  const HeldStdio held;
  const cuda::Status retained = driver.api.primary_retain(&context, other);
  TUTTI_TRY(gpu_->check(retained, "cuDevicePrimaryCtxRetain"));
  const cuda::Status enabled = driver.api.enable_peer_access(context, 0);
  (void)driver.api.primary_release(other);
  if (enabled == cuda::status::peer_access_already_enabled) return {};
  return gpu_->check(enabled, "cuCtxEnablePeerAccess");
}

/// Where the peer's arena lies for this GPU.
Result<std::byte*> GpuProof::map(Rank peer, const GpuInfo& info, bool same_process, const Fetch& fetch) {
  const bool by_descriptor = info.descriptor.id != 0;
  if (same_process) {
    const cuda::Ordinal ordinal = static_cast<cuda::Ordinal>(info.gpu) - 1;
    TUTTI_TRY(allow(ordinal));
    if (by_descriptor && ordinal != gpu_->ordinal())
      TUTTI_TRY(cuda::VirtualMemory::allow(*gpu_, info.probe.address, info.described_bytes));
    return reinterpret_cast<std::byte*>(info.probe.address);  // NOLINT: an address of the GPU's
  }
  auto& mapped = arena_->of[static_cast<std::size_t>(peer)];
  if (by_descriptor) {
    if (info.described_bytes < arena_->bytes) return remote_error("its memory is shorter than this rank's");
    auto fetched = TUTTI_TRY(fetch(info.descriptor));
    auto opened = cuda::VirtualMemory::open(gpu_, fetched.fd.get(), info.described_bytes);
    if (!opened) return std::move(opened).error().during("map its descriptor (TUTTI_CUMEM_ENABLE=0 maps by CUDA IPC)");
    std::byte* const at = opened->data();
    mapped = *std::move(opened);
    return at;
  }
  if (info.probe.exported == 0 || info.probe.offset != 0 || info.probe.bytes < arena_->bytes)
    return remote_error("its memory cannot be exported");
  auto opened = TUTTI_TRY(cuda::PeerMapping::open(process_.mapped, gpu_, info.probe.handle, info.probe.id));
  std::byte* const at = opened.data();
  mapped = std::move(opened);
  return at;
}

Result<void> GpuProof::reach(Rank peer, const GpuInfo& info, bool same_process, const Fetch& fetch) {
  if (info.gpu == 0 || info.probe.address == 0) return remote_error("that rank offers no memory");
  const auto current = TUTTI_TRY(cuda::Current::enter(*gpu_));
  std::byte* const theirs = TUTTI_TRY(map(peer, info, same_process, fetch));
  arena_->at[static_cast<std::size_t>(peer)] = theirs;
  const auto holds = [this](const std::array<std::byte, place_bytes>& wanted) {
    return std::memcmp(words_.host(), wanted.data(), wanted.size()) == 0;
  };
  TUTTI_TRY(copy(words_.device(), theirs));
  if (!holds(pattern(peer, -1))) return remote_error("what is read there is not what that rank has written");
  const auto mine = pattern(peer, rank_);
  std::memcpy(words_.host(), mine.data(), mine.size());
  std::byte* const place = theirs + (static_cast<std::size_t>(rank_) + 1) * place_bytes;
  TUTTI_TRY(copy(place, words_.device()));
  std::memset(words_.host(), 0, place_bytes);
  TUTTI_TRY(copy(words_.device(), place));
  if (!holds(mine)) return remote_error("what is written there does not stay");
  return {};
}

}  // namespace tutti
