#include "base/random.h"

#include <sys/random.h>

#include <cerrno>

namespace tutti {

Result<void> fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got > 0)
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    else if (errno != EINTR)
      return Error{.code = Code::system, .what = "get random bytes", .sys_errno = errno};
  }
  return {};
}

}  // namespace tutti
