#include "base/mapping.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>

#include <fmt/format.h>

namespace tutti {

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

Result<void> Mapping::prefer_node(int node) {
  constexpr std::size_t word_bits = sizeof(unsigned long) * CHAR_BIT, nodes_max = 1024;  // as many as Linux can have
  const auto at = static_cast<std::size_t>(node);
  if (at >= nodes_max) return Error{.code = Code::system, .what = "prefer a NUMA node", .sys_errno = EINVAL};
  std::array<unsigned long, nodes_max / word_bits> nodes{};
  nodes[at / word_bits] |= 1UL << (at % word_bits);
  // Without libnuma, which offers no more than this call. The kernel takes one bit less than it is told.
  if (::syscall(SYS_mbind, data_, bytes_, MPOL_PREFERRED, nodes.data(), nodes_max + 1, 0) != 0)
    return Error{.code = Code::system, .what = "prefer a NUMA node", .sys_errno = errno};
  return {};
}

Result<Mapping> Mapping::shared(int fd, std::size_t bytes) {
  constexpr std::size_t page_bytes = 4096, huge_page_bytes = 2 << 20;
  // The kernel uses huge pages only if address and offset are aligned alike, so a large map is placed inside a larger
  // reservation.
  const std::size_t slack = bytes >= huge_page_bytes ? huge_page_bytes : 0;
  const auto failed = [bytes](int why) {
    return Error{.code = Code::system,
                 .what = fmt::format("map {} bytes of shared memory (limits: ulimit -v, vm.max_map_count)", bytes),
                 .sys_errno = why};
  };
  if (bytes + slack < bytes) return failed(ENOMEM);
  void* at = nullptr;
  if (slack > 0) {
    void* const reserved =
        ::mmap(nullptr, bytes + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return failed(errno);
    const std::size_t lead = -reinterpret_cast<std::uintptr_t>(reserved) % huge_page_bytes;
    at = static_cast<std::byte*>(reserved) + lead;
    if (lead > 0) ::munmap(reserved, lead);
    const std::size_t whole = (bytes + page_bytes - 1) / page_bytes * page_bytes;
    if (slack - lead > whole - bytes) ::munmap(static_cast<std::byte*>(at) + whole, slack - lead - (whole - bytes));
  }
  void* const mapped = ::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (at != nullptr ? MAP_FIXED : 0), fd, 0);
  if (mapped == MAP_FAILED) {
    const int why = errno;
    if (at != nullptr) ::munmap(at, bytes);
    return failed(why);
  }
  return Mapping(static_cast<std::byte*>(mapped), bytes);
}

Result<Mapping> Mapping::shared_over(std::byte* at, int fd, std::size_t bytes) {
  void* const mapped = ::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (mapped == MAP_FAILED)
    return Error{.code = Code::system,
                 .what = fmt::format("map {} bytes of shared memory in place of other pages", bytes),
                 .sys_errno = errno};
  return Mapping(at, bytes);
}

Result<void> Mapping::turn_private() {
  const auto failed = [this](int why) {
    return Error{
        .code = Code::system, .what = fmt::format("give {} bytes their own pages back", bytes_), .sys_errno = why};
  };
  void* const fresh = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return failed(errno);
  // Here a lack of memory is an error; while copying it would be a signal, where the kernel does not offer this.
  if (auto populated = populate_now(static_cast<std::byte*>(fresh), bytes_); !populated) {
    ::munmap(fresh, bytes_);
    return failed(populated.error().sys_errno);
  }
  copy_pages(static_cast<std::byte*>(fresh), data_, bytes_);
  if (::mremap(fresh, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, data_) == MAP_FAILED) {
    const int why = errno;
    ::munmap(fresh, bytes_);
    return failed(why);
  }
  data_ = nullptr;
  bytes_ = 0;
  return {};
}

bool is_not_offered(int error) {
  return error == EINVAL || error == ENOSYS || error == EPERM || error == EACCES || error == EOPNOTSUPP;
}

Result<bool> populate_now(std::byte* at, std::size_t bytes) {
  constexpr int tries_max = 1000;  // the kernel asks for another try where memory is being moved
  for (int tries = 0; ::madvise(at, bytes, MADV_POPULATE_WRITE) != 0; ++tries) {
    if (is_not_offered(errno) || tries == tries_max) return false;
    if (errno != EAGAIN && errno != EINTR)
      return Error{.code = Code::system, .what = "get memory", .sys_errno = errno == EFAULT ? ENOMEM : errno};
  }
  return true;
}

// Volatile, because compilers turn such loops into memcpy.
__attribute__((no_sanitize("address"))) void copy_pages(std::byte* to, const std::byte* from, std::size_t bytes) {
  auto* const words = reinterpret_cast<volatile std::uint64_t*>(to);
  const auto* const source = reinterpret_cast<const volatile std::uint64_t*>(from);
  for (std::size_t i = 0; i < bytes / sizeof *words; ++i) words[i] = source[i];
}

}  // namespace tutti
