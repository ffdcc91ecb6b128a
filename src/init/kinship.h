// Whether another process has the same launcher as this one.
#pragma once

#include <sys/types.h>

namespace tutti {

enum class Kin {
  sibling,  ///< has the same parent, or is this process
  /// each has a parent without other children, such as `timeout 60 program`, and these parents have one parent
  cousin,
  stranger,  ///< neither; or it has another terminal's sid, or is in a PID namespace that is not visible from here
};

/// `pid` is as translated by the kernel to this PID namespace; 0: none here.
Kin kin_of(pid_t pid);

}  // namespace tutti
