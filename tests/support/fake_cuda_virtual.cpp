// The fake driver's memory that programs create, hand out as descriptors and map themselves.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>

#include "support/fake_cuda_state.h"

namespace tutti::testing::fake {
namespace {

using cuda::Address;
using cuda::Allocated;

constexpr std::size_t unit = std::size_t{2} << 20;
constexpr const char* file_name = "fake_cuda_created.";  // then the owner's process

bool is_right(const cuda::AllocationKind& kind) {
  return kind.type == 1 && kind.handle_types == cuda::handle_type_descriptor &&
         kind.location.type == cuda::location_device;
}

Status add(Allocated* made, const Created& one) {
  static Allocated next = 1;
  *made = next++;
  state().created[*made] = one;
  return 0;
}

Status granularity(std::size_t* bytes, const cuda::AllocationKind* kind, int) {
  FAKE_ENTER("cuMemGetAllocationGranularity");
  if (!is_right(*kind)) return code::invalid_value;
  *bytes = unit;
  return 0;
}

/// Filled with a pattern at its begin: nobody may count on zeros.
Status memory_create(Allocated* made, std::size_t bytes, const cuda::AllocationKind* kind, unsigned long long) {
  FAKE_ENTER_CONTEXT("cuMemCreate");
  if (const Status stopped = fake.prohibited(); stopped != 0) return stopped;
  if (!fake.shareable) return code::not_supported;
  if (!is_right(*kind) || bytes == 0 || bytes % unit != 0) return code::invalid_value;
  const int file = ::memfd_create((file_name + std::to_string(::getpid())).c_str(), MFD_CLOEXEC);
  std::array<unsigned char, 1 << 16> pattern;
  pattern.fill(0xa5);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0 ||
      ::pwrite(file, pattern.data(), pattern.size(), 0) != static_cast<ssize_t>(pattern.size()))
    return code::out_of_memory;
  return add(made, {.file = file, .bytes = bytes, .device = kind->location.id, .owner = ::getpid()});
}

Status memory_release(Allocated memory) {
  FAKE_ENTER_CONTEXT("cuMemRelease");
  const auto known = fake.created.find(memory);
  if (known == fake.created.end()) {
    ++fake.misuse;
    return code::invalid_value;
  }
  ::close(known->second.file);
  fake.created.erase(known);
  return 0;
}

Status memory_export(void* descriptor, Allocated memory, int handle_type, unsigned long long) {
  FAKE_ENTER_CONTEXT("cuMemExportToShareableHandle");
  const auto known = fake.created.find(memory);
  if (known == fake.created.end() || handle_type != cuda::handle_type_descriptor) return code::invalid_value;
  const int made = ::fcntl(known->second.file, F_DUPFD_CLOEXEC, 0);
  std::memcpy(descriptor, &made, sizeof made);
  return made < 0 ? code::out_of_memory : 0;
}

/// The process whose memory is behind a descriptor; 0: it is something else.
int owner_of(int file) {
  std::array<char, 128> name{};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  if (::readlink(link.c_str(), name.data(), name.size() - 1) < 0) return 0;
  const std::string_view text = name.data();
  const std::string_view begin = file_name;
  const auto at = text.find(begin);
  return at == std::string_view::npos ? 0 : std::atoi(text.data() + at + begin.size());
}

Status memory_import(Allocated* made, void* descriptor, int handle_type) {
  FAKE_ENTER_CONTEXT("cuMemImportFromShareableHandle");
  const int file = static_cast<int>(reinterpret_cast<std::intptr_t>(descriptor));
  struct stat seen {};
  const int owner = owner_of(file);
  if (handle_type != cuda::handle_type_descriptor || owner == 0 || ::fstat(file, &seen) != 0)
    return code::invalid_value;
  return add(made, {.file = ::fcntl(file, F_DUPFD_CLOEXEC, 0),
                    .bytes = static_cast<std::size_t>(seen.st_size),
                    .device = context->device,
                    .owner = owner});
}

Status addresses_reserve(Address* at, std::size_t bytes, std::size_t, Address, unsigned long long) {
  FAKE_ENTER_CONTEXT("cuMemAddressReserve");
  if (bytes == 0 || bytes % unit != 0) return code::invalid_value;
  void* const made = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return code::out_of_memory;
  *at = reinterpret_cast<Address>(made);
  fake.reserved[*at] = bytes;
  return 0;
}

Status addresses_free(Address at, std::size_t bytes) {
  FAKE_ENTER_CONTEXT("cuMemAddressFree");
  const auto known = fake.reserved.find(at);
  if (known == fake.reserved.end() || known->second != bytes || fake.memory.contains(at)) {
    ++fake.misuse;
    return code::invalid_value;
  }
  ::munmap(reinterpret_cast<void*>(at), bytes);  // NOLINT: our own range
  fake.reserved.erase(known);
  return 0;
}

Status memory_map(Address at, std::size_t bytes, std::size_t offset, Allocated memory, unsigned long long) {
  FAKE_ENTER_CONTEXT("cuMemMap");
  const auto known = fake.created.find(memory);
  const auto range = fake.reserved.find(at);
  if (known == fake.created.end() || range == fake.reserved.end() || range->second != bytes || offset != 0 ||
      bytes > known->second.bytes || fake.memory.contains(at))
    return code::invalid_value;
  const Created& created = known->second;
  if (::mmap(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE,  // NOLINT: our own range
             MAP_SHARED | MAP_FIXED | MAP_NORESERVE, created.file, 0) == MAP_FAILED)
    return code::out_of_memory;
  fake.memory[at] = {.bytes = bytes,
                     .device = created.device,
                     .id = fake.next_allocation++,
                     .opened = created.owner == ::getpid() ? 0 : created.owner,
                     .rights = 0,
                     .created = true};
  return 0;
}

Status memory_unmap(Address at, std::size_t bytes) {
  FAKE_ENTER_CONTEXT("cuMemUnmap");
  const auto known = fake.memory.find(at);
  if (known == fake.memory.end() || !known->second.created || known->second.bytes != bytes) {
    ++fake.misuse;
    return code::invalid_value;
  }
  (void)::mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE,  // NOLINT: our own range
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  fake.memory.erase(known);
  return 0;
}

Status memory_allow(Address at, std::size_t bytes, const cuda::AccessOf* who, std::size_t count) {
  FAKE_ENTER_CONTEXT("cuMemSetAccess");
  const auto known = fake.memory.find(at);
  if (known == fake.memory.end() || !known->second.created || known->second.bytes != bytes) return code::invalid_value;
  for (std::size_t i = 0; i < count; ++i) {
    if (who[i].location.type != cuda::location_device || who[i].flags != cuda::access_read_write)
      return code::invalid_value;
    *known->second.rights |= 1u << who[i].location.id;
  }
  return 0;
}

template <class Type>
void* erased(Type* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

std::vector<Named> virtual_memory_functions() {
  return {{"cuMemGetAllocationGranularity", erased(granularity)},
          {"cuMemCreate", erased(memory_create)},
          {"cuMemRelease", erased(memory_release)},
          {"cuMemExportToShareableHandle", erased(memory_export)},
          {"cuMemImportFromShareableHandle", erased(memory_import)},
          {"cuMemAddressReserve", erased(addresses_reserve)},
          {"cuMemAddressFree", erased(addresses_free)},
          {"cuMemMap", erased(memory_map)},
          {"cuMemUnmap", erased(memory_unmap)},
          {"cuMemSetAccess", erased(memory_allow)}};
}

}  // namespace tutti::testing::fake
