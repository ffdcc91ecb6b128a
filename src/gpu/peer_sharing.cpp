#include "gpu/peer_sharing.h"

#include <algorithm>
#include <utility>

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t look_every_ns = 20 * ms;    // peers' boards ring no doorbell
constexpr std::int64_t hurried_every_ns = ms / 2;  // while calls are made, or a peer has yet to answer
constexpr std::int64_t hurry_ns = 50 * ms;
constexpr std::int64_t retire_every_ns = 100 * ms;

cuda::BufferBoard& board_of(const RankArea& area) {
  static_assert(sizeof(cuda::BufferBoard) <= RankArea::device_board_bytes);
  return *reinterpret_cast<cuda::BufferBoard*>(area.device_board());
}

std::vector<cuda::MappedBuffers::Board> boards_of(const Membership& members) {
  std::vector<cuda::MappedBuffers::Board> boards;
  for (const Peer& peer : members.peers)
    boards.push_back({.at = &board_of(peer.area), .same_process = peer.same_process});
  boards[static_cast<std::size_t>(members.rank)].at = nullptr;
  return boards;
}

}  // namespace

PeerSharing::PeerSharing(Process& process, const Membership& members, std::shared_ptr<const cuda::PeerArena> arena,
                         std::unique_ptr<cuda::WindowTable> windows)
    : process_(process),
      gpu_(members.gpu),
      name_(members.name),
      rank_(members.rank),
      arena_(std::move(arena)),
      windows_(std::move(windows)),
      shared_(gpu_, board_of(members.area->area), static_cast<std::uint32_t>(members.ranks) - 1, failed_),
      mapped_(process.gpus.mapped, gpu_, boards_of(members), windows_.get()) {}

Result<std::shared_ptr<PeerSharing>> PeerSharing::open(Process& process, const Membership& members,
                                                       std::shared_ptr<const cuda::PeerArena> arena, bool meets) {
  std::unique_ptr<cuda::WindowTable> windows;
  if (meets) windows = TUTTI_TRY(cuda::WindowTable::make(members.gpu, members.ranks));
  std::shared_ptr<PeerSharing> sharing(new PeerSharing(process, members, std::move(arena), std::move(windows)));
  TUTTI_TRY(process.driver_thread.add(sharing));
  return sharing;
}

void PeerSharing::leave() {
  process_.driver_thread.remove(this);
}

void PeerSharing::hurry() {
  const std::int64_t now = process_.system.now_ns();
  if (now - hurried_ns_.exchange(now, std::memory_order_relaxed) > hurry_ns / 2) process_.driver_thread.wake();
}

Result<PeerSharing::Offered> PeerSharing::offer(const std::byte* at, std::size_t bytes) {
  if (bytes == 0) return Offered{.word = device::Offer::absent};
  bool possible = false;
  auto offered = TUTTI_TRY(shared_.offer(at, bytes, possible));
  if (!offered || !shared_.mapped(*offered)) {
    if (possible) hurry();
    return Offered{.word = device::Offer::none};
  }
  const cuda::SharedLocation& location = offered->location;
  return Offered{.word = device::Offer::of(location.place, location.offset), .buffer = std::move(offered)};
}

void PeerSharing::keep(const std::vector<std::shared_ptr<cuda::SharedBuffer>>& offers) {
  const std::lock_guard lock(mutex_);
  const auto same = [](const cuda::SharedLocation& a) {
    return [&a](const auto& b) { return b->location.place == a.place && b->location.version == a.version; };
  };
  for (const auto& offer : offers)
    if (std::ranges::none_of(kept_, same(offer->location))) kept_.push_back(offer);
}

/// What is kept now belongs to kernels that were launched before the engine is asked. After a kernel gave up, those of
/// peers may still access what it had offered.
Result<void> PeerSharing::check_engine(cuda::Engine& engine) {
  std::vector<std::shared_ptr<cuda::SharedBuffer>> kept;
  {
    const std::lock_guard lock(mutex_);
    kept = std::exchange(kept_, {});
  }
  auto idle = engine.idle();
  const bool gave_up = engine.failures().trouble().has_value();
  if (gave_up) failed_.store(true);
  if (!idle || !*idle || gave_up) keep(kept);
  if (!idle) return std::move(idle).error();
  return {};
}

Result<std::byte*> PeerSharing::find(Rank rank, const cuda::SharedLocation& location, std::size_t bytes) const {
  if (location.place != cuda::SharedLocation::arena) return mapped_.find(rank, location, bytes);
  std::byte* const at = arena_ ? arena_->at[static_cast<std::size_t>(rank)] : nullptr;
  if (at == nullptr || location.offset > arena_bytes() || bytes > arena_bytes() - location.offset)
    return Error{.code = Code::remote, .what = "a rank named memory outside its arena", .peer = rank};
  return at + arena_->copies_offset + location.offset;
}

std::optional<Error> PeerSharing::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

bool PeerSharing::advance() {
  process_.gpus.deferred->empty();
  process_.gpus.quiet->try_all();
  if (failed_.load()) return true;
  if (auto looked = look(); !looked) {
    const std::lock_guard lock(mutex_);
    if (!trouble_) trouble_ = looked.error();
  }
  return true;
}

Result<void> PeerSharing::look() {
  const auto current = TUTTI_TRY(cuda::Current::enter(*gpu_));
  // No harm is done: most often the peer has freed the memory meanwhile.
  for (const Error& refused : mapped_.follow()) process_.log.info(LogTopic::coll, name_, "{}", refused.text());
  if (const std::int64_t now = process_.system.now_ns(); now - retired_ns_ >= retire_every_ns) {
    retired_ns_ = now;
    TUTTI_TRY(shared_.retire_freed());
  }
  if (auto* const engine = watched_.load(std::memory_order_acquire)) return check_engine(*engine);
  return {};
}

std::int64_t PeerSharing::poll_set(std::vector<PollItem>&) {
  const std::int64_t now = process_.system.now_ns();
  const bool hurried = now - hurried_ns_.load(std::memory_order_relaxed) < hurry_ns || shared_.waits();
  return now + (hurried && !failed_.load() ? hurried_every_ns : look_every_ns);
}

}  // namespace tutti
