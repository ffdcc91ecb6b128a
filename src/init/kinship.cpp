#include "init/kinship.h"

#include <unistd.h>

#include <optional>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "base/file.h"

namespace tutti {
namespace {

/// Nothing: the process is gone or not visible. 0: its parent is outside this PID namespace.
std::optional<pid_t> parent_of(pid_t pid) {
  const std::string line = content_of(fmt::format("/proc/{}/stat", pid));
  // The name in parentheses may contain anything; the state and the parent follow it.
  const auto end = line.rfind(") ");
  if (end == std::string::npos || line.size() < end + 5) return std::nullopt;
  pid_t parent = 0;
  return std::sscanf(line.c_str() + end + 4, "%d", &parent) == 1 ? std::optional(parent) : std::nullopt;
}

/// Looks at the main thread's children only: nearly all programs start others from their main thread.
bool has_one_child(pid_t pid) {
  std::istringstream file(content_of(fmt::format("/proc/{0}/task/{0}/children", pid)));
  pid_t child = 0;
  return file >> child && !(file >> child);
}

}  // namespace

Kin kin_of(pid_t pid) {
  if (pid == ::getpid()) return Kin::sibling;
  if (pid <= 0 || ::getsid(pid) != ::getsid(0)) return Kin::stranger;
  const auto parent = parent_of(pid);
  if (!parent) return Kin::stranger;
  const pid_t own = ::getppid();
  if (*parent == own) return Kin::sibling;
  if (*parent <= 1 || own <= 1) return Kin::stranger;
  const auto starter = parent_of(*parent);
  const bool wrapped = starter && *starter > 1 && starter == parent_of(own);
  return wrapped && has_one_child(*parent) && has_one_child(own) ? Kin::cousin : Kin::stranger;
}

}  // namespace tutti
