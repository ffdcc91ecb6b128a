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

std::vector<cuda::BufferBoard*> boards_of(const Membership& members) {
  std::vector<cuda::BufferBoard*> boards;
  for (const Peer& peer : members.peers) boards.push_back(peer.same_process ? nullptr : &board_of(peer.area));
  return boards;
}

std::uint32_t strangers(const Membership& members) {
  return static_cast<std::uint32_t>(std::ranges::count(members.peers, false, &Peer::same_process));
}

}  // namespace

PeerSharing::PeerSharing(Process& process, const Membership& members, std::shared_ptr<const cuda::PeerArena> arena)
    : process_(process),
      gpu_(members.gpu),
      name_(members.name),
      arena_(std::move(arena)),
      shared_(gpu_, board_of(members.area->area), strangers(members), failed_),
      mapped_(process.gpus.mapped, gpu_, boards_of(members)) {}

Result<std::shared_ptr<PeerSharing>> PeerSharing::open(Process& process, const Membership& members,
                                                       std::shared_ptr<const cuda::PeerArena> arena) {
  std::shared_ptr<PeerSharing> sharing(new PeerSharing(process, members, std::move(arena)));
  if (auto begun = process.janitor.add(sharing); !begun) return begun.error();
  return sharing;
}

void PeerSharing::leave() {
  process_.janitor.remove(this);
}

void PeerSharing::hurry() {
  const std::int64_t now = process_.system.now_ns();
  if (now - hurried_ns_.exchange(now, std::memory_order_relaxed) > hurry_ns / 2) process_.janitor.wake();
}

Result<std::byte*> PeerSharing::find(Rank rank, const cuda::SharedSpot& spot, std::size_t bytes) const {
  if (spot.place != cuda::SharedSpot::arena) return mapped_.find(rank, spot, bytes);
  std::byte* const at = arena_ ? arena_->of[static_cast<std::size_t>(rank)].data() : nullptr;
  if (at == nullptr || spot.offset > arena_bytes() || bytes > arena_bytes() - spot.offset)
    return Error{.code = Code::remote, .what = "a rank named memory outside its arena", .peer = rank};
  return at + arena_->copies_offset + spot.offset;
}

std::optional<Error> PeerSharing::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

bool PeerSharing::advance() {
  if (failed_.load()) return true;
  if (auto looked = look(); !looked) {
    const std::lock_guard lock(mutex_);
    if (!trouble_) trouble_ = looked.error();
  }
  return true;
}

Result<void> PeerSharing::look() {
  auto current = cuda::Current::enter(*gpu_);
  if (!current) return std::move(current).error();
  // No harm is done: most often the peer has freed the memory meanwhile.
  for (const Error& refused : mapped_.follow()) process_.log.info(LogTopic::coll, name_, "{}", refused.text());
  if (const std::int64_t now = process_.system.now_ns(); now - retired_ns_ >= retire_every_ns) {
    retired_ns_ = now;
    if (auto retired = shared_.retire_freed(); !retired) return retired;
  }
  if (auto* const engine = watched_.load(std::memory_order_acquire))
    if (auto idle = engine->idle(); !idle) return std::move(idle).error();
  return {};
}

std::int64_t PeerSharing::poll_set(std::vector<PollItem>&) {
  const std::int64_t now = process_.system.now_ns();
  const bool hurried = now - hurried_ns_.load(std::memory_order_relaxed) < hurry_ns || shared_.waits();
  return now + (hurried && !failed_.load() ? hurried_every_ns : look_every_ns);
}

}  // namespace tutti
