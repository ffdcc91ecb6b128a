// The fake driver's memory: host memory with recorded ranges, and copies on streams.
#include <sys/mman.h>

#include "support/fake_cuda_state.h"

namespace tutti::testing::fake {
namespace {

using cuda::Address;

constexpr std::size_t page = 4096;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + page - 1) / page * page;
}

/// Filled with a pattern: nobody may count on zeros.
void* map(std::size_t bytes) {
  void* const at =
      ::mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  std::memset(at, 0xa5, bytes < (1u << 20) ? bytes : 0);
  return at;
}

Status allocate(void** at, std::size_t bytes, int device, bool managed) {
  if (bytes == 0) return code::invalid_value;
  *at = map(bytes);
  if (*at == nullptr) return code::out_of_memory;
  state().memory[reinterpret_cast<std::uintptr_t>(*at)] = {.bytes = bytes, .device = device, .managed = managed};
  return 0;
}

Status free_range(std::uintptr_t at) {
  auto& fake = state();
  const auto known = fake.memory.find(at);
  if (known == fake.memory.end()) {
    ++fake.misuse;
    return code::invalid_value;
  }
  ::munmap(reinterpret_cast<void*>(at), whole_pages(known->second.bytes));  // NOLINT: our own range
  fake.memory.erase(known);
  return 0;
}

const Range* range_of(std::uintptr_t at) {
  const auto& memory = state().memory;
  auto next = memory.upper_bound(at);
  if (next == memory.begin()) return nullptr;
  --next;
  return at < next->first + next->second.bytes ? &next->second : nullptr;
}

Status memory_allocate(Address* at, std::size_t bytes) {
  FAKE_ENTER_CONTEXT("cuMemAlloc");
  if (const Status stopped = fake.prohibited(); stopped != 0) return stopped;
  void* made = nullptr;
  const Status status = allocate(&made, bytes, context->device, false);
  *at = reinterpret_cast<Address>(made);
  return status;
}

Status memory_allocate_managed(Address* at, std::size_t bytes, unsigned) {
  FAKE_ENTER_CONTEXT("cuMemAllocManaged");
  void* made = nullptr;
  const Status status = allocate(&made, bytes, context->device, true);
  *at = reinterpret_cast<Address>(made);
  return status;
}

Status memory_free(Address at) {
  FAKE_ENTER_CONTEXT("cuMemFree");
  if (const Status stopped = fake.prohibited(); stopped != 0) return stopped;
  return free_range(at);
}

Status host_allocate(void** at, std::size_t bytes, unsigned) {
  FAKE_ENTER_CONTEXT("cuMemHostAlloc");
  if (const Status stopped = fake.prohibited(); stopped != 0) return stopped;
  return allocate(at, bytes, -1, false);
}

Status host_free(void* at) {
  FAKE_ENTER_CONTEXT("cuMemFreeHost");
  return free_range(reinterpret_cast<std::uintptr_t>(at));
}

Status host_register(void* at, std::size_t bytes, unsigned) {
  FAKE_ENTER_CONTEXT("cuMemHostRegister");
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  if (bytes == 0 || range_of(begin) != nullptr || range_of(begin + bytes - 1) != nullptr) return code::invalid_value;
  fake.memory[begin] = {.bytes = bytes, .registered = true};
  return 0;
}

Status host_unregister(void* at) {
  FAKE_ENTER_CONTEXT("cuMemHostUnregister");
  const auto known = fake.memory.find(reinterpret_cast<std::uintptr_t>(at));
  if (known == fake.memory.end() || !known->second.registered) {
    ++fake.misuse;
    return code::invalid_value;
  }
  fake.memory.erase(known);
  return 0;
}

Status host_device_address(Address* at, void* host, unsigned) {
  FAKE_ENTER_CONTEXT("cuMemHostGetDevicePointer");
  *at = reinterpret_cast<Address>(host);
  return 0;
}

Status pointer_attributes(unsigned count, int* attributes, void** values, Address at) {
  FAKE_ENTER("cuPointerGetAttributes");
  const Range* const range = range_of(at);
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case cuda::pointer_attribute::memory_type:
        *static_cast<unsigned*>(values[i]) = range == nullptr    ? 0
                                             : range->device < 0 ? cuda::memory_type_host
                                                                 : cuda::memory_type_device;
        break;
      case cuda::pointer_attribute::is_managed:
        *static_cast<bool*>(values[i]) = range != nullptr && range->managed;
        break;
      case cuda::pointer_attribute::device_ordinal:
        *static_cast<int*>(values[i]) = range == nullptr ? -2 : range->device;
        break;
      default: return code::invalid_value;
    }
  }
  return 0;
}

Status copy_async(Address to, Address from, std::size_t bytes, CUstream_st* stream) {
  FAKE_ENTER_CONTEXT("cuMemcpyAsync");
  return fake.submit(stream, [=] {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);  // NOLINT: addresses
    return 0;
  });
}

/// With everything before and after it in order, as the real one without a stream.
Status copy_now(Address to, Address from, std::size_t bytes) {
  FAKE_ENTER_CONTEXT("cuMemcpy");
  if (const Status stopped = fake.prohibited(); stopped != 0) return stopped;
  auto* const stream = fake.resolve(nullptr);
  const Status submitted = fake.submit(stream, [=] {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);  // NOLINT: addresses
    return 0;
  });
  if (submitted != 0) return submitted;
  fake.wait_for(lock, stream->last);
  return context->sticky;
}

Status copy_to_device(Address to, const void* from, std::size_t bytes) {
  return copy_now(to, reinterpret_cast<Address>(from), bytes);
}

Status copy_to_host(void* to, Address from, std::size_t bytes) {
  return copy_now(reinterpret_cast<Address>(to), from, bytes);
}

Status set_async(Address at, unsigned char value, std::size_t bytes, CUstream_st* stream) {
  FAKE_ENTER_CONTEXT("cuMemsetD8Async");
  return fake.submit(stream, [=] {
    std::memset(reinterpret_cast<void*>(at), value, bytes);  // NOLINT: an address
    return 0;
  });
}

template <class Type>
void* erased(Type* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

std::vector<Named> memory_functions() {
  return {{"cuMemAlloc", erased(memory_allocate)},
          {"cuMemAllocManaged", erased(memory_allocate_managed)},
          {"cuMemFree", erased(memory_free)},
          {"cuMemHostAlloc", erased(host_allocate)},
          {"cuMemFreeHost", erased(host_free)},
          {"cuMemHostRegister", erased(host_register)},
          {"cuMemHostUnregister", erased(host_unregister)},
          {"cuMemHostGetDevicePointer", erased(host_device_address)},
          {"cuPointerGetAttributes", erased(pointer_attributes)},
          {"cuMemcpyAsync", erased(copy_async)},
          {"cuMemcpyHtoD", erased(copy_to_device)},
          {"cuMemcpyDtoH", erased(copy_to_host)},
          {"cuMemsetD8Async", erased(set_async)}};
}

}  // namespace tutti::testing::fake
