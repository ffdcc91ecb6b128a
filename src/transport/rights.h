// What the kernel looks at before one process may reach the memory of another: its user, and whether it may be traced.
#pragma once

#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace tutti {

/// Of this process. A change of user or group, or of capabilities, also makes a process undumpable.
struct Rights {
  uid_t user = 0;
  bool dumpable = true;

  static Rights now() { return {.user = ::geteuid(), .dumpable = ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1}; }
  /// One system call less than `now`.
  static uid_t user_now() { return ::geteuid(); }
  bool operator==(const Rights&) const = default;
};

/// Whether the kernel, or a descriptor server, has refused to let this process reach another. ENOSYS: what some seccomp
/// filters answer.
inline bool is_refusal(const Error& error) {
  return error.sys_errno == EPERM || error.sys_errno == EACCES || error.sys_errno == ENOSYS;
}

/// What a user can do about it; to be added to the text of such an error.
inline const char* remedy_of_refusal() {
  return "One of the two processes has given up rights since the start (setuid, PR_SET_DUMPABLE, a seccomp filter). "
         "Give them up before the communicator is made, make another one afterwards, or set TUTTI_TRANSPORT=slots";
}

}  // namespace tutti
