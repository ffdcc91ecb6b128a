// What the kernel looks at before one process may reach the memory of another: its user, and whether it may be traced.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include "base/error.h"

namespace tutti {

/// Of this process. A change of user or group, or of capabilities, also makes a process undumpable.
struct Rights {
  uid_t user = 0;
  bool dumpable = true;

  static Rights now();
  /// One system call less than `now`.
  static uid_t user_now() { return ::geteuid(); }
  bool operator==(const Rights&) const = default;
};

/// Whether the kernel, or a descriptor server, has refused to let this process reach another.
bool is_refusal(const Error& error);

/// What a user can do about it; to be added to the text of such an error.
const char* remedy_of_refusal();

}  // namespace tutti
