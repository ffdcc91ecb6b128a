// Whether another process was started by whatever started this one.
#pragma once

#include <sys/types.h>

namespace tutti {

enum class Kin {
  sibling,   ///< one parent, or this very process
  cousin,    ///< each has a parent that has no other child, as `timeout 60 program` has, and those have one parent
  stranger,  ///< neither, in another terminal's sid, or in a PID namespace that cannot be seen from here
};

/// `pid` as the kernel translates it to this PID namespace; 0: it has none here.
Kin kin_of(pid_t pid);

}  // namespace tutti
