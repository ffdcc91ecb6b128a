// Sleeps on a doorbell as a rank does (src/progress/drive.cpp), without a communicator.
#pragma once

#include "base/system.h"
#include "transport/flag.h"

namespace tutti::testing {

/// Marks the sleeper, asks `ready` again, then sleeps until the bell rings, for at most 10 ms.
template <class Ready>
void doorbell_sleep(System& system, Doorbell& bell, Ready&& ready) {
  bell.mark_asleep();
  if (!ready()) system.wait(bell.asleep, 1, 10'000'000);
  bell.asleep.exchange(0, std::memory_order_seq_cst);
}

}  // namespace tutti::testing
