#include "base/host.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

#include <fmt/format.h>

#include "base/file.h"

namespace tutti {

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name[0] == '\0' ? "localhost" : name.data();
}

std::string this_process() {
  return fmt::format("pid {} on {}", ::getpid(), host_name());
}

cpu_set_t own_cpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (::sched_getaffinity(0, sizeof cpus, &cpus) == 0) return cpus;
  const long all = std::clamp(::sysconf(_SC_NPROCESSORS_CONF), 1L, long{CPU_SETSIZE});
  for (long cpu = 0; cpu < all; ++cpu) CPU_SET(static_cast<std::size_t>(cpu), &cpus);
  return cpus;
}

bool is_traced() {
  const std::string status = content_of("/proc/self/status");
  const auto at = status.find("TracerPid:");
  if (at == std::string::npos) return false;
  return status.find_first_of("123456789", at) < status.find('\n', at);
}

}  // namespace tutti
