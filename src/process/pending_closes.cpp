#include "process/pending_closes.h"

#include <algorithm>

namespace tutti {
namespace {

constexpr std::int64_t look_ns = 1'000'000;
constexpr std::int64_t limit_ns = 3'000'000'000;  // each close ends within two seconds
// for busy machines; ranks that have not called yet are not waited for
constexpr std::int64_t starts_limit_ns = 10'000'000'000;

}  // namespace

void PendingCloses::add(const std::shared_ptr<const Task>& close) {
  const std::lock_guard lock(mutex_);
  std::erase_if(closes_, [](const auto& known) { return known.expired(); });
  closes_.push_back(close);
}

bool PendingCloses::over() {
  const std::lock_guard lock(mutex_);
  std::erase_if(closes_, [](const auto& known) { return known.expired(); });
  return closes_.empty();
}

void PendingCloses::add_root(const std::shared_ptr<BootstrapRoot>& root) {
  const std::lock_guard lock(mutex_);
  std::erase_if(roots_, [](const auto& known) { return known.expired(); });
  roots_.push_back(root);
}

std::shared_ptr<BootstrapRoot> PendingCloses::root_of(const Secret& secret) {
  const std::lock_guard lock(mutex_);
  for (const auto& known : roots_)
    if (auto root = known.lock(); root && root->is_of(secret)) return root;
  return nullptr;
}

bool PendingCloses::starts_over() {
  if (joining_ > 0) return true;
  const std::lock_guard lock(mutex_);
  return std::ranges::none_of(roots_, [](const auto& known) {
    const auto root = known.lock();
    return root && root->awaited();
  });
}

void PendingCloses::wait(System& system) {
  const std::int64_t began = system.now_ns();
  while (!starts_over() && system.now_ns() < began + starts_limit_ns) system.poll({}, look_ns);
  while (!over() && system.now_ns() < began + limit_ns) system.poll({}, look_ns);
}

}  // namespace tutti
