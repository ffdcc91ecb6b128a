#include "exec/pull.h"

#include <sys/mman.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "transport/rights.h"

namespace tutti {

namespace {

Error failed(const ForeignProcess& process, std::size_t bytes, std::string_view why, int sys_errno) {
  return {.code = Code::remote,
          .what = fmt::format("cannot read {} bytes from process {} (process_vm_readv){}", bytes, process.pid, why),
          .sys_errno = sys_errno};
}

}  // namespace

/// Each call of the system reads the word first: all that it reads is of one program.
Result<void> pull(const ForeignProcess& process, const std::byte* from, std::span<std::byte> into) {
  std::uint64_t word = process.word;
  const std::size_t proof = process.word_at != 0 ? sizeof word : 0;
  for (std::size_t done = 0; done < into.size();) {
    const std::array<iovec, 2> local{{{&word, proof}, {into.data() + done, into.size() - done}}};
    const std::array<iovec, 2> remote{
        {{reinterpret_cast<void*>(process.word_at), proof}, {const_cast<std::byte*>(from) + done, into.size() - done}}};
    const unsigned long skipped = proof != 0 ? 0 : 1;
    const ssize_t got =
        process_vm_readv(process.pid, local.data() + skipped, 2 - skipped, remote.data() + skipped, 2 - skipped, 0);
    if (got > 0 && word != process.word)
      return failed(process, into.size() - done, ": it is another program now", ESRCH);
    if (got > static_cast<ssize_t>(proof)) {
      done += static_cast<std::size_t>(got) - proof;
      continue;
    }
    Error error = failed(process, into.size() - done, "", got < 0 ? errno : EFAULT);
    if (is_refusal(error)) error.what += fmt::format(". {}", remedy_of_refusal());
    return error;
  }
  return {};
}

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
