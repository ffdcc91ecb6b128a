// Protection domains and registered memory.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "exports.h"
#include "faults.h"
#include "objects.h"

namespace tutti::testing::fake_verbs {
namespace {

constexpr unsigned optional_flags = 0x3ff00000;  // such as relaxed ordering: whoever does not know them ignores them

/// Counts the bytes as registered, where the limit allows that.
bool reserve(std::uint64_t bytes, std::uint64_t limit) {
  std::atomic<std::uint64_t>& all = counters().registered_bytes;
  std::uint64_t before = all.load();
  do {
    if (limit != 0 && before + bytes > limit) return false;
  } while (!all.compare_exchange_weak(before, before + bytes));
  return true;
}

bool is_mapped(const void* address, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::getpagesize());
  const auto first = reinterpret_cast<std::uintptr_t>(address) / page * page;
  return ::msync(reinterpret_cast<void*>(first), reinterpret_cast<std::uintptr_t>(address) + bytes - first, MS_ASYNC) ==
         0;
}

int refusal(const FakeDevice& device, const void* address, std::size_t length, unsigned access) {
  if (const int fault = faults().hit(Point::reg_mr)) return fault;
  constexpr unsigned known = 0x1f | optional_flags;  // local and remote writes, remote reads, atomics, windows
  if ((access & ~known) != 0) return EOPNOTSUPP;
  constexpr unsigned remote_writes = static_cast<unsigned>(tutti::verbs::access_flag::remote_write) | 8u;
  if ((access & remote_writes) != 0 && (access & tutti::verbs::access_flag::local_write) == 0) return EINVAL;
  if (length == 0) return EINVAL;
  if (!is_mapped(address, length)) return EFAULT;
  return reserve(length, device.settings.memlock_bytes) ? 0 : ENOMEM;
}

}  // namespace
}  // namespace tutti::testing::fake_verbs

using namespace tutti::testing::fake_verbs;
namespace verbs = tutti::verbs;

extern "C" {

verbs::Pd* ibv_alloc_pd(verbs::Context* context) {
  if (const int fault = faults().hit(Point::alloc_pd)) return errno = fault, nullptr;
  auto* const domain = new Domain{};
  domain->context = context;
  // Of all processes of the fabric: a domain of another one is never the same.
  domain->handle = static_cast<std::uint32_t>(static_cast<OpenContext*>(context)->process->fabric().next_serial());
  add(counters().domains);
  return domain;
}

int ibv_dealloc_pd(verbs::Pd* pd) {
  if (static_cast<Domain*>(pd)->users.load() > 0) return EBUSY;
  delete static_cast<Domain*>(pd);
  add(counters().domains, ~std::uint64_t{0});
  return 0;
}

verbs::Mr* ibv_reg_mr(verbs::Pd* pd, void* addr, std::size_t length, int access) {
  return ibv_reg_mr_iova2(pd, addr, length, reinterpret_cast<std::uint64_t>(addr), static_cast<unsigned>(access));
}

verbs::Mr* ibv_reg_mr_iova2(verbs::Pd* pd, void* addr, std::size_t length, std::uint64_t iova, unsigned access) {
  auto& open = *static_cast<OpenContext*>(pd->context);
  if (const int code = refusal(open.own_device, addr, length, access)) return errno = code, nullptr;
  const std::uint32_t key = open.process->fabric().take_mr({.process = open.process->slot(),
                                                            .pd = pd->handle,
                                                            .access = access,
                                                            .address = reinterpret_cast<std::uint64_t>(addr),
                                                            .length = length,
                                                            .iova = iova});
  if (key == no_slot) {
    add(counters().registered_bytes, ~std::uint64_t{length} + 1);
    return errno = ENOMEM, nullptr;
  }
  ++static_cast<Domain*>(pd)->users;
  add(counters().regions);
  add(counters().registrations);
  return new verbs::Mr{
      .context = pd->context, .pd = pd, .addr = addr, .length = length, .handle = key, .lkey = key, .rkey = key};
}

int ibv_dereg_mr(verbs::Mr* mr) {
  Process& process = *static_cast<OpenContext*>(mr->context)->process;
  if (process.fabric().mr_of(mr->rkey)->windows.load() > 0) return EBUSY;
  process.fabric().mr_of(mr->rkey)->key.store(0);
  process.wait_for_users(mr->pd->handle);
  process.fabric().give_mr(mr->rkey);
  --static_cast<Domain*>(mr->pd)->users;
  add(counters().regions, ~std::uint64_t{0});
  add(counters().registered_bytes, ~std::uint64_t{mr->length} + 1);
  delete mr;
  return 0;
}
}
