// What a rank says of its buffers in a call descriptor: where they lie, and how peers may reach them.
#pragma once

#include "collective/collective_run.h"

namespace tutti {

/// Of a call that is not inline by its size. `ordinary`: the accesses to memory that is not mapped.
void describe_buffers(CallDescriptor& descriptor, Communicator& communicator, const CollectiveRun& run,
                      const AccessTable& ordinary);

}  // namespace tutti
