// The fake driver's rights to memory: pools, ranges that programs map themselves, and which GPU may access what.
#include <sys/mman.h>

#include "support/fake_cuda_state.h"

namespace tutti::testing::fake {

bool State::may_access(int device, std::uintptr_t at) const {
  const Range* const range = range_of(at);
  if (range == nullptr || (range->device == device && !range->created)) return true;
  if (!range->pooled) return !range->rights || (*range->rights >> device & 1) != 0;
  const auto of_pool = pools.find(range->device);
  return of_pool != pools.end() && of_pool->second.contains(device);
}

namespace {

using cuda::Address;

constexpr unsigned long long none = 0;

/// A pool is known by the context of its GPU.
Status default_pool(CUctx_st** pool, int device) {
  FAKE_ENTER("cuDeviceGetDefaultMemPool");
  *pool = fake.contexts[static_cast<std::size_t>(device)].get();
  return 0;
}

Status pool_set_access(CUctx_st* pool, const cuda::AccessOf* access, std::size_t count) {
  FAKE_ENTER("cuMemPoolSetAccess");
  for (std::size_t i = 0; i < count; ++i)
    if (access[i].flags == cuda::access_read_write)
      fake.pools[pool->device].insert(access[i].location.id);
    else
      fake.pools[pool->device].erase(access[i].location.id);
  return 0;
}

Status pool_access(int* flags, CUctx_st* pool, cuda::Location* of) {
  FAKE_ENTER("cuMemPoolGetAccess");
  const bool may = pool->device == of->id || fake.pools[pool->device].contains(of->id);
  *flags = may ? static_cast<int>(cuda::access_read_write) : 0;
  return 0;
}

/// In place of all the steps by which a program maps memory itself: `count` ranges of `bytes`, one behind the other,
/// each with the GPUs that alone may access it, as bits.
Status map_ranges(Address* at, std::size_t bytes, const unsigned* rights, std::size_t count) {
  FAKE_ENTER_CONTEXT("fakeMapRanges");
  void* const made = ::mmap(nullptr, count * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return code::out_of_memory;
  *at = reinterpret_cast<Address>(made);
  for (std::size_t i = 0; i < count; ++i)
    fake.memory[*at + i * bytes] = {
        .bytes = bytes, .device = context->device, .id = fake.next_allocation++, .rights = rights[i]};
  return 0;
}

Status memory_access(unsigned long long* flags, const cuda::Location* of, Address at) {
  FAKE_ENTER("cuMemGetAccess");
  const Range* const range = fake.range_of(at);
  if (range == nullptr || !range->rights) return code::invalid_value;
  *flags = (*range->rights >> of->id & 1) != 0 ? cuda::access_read_write : none;
  return 0;
}

template <class Type>
void* erased(Type* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

std::vector<Named> access_functions() {
  return {{"cuDeviceGetDefaultMemPool", erased(default_pool)},
          {"cuMemPoolSetAccess", erased(pool_set_access)},
          {"cuMemPoolGetAccess", erased(pool_access)},
          {"cuMemGetAccess", erased(memory_access)},
          {"fakeMapRanges", erased(map_ranges)}};
}

}  // namespace tutti::testing::fake
