#include "transport/rights.h"

#include <sys/prctl.h>

#include <cerrno>

namespace tutti {

Rights Rights::now() {
  return {.user = ::geteuid(), .dumpable = ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1};
}

/// ENOSYS: what some seccomp filters answer.
bool is_refusal(const Error& error) {
  return error.sys_errno == EPERM || error.sys_errno == EACCES || error.sys_errno == ENOSYS;
}

const char* remedy_of_refusal() {
  return "One of the two processes has given up rights since the start (setuid, PR_SET_DUMPABLE, a seccomp filter). "
         "Give them up before the communicator is made, make another one afterwards, or set TUTTI_TRANSPORT=slots";
}

}  // namespace tutti
