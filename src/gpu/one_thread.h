// The error of a thread that drives several ranks of a GPU and waits for a call that it has yet to make itself.
#pragma once

#include <cstdint>

#include <fmt/format.h>

#include "base/error.h"
#include "plan/types.h"

namespace tutti {

inline Error waits_for_own_thread(Rank rank, Rank missing, std::int64_t waited_ns) {
  return {.code = Code::timeout,
          .what = fmt::format(
              "rank {} waited {:.1f} s for rank {}, which this thread drives too: ranks that share a GPU make a call "
              "together, so wrap the calls of one thread in tuttiGroupStart and tuttiGroupEnd",
              rank, static_cast<double>(waited_ns) * 1e-9, missing),
          .peer = missing};
}

}  // namespace tutti
