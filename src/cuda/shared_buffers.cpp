#include "cuda/shared_buffers.h"

#include <algorithm>
#include <vector>

namespace tutti::cuda {

SharedBuffers::SharedBuffers(SharedGpu gpu, BufferBoard& board, std::uint32_t audience, const std::atomic<bool>& failed)
    : gpu_(std::move(gpu)), board_(board), audience_(audience), failed_(failed) {
  if (audience_ == 0) return;  // the board stays untouched
  for (auto& place : board_.places) place.answers.store(audience, std::memory_order_relaxed);
}

bool SharedBuffers::answered(std::uint32_t place) const {
  return board_.places[place].answers.load(std::memory_order_acquire) == audience_;
}

/// Once all have answered.
bool SharedBuffers::refused(std::uint32_t place) const {
  return board_.places[place].refusals.load(std::memory_order_relaxed) != 0;
}

/// No call uses it, on any rank. In this order: a call that fails ends only when failed_ is set.
bool SharedBuffers::unused(std::uint32_t place) const {
  return own_[place].users->load() == 0 && !failed_.load();
}

/// A place that is not in use, if there is one. If all are taken, the one that was not used for the longest time is
/// withdrawn, and is free once all have answered.
std::optional<std::uint32_t> SharedBuffers::free_place() {
  std::optional<std::uint32_t> oldest;
  for (std::uint32_t i = 0; i < own_.size(); ++i) {
    if (!answered(i)) continue;
    if (own_[i].allocation.base == 0) return i;
    if (unused(i) && (!oldest || own_[i].used < own_[*oldest].used)) oldest = i;
  }
  if (oldest) withdraw(*oldest);
  return std::nullopt;
}

void SharedBuffers::withdraw(std::uint32_t place) {
  own_[place] = {};
  change(place);
}

/// What stands there now, or nothing any more, is to be answered.
void SharedBuffers::change(std::uint32_t place) {
  auto& seen = board_.places[place];
  seen.answers.store(0, std::memory_order_relaxed);
  seen.refusals.store(0, std::memory_order_relaxed);
  seen.version.fetch_add(1, std::memory_order_release);
  board_.changes.fetch_add(1, std::memory_order_release);
}

SharedBuffer SharedBuffers::use(std::uint32_t place, const std::byte* at) {
  Own& own = own_[place];
  own.used = ++uses_;
  own.users->fetch_add(1);
  return {.location = {.place = place,
                       .version = board_.places[place].version.load(std::memory_order_relaxed),
                       .offset = reinterpret_cast<Address>(at) - own.allocation.base,
                       .address = reinterpret_cast<std::uint64_t>(at)},
          .use = {own.users.get(), {own.users}}};
}

Result<std::optional<SharedBuffer>> SharedBuffers::offer(const std::byte* at, std::size_t bytes, bool& possible) {
  possible = false;
  auto found = TUTTI_TRY(allocation_of(*gpu_, at, bytes));
  if (found.base == 0) return std::optional<SharedBuffer>();
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(own_, found, &Own::allocation);
    possible = known != own_.end();
    if (possible) return std::optional(use(static_cast<std::uint32_t>(known - own_.begin()), at));
    if (std::ranges::find(closed_, found) != closed_.end()) return std::optional<SharedBuffer>();
  }
  IpcHandle handle{};
  possible = TUTTI_TRY(export_memory(*gpu_, found, handle));
  const std::lock_guard lock(mutex_);
  if (!possible) {
    closed_[next_closed_++ % closed_.size()] = found;
    return std::optional<SharedBuffer>();
  }
  const auto place = free_place();
  if (!place) return std::optional<SharedBuffer>();
  own_[*place] = {.allocation = found, .users = std::make_shared<std::atomic<int>>(0)};
  auto& seen = board_.places[*place];
  seen.id = found.id;
  seen.bytes = found.bytes;
  seen.base = found.base;
  seen.handle = handle;
  change(*place);
  return std::optional(use(*place, at));
}

/// The driver is asked without the lock: it may let the driver thread wait, and the thread that makes calls must not.
Result<void> SharedBuffers::retire_freed() {
  std::vector<std::pair<std::uint32_t, Allocation>> offered;
  {
    const std::lock_guard lock(mutex_);
    for (std::uint32_t i = 0; i < own_.size(); ++i)
      if (own_[i].allocation.base != 0 && answered(i)) offered.emplace_back(i, own_[i].allocation);
  }
  for (const auto& [place, allocation] : offered) {
    auto there = TUTTI_TRY(exists(*gpu_, allocation));
    if (there && !refused(place)) continue;
    const std::lock_guard lock(mutex_);
    if (own_[place].allocation == allocation && unused(place)) withdraw(place);
  }
  return {};
}

bool SharedBuffers::waits() const {
  for (std::uint32_t i = 0; i < own_.size(); ++i)
    if (!answered(i)) return true;
  return false;
}

}  // namespace tutti::cuda
