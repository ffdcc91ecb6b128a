#include "exec/pull.h"

#include <sys/uio.h>

#include <cerrno>

#include <fmt/format.h>

#include "transport/rights.h"

namespace tutti {

Result<void> pull(int pid, const std::byte* from, std::span<std::byte> into) {
  for (std::size_t done = 0; done < into.size();) {
    iovec local{into.data() + done, into.size() - done};
    iovec remote{const_cast<std::byte*>(from) + done, into.size() - done};
    const ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (got > 0) {
      done += static_cast<std::size_t>(got);
      continue;
    }
    Error error{.code = Code::remote,
                .what = fmt::format("cannot read {} bytes from process {} (process_vm_readv)", into.size() - done, pid),
                .sys_errno = got < 0 ? errno : EFAULT};
    if (is_refusal(error)) error.what += fmt::format(". {}", remedy_of_refusal());
    return error;
  }
  return {};
}

}  // namespace tutti
