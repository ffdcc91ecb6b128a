// How often the host polls the words that a GPU writes: a GPU rings no doorbell.
#pragma once

#include <cstdint>

#include "comm/communicator.h"

namespace tutti {

inline std::int64_t next_gpu_poll_ns(const Communicator& communicator) {
  constexpr std::int64_t every_ns = 50'000;
  return communicator.process().system.now_ns() + every_ns;
}

}  // namespace tutti
