#include "process/process_identity.h"

#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

#include "base/file.h"

namespace tutti {

ProcessIdentity::ProcessIdentity() {
  char name[256] = "localhost";
  ::gethostname(name, sizeof name - 1);
  host = name;
  std::istringstream(content_of("/proc/sys/kernel/random/boot_id")) >> boot_id;
}

Result<void> ProcessIdentity::make() {
  const std::lock_guard lock(mutex_);
  if (token != 0) return {};
  if (::getrandom(&token, sizeof token, 0) != sizeof token || ::getrandom(key.data(), key.size(), 0) != 32)
    return Error{.code = Code::system, .what = "read random bytes", .sys_errno = errno};
  token |= 1;
  return {};
}

}  // namespace tutti
