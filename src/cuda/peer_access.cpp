#include "cuda/peer_access.h"

#include <array>

namespace tutti::cuda {
namespace {

/// What decides who may access an allocation.
struct Rights {
  bool of_context = false;  ///< those of the context that holds it
  Pool pool = nullptr;      ///< those of this pool; null: those of its mapping
};

/// False: the driver cannot say. Errors: cuda (sticky errors only).
Result<bool> rights_of(const Gpu& gpu, Address at, Rights& rights) {
  unsigned managed = 0;  // the driver writes one byte or four
  unsigned plain = 0;
  std::array<int, 3> wanted{pointer_attribute::is_managed, pointer_attribute::ipc_capable, pointer_attribute::pool};
  std::array<void*, 3> values{&managed, &plain, &rights.pool};
  const Status asked = gpu.api().pointer_attributes(3, wanted.data(), values.data(), at);
  rights.of_context = managed != 0 || plain != 0;
  return gpu.told(asked, "cuPointerGetAttributes");
}

Result<bool> may_access(const Gpu& gpu, Address at, const Rights& rights, Ordinal other) {
  if (rights.of_context) return true;
  Location where{.type = location_device, .id = other};
  if (rights.pool != nullptr) {
    int flags = 0;
    if (!TUTTI_TRY(gpu.told(gpu.api().pool_access(&flags, rights.pool, &where), "cuMemPoolGetAccess"))) return false;
    return flags == access_read_write;
  }
  unsigned long long flags = 0;
  if (!TUTTI_TRY(gpu.told(gpu.api().memory_access(&flags, &where, at), "cuMemGetAccess"))) return false;
  return flags == access_read_write;
}

}  // namespace

/// A buffer may lie in several mappings, one behind the other, each with its own rights.
Result<bool> is_open_to(const Gpu& gpu, const std::byte* at, std::size_t bytes, std::span<const Ordinal> others) {
  if (others.empty()) return true;
  const auto begin = reinterpret_cast<Address>(at);
  for (Address next = begin; next < begin + bytes;) {
    Address base = 0;
    std::size_t whole = 0;
    if (!TUTTI_TRY(gpu.told(gpu.api().address_range(&base, &whole, next), "cuMemGetAddressRange"))) return false;
    Rights rights;
    if (!TUTTI_TRY(rights_of(gpu, next, rights))) return false;
    for (const Ordinal other : others)
      if (!TUTTI_TRY(may_access(gpu, next, rights, other))) return false;
    if (base + whole <= next) return false;
    next = base + whole;
  }
  return true;
}

}  // namespace tutti::cuda
