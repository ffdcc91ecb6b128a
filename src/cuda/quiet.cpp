#include "cuda/quiet.h"

#include <algorithm>

namespace tutti::cuda {

Quiet::Queueing::Queueing(Quiet& quiet) : quiet_(quiet) {
  if (quiet.giver_.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
    quiet.queueing_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::lock_guard lock(quiet.gate_);
  quiet.queueing_.fetch_add(1, std::memory_order_relaxed);
}

Quiet::Watch::Watch(Quiet& quiet, Idle idle) : quiet_(&quiet) {
  const std::lock_guard lock(quiet.watched_mutex_);
  place_ = quiet.watched_.insert(quiet.watched_.end(), std::move(idle));
}

/// It may have been the last that was not idle.
Quiet::Watch::~Watch() {
  if (quiet_ == nullptr) return;
  {
    const std::lock_guard lock(quiet_->watched_mutex_);
    quiet_->watched_.erase(place_);
  }
  quiet_->try_all();
}

void Quiet::give_back(std::function<void()> what) {
  if (giver_.load(std::memory_order_relaxed) == std::this_thread::get_id())
    return what();  // part of what is given back
  {
    const std::lock_guard lock(waiting_mutex_);
    waiting_.push_back(std::move(what));
    any_.store(true, std::memory_order_release);
  }
  try_all();
}

/// Who finds the gate held leaves it to its holder to look once more: what the holder found not to be quiet may have
/// become so.
bool Quiet::try_all() {
  if (giver_.load(std::memory_order_relaxed) == std::this_thread::get_id()) return false;
  bool gave = false;
  asked_.store(true);
  while (any_.load(std::memory_order_acquire) && asked_.load()) {
    const std::unique_lock gate(gate_, std::try_to_lock);
    if (!gate) break;
    asked_.store(false);
    if (!is_quiet()) continue;
    give_all();
    gave = true;
  }
  return gave;
}

/// Requires the gate.
void Quiet::give_all() {
  std::vector<std::function<void()>> now;
  {
    const std::lock_guard lock(waiting_mutex_);
    now.swap(waiting_);
    any_.store(false, std::memory_order_relaxed);
  }
  giver_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  for (const auto& what : now) what();
  now.clear();  // what they hold may be given back, too
  giver_.store({}, std::memory_order_relaxed);
}

/// Requires the gate.
bool Quiet::is_quiet() {
  if (queueing_.load(std::memory_order_acquire) != 0) return false;
  const std::lock_guard lock(watched_mutex_);
  return std::ranges::all_of(watched_, [](const Idle& idle) { return idle(); });
}

}  // namespace tutti::cuda
