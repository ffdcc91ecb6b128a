#include "base/host.h"

#include <unistd.h>

#include <array>
#include <climits>
#include <fstream>

#include <fmt/format.h>

namespace tutti {

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name[0] == '\0' ? "localhost" : name.data();
}

std::string this_process() {
  return fmt::format("pid {} on {}", ::getpid(), host_name());
}

bool is_traced() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("TracerPid:")) return line.find_first_of("123456789") != std::string::npos;
  return false;
}

}  // namespace tutti
