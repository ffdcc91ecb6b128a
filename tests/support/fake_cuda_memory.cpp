// The fake driver's memory: host memory with recorded ranges, and copies on streams.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "support/fake_cuda_state.h"

namespace tutti::testing::fake {
namespace {

using cuda::Address;

constexpr std::size_t page = 4096;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + page - 1) / page * page;
}

/// Filled with a pattern: nobody may count on zeros. `file`: shared with whoever maps that; −1: private.
void* map(std::size_t bytes, int file) {
  const int flags = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* const at = ::mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, file, 0);
  if (at == MAP_FAILED) return nullptr;
  std::memset(at, 0xa5, bytes < (1u << 20) ? bytes : 0);
  return at;
}

Status allocate(void** at, std::size_t bytes, int device, bool managed) {
  if (bytes == 0) return code::invalid_value;
  auto& fake = state();
  int file = -1;
  if (fake.shareable && device >= 0 && !managed) {
    file = ::memfd_create("fake_cuda", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(whole_pages(bytes))) != 0) return code::out_of_memory;
  }
  *at = map(bytes, file);
  if (*at == nullptr) return code::out_of_memory;
  fake.memory[reinterpret_cast<std::uintptr_t>(*at)] = {
      .bytes = bytes, .device = device, .managed = managed, .file = file, .id = fake.next_allocation++};
  return 0;
}

Status free_range(std::uintptr_t at) {
  auto& fake = state();
  const auto known = fake.memory.find(at);
  if (known == fake.memory.end() || known->second.opened > 0) {
    ++fake.misuse;
    return code::invalid_value;
  }
  if (known->second.file >= 0) ::close(known->second.file);
  ::munmap(reinterpret_cast<void*>(at), whole_pages(known->second.bytes));  // NOLINT: our own range
  fake.memory.erase(known);
  return 0;
}

using Memory = std::map<std::uintptr_t, Range>;

Memory::const_iterator find_range(std::uintptr_t at) {
  const auto& memory = state().memory;
  auto next = memory.upper_bound(at);
  if (next == memory.begin()) return memory.end();
  --next;
  return at < next->first + next->second.bytes ? next : memory.end();
}

const Range* range_of(std::uintptr_t at) {
  return state().range_of(at);
}

Status memory_allocate(Address* at, std::size_t bytes) {
  FAKE_ENTER_CONTEXT("cuMemAlloc");
  if (const Status stopped = fake.prohibited(); stopped != 0) return stopped;
  void* made = nullptr;
  const Status status = allocate(&made, bytes, context->device, false);
  *at = reinterpret_cast<Address>(made);
  return status;
}

/// From a pool, at once.
Status memory_allocate_async(Address* at, std::size_t bytes, CUstream_st*) {
  FAKE_ENTER_CONTEXT("cuMemAllocAsync");
  void* made = nullptr;
  const bool shareable = std::exchange(fake.shareable, false);
  const Status status = allocate(&made, bytes, context->device, false);
  fake.shareable = shareable;
  *at = reinterpret_cast<Address>(made);
  if (status == 0) fake.memory[*at].pooled = true;
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
  fake.wait_for_all();
  return free_range(at);
}

Status host_allocate(void** at, std::size_t bytes, unsigned) {
  FAKE_ENTER_CONTEXT("cuMemHostAlloc");
  if (const Status stopped = fake.prohibited(); stopped != 0) return stopped;
  return allocate(at, bytes, -1, false);
}

Status host_free(void* at) {
  FAKE_ENTER_CONTEXT("cuMemFreeHost");
  fake.wait_for_all();
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
  fake.wait_for_all();
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
      case cuda::pointer_attribute::buffer_id:
        *static_cast<std::uint64_t*>(values[i]) = range == nullptr ? 0 : range->id;
        break;
      case cuda::pointer_attribute::device_ordinal:
        *static_cast<int*>(values[i]) = range == nullptr ? -2 : range->device;
        break;
      case cuda::pointer_attribute::ipc_capable:
        *static_cast<bool*>(values[i]) =
            range != nullptr && range->device >= 0 && !range->managed && !range->pooled && !range->rights;
        break;
      case cuda::pointer_attribute::pool:
        *static_cast<void**>(values[i]) =
            range != nullptr && range->pooled ? fake.contexts[static_cast<std::size_t>(range->device)].get() : nullptr;
        break;
      default: return code::invalid_value;
    }
  }
  return 0;
}

Status address_range(Address* base, std::size_t* bytes, Address at) {
  FAKE_ENTER_CONTEXT("cuMemGetAddressRange");
  const auto found = find_range(at);
  if (found == fake.memory.end()) return code::not_found;
  *base = found->first;
  *bytes = found->second.bytes;
  return 0;
}

/// What a handle has in it.
struct Exported {
  pid_t process;
  int file;
  int device;
  std::uint64_t bytes;
  std::uint64_t id;
};
static_assert(sizeof(Exported) <= sizeof(cuda::IpcHandle));

Status ipc_export(cuda::IpcHandle* handle, Address at) {
  FAKE_ENTER_CONTEXT("cuIpcGetMemHandle");
  const auto found = find_range(at);
  if (found == fake.memory.end() || found->second.file < 0) return code::invalid_value;
  const Range& range = found->second;
  const Exported exported{
      .process = ::getpid(), .file = range.file, .device = range.device, .bytes = range.bytes, .id = range.id};
  *handle = {};
  std::memcpy(handle->bytes, &exported, sizeof exported);
  return 0;
}

/// Of this process's own memory it is refused, as by the real one, and a second time for one GPU.
Status ipc_open(Address* at, cuda::IpcHandle handle, unsigned flags) {
  FAKE_ENTER_CONTEXT("cuIpcOpenMemHandle");
  Exported exported{};
  std::memcpy(&exported, handle.bytes, sizeof exported);
  if (flags != cuda::ipc_lazy_peer_access || exported.process == ::getpid()) return code::invalid_value;
  for (const auto& [known, range] : fake.memory)
    if (range.opened == exported.process && range.id == exported.id && range.opened_by == context->device)
      return code::already_mapped;
  const std::string path = "/proc/" + std::to_string(exported.process) + "/fd/" + std::to_string(exported.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return code::invalid_value;
  void* const made =
      ::mmap(nullptr, whole_pages(exported.bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  ::close(file);
  if (made == MAP_FAILED) return code::invalid_value;
  *at = reinterpret_cast<Address>(made);
  fake.memory[*at] = {.bytes = exported.bytes,
                      .device = exported.device,
                      .id = exported.id,
                      .opened = exported.process,
                      .opened_by = context->device};
  return 0;
}

Status ipc_close(Address at) {
  FAKE_ENTER_CONTEXT("cuIpcCloseMemHandle");
  fake.wait_for_all();
  const auto known = fake.memory.find(at);
  if (known == fake.memory.end() || known->second.opened == 0) {
    ++fake.misuse;
    return code::invalid_value;
  }
  ::munmap(reinterpret_cast<void*>(at), whole_pages(known->second.bytes));  // NOLINT: our own range
  fake.memory.erase(known);
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

const Range* State::range_of(std::uintptr_t at) const {
  const auto found = find_range(at);
  return found == memory.end() ? nullptr : &found->second;
}

std::vector<Named> memory_functions() {
  return {{"cuMemAlloc", erased(memory_allocate)},
          {"cuMemAllocAsync", erased(memory_allocate_async)},
          {"cuMemAllocManaged", erased(memory_allocate_managed)},
          {"cuMemFree", erased(memory_free)},
          {"cuMemHostAlloc", erased(host_allocate)},
          {"cuMemFreeHost", erased(host_free)},
          {"cuMemHostRegister", erased(host_register)},
          {"cuMemHostUnregister", erased(host_unregister)},
          {"cuMemHostGetDevicePointer", erased(host_device_address)},
          {"cuPointerGetAttributes", erased(pointer_attributes)},
          {"cuMemGetAddressRange", erased(address_range)},
          {"cuIpcGetMemHandle", erased(ipc_export)},
          {"cuIpcOpenMemHandle", erased(ipc_open)},
          {"cuIpcCloseMemHandle", erased(ipc_close)},
          {"cuMemcpyAsync", erased(copy_async)},
          {"cuMemcpyHtoD", erased(copy_to_device)},
          {"cuMemcpyDtoH", erased(copy_to_host)},
          {"cuMemsetD8Async", erased(set_async)}};
}

}  // namespace tutti::testing::fake
