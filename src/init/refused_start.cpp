#include "init/refused_start.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/host.h"
#include "bootstrap/bootstrap_call.h"

namespace tutti {
namespace {

using bootstrap::Excuse;

constexpr std::int64_t while_ns = 2'000'000'000;

}  // namespace

bool drive_for_a_while(System& system, Task& task) {
  const std::int64_t until = system.now_ns() + while_ns;
  std::vector<PollItem> items;
  while (task.advance()) {
    const std::int64_t now = system.now_ns();
    if (now >= until) return true;
    items.clear();
    const std::int64_t wake = std::min(task.poll_set(items), until);
    system.poll(items, std::max<std::int64_t>(0, wake - now));
  }
  return false;
}

void refuse_start(Process& process, const UniqueId& id, const RefusedRank& place, const Error& why,
                  std::int64_t deadline_ns, Hold hold) {
  if (const auto root = process.pending_closes.root_of(id.secret)) {
    root->excuse(place.rank, place.ranks, why, hold == Hold::yes);
    process.service.wake();
    return;
  }
  const auto excuse = std::make_shared<Excuse>(
      process.system, id, Bootstrap::Who{.rank = place.rank, .ranks = place.ranks, .process = this_process()}, why,
      deadline_ns);
  if (hold == Hold::yes && !drive_for_a_while(process.system, *excuse)) return;
  // Without a service thread there is nobody to go on.
  if (process.service.add(excuse) && hold == Hold::yes) process.pending_closes.add(std::shared_ptr<const Task>(excuse));
}

}  // namespace tutti
