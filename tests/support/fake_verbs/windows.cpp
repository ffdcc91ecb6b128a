// Memory windows of type 2B: they belong to a queue pair, whose requests bind and invalidate them.
#include <cerrno>
#include <cstdint>
#include <mutex>

#include "faults.h"
#include "objects.h"
#include "post.h"

namespace tutti::testing::fake_verbs {
namespace {

using verbs::Status;

constexpr std::uint32_t consumer_bits = 0xff;

Status bind(QueuePair& pair, const Work& work, SharedWindow& window) {
  constexpr auto bindable = static_cast<std::uint32_t>(verbs::access_flag::window_bind);
  Fabric& fabric = pair.process().fabric();
  const verbs::Mr& mr = *work.bind.mr;
  SharedMr& shared = *fabric.mr_of(mr.rkey);
  const Region& region = shared.region;
  const verbs::Window& seen = *work.bind.window;
  const bool is_new_key = ((work.bind.rkey ^ seen.handle) & ~consumer_bits) == 0 && work.bind.rkey != window.last_key;
  if (window.mr != 0 || !is_new_key || seen.rkey != window.last_key || seen.pd != pair.pd || mr.pd != pair.pd)
    return Status::window_bind_error;
  if (shared.key.load() != mr.rkey || (region.access & bindable) == 0) return Status::window_bind_error;
  if (work.bind.addr < region.iova || work.bind.length == 0 || work.bind.length > region.length ||
      work.bind.addr - region.iova > region.length - work.bind.length)
    return Status::window_bind_error;
  shared.windows.fetch_add(1);
  window.qp = pair.qp_num;
  window.mr = mr.rkey;
  window.access = work.bind.access;
  window.address = region.address + (work.bind.addr - region.iova);
  window.length = work.bind.length;
  window.last_key = work.bind.rkey;
  window.key.store(work.bind.rkey);
  add(counters().binds);
  return Status::success;
}

}  // namespace

Status change_window(QueuePair& pair, const Work& work) {
  Fabric& fabric = pair.process().fabric();
  const std::uint32_t key = work.opcode == verbs::WorkOpcode::bind_window ? work.bind.rkey : work.immediate;
  SharedWindow& window = *fabric.window_of(key);
  if (!Fabric::is_of_window(key) || !window.taken || window.process != pair.process().slot())
    return Status::window_bind_error;
  const std::lock_guard guard(pair.shared().lock);
  if (pair.process().settings().refuses_binds) return Status::window_bind_error;
  if (work.opcode == verbs::WorkOpcode::bind_window) return bind(pair, work, window);
  if (window.key.load() != key || window.qp != pair.qp_num) return Status::window_bind_error;
  fabric.unbind(window);
  return Status::success;
}

verbs::Window* alloc_mw(verbs::Pd* pd, verbs::WindowType type) {
  if (const int fault = faults().hit(Point::alloc_mw)) return errno = fault, nullptr;
  const auto& open = *static_cast<OpenContext*>(pd->context);
  if (type != verbs::WindowType::two || !open.own_device.settings.windows) return errno = EOPNOTSUPP, nullptr;
  const std::uint32_t key = open.process->fabric().take_window(open.process->slot());
  if (key == no_slot) return errno = ENOMEM, nullptr;
  ++static_cast<Domain*>(pd)->users;
  add(counters().windows);
  return new verbs::Window{.context = pd->context, .pd = pd, .rkey = key, .handle = key, .type = type};
}

int dealloc_mw(verbs::Window* window) {
  Process& process = *static_cast<OpenContext*>(window->context)->process;
  process.fabric().window_of(window->handle)->key.store(0);
  process.wait_for_users(window->pd->handle);
  process.fabric().give_window(window->handle);
  --static_cast<Domain*>(window->pd)->users;
  add(counters().windows, ~std::uint64_t{0});
  delete window;
  return 0;
}

}  // namespace tutti::testing::fake_verbs
