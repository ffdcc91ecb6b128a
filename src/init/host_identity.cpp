#include "init/host_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include <fmt/format.h>

#include "base/file.h"

namespace tutti {
namespace {

/// The number of a namespace of this thread, "net" or "user"; 0: unknown.
unsigned long long namespace_number(const char* kind) {
  struct stat status {};
  const bool known = ::stat(fmt::format("/proc/thread-self/ns/{}", kind).c_str(), &status) == 0;
  return known ? static_cast<unsigned long long>(status.st_ino) : 0;
}

}  // namespace

std::string host_identity(const Config& config) {
  if (const std::string& given = config.text("TUTTI_HOSTID"); !given.empty()) return "id " + given;
  std::string boot_id;
  std::istringstream(content_of("/proc/sys/kernel/random/boot_id")) >> boot_id;
  return fmt::format("{} {:x}", boot_id, namespace_number("net"));
}

std::string user_identity() {
  return fmt::format("{} {:x}", ::geteuid(), namespace_number("user"));
}

}  // namespace tutti
