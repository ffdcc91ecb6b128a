#include "base/host.h"

#include <unistd.h>

#include <array>
#include <climits>

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

}  // namespace tutti
