// Kernels on real threads.
#include "kernels/image.h"
#include "support/host_bodies.h"
#include "support/thread_launch.h"

namespace tutti::testing {

void run_on_threads(const Launch& launch, int threads) {
  with_threads<ThreadBlock<>>(launch, threads, [&](auto& b, BodyShared& s) { perform(b, s, launch); });
}

bool launch_by_name(std::string_view entry, const device::Call& call, int threads) {
  for (const device::Body body : device::bodies)
    for (int type = 0; type < device_type_count; ++type)
      if (entry == device::entry_name(body, static_cast<DataType>(type))) {
        run_on_threads({.body = body, .type = static_cast<DataType>(type), .call = &call}, threads);
        return true;
      }
  return false;
}

}  // namespace tutti::testing
