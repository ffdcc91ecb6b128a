#include "exec/pull_buffer.h"

#include <sys/mman.h>

#include <cerrno>

#include <fmt/format.h>

namespace tutti {

Result<void> PullBuffer::allocate(std::size_t bytes) {
  constexpr std::size_t huge_page_bytes = 2 << 20;
  const std::size_t whole = (bytes + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
  at_.reset(static_cast<std::byte*>(std::aligned_alloc(huge_page_bytes, whole)));
  if (at_ == nullptr)
    return Error{.code = Code::system,
                 .what = fmt::format("cannot get {} bytes for a bounce buffer", whole),
                 .sys_errno = ENOMEM};
  bytes_ = whole;
  ::madvise(at_.get(), whole, MADV_HUGEPAGE);
  return {};
}

}  // namespace tutti
