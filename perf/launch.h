// Who runs: ranks as processes and threads of one program, watched by a parent that leaves nothing behind.
#pragma once

#include <functional>
#include <string_view>

#include "perf/exchange.h"
#include "perf/gpu.h"
#include "perf/options.h"

namespace perf {

/// One rank, initialised and pinned.
struct Rank {
  int rank;
  int ranks;
  tuttiComm_t comm;
  Exchange& exchange;
  const Gpu* gpu = nullptr;  ///< with --memory device

  bool is_first() const { return rank == 0; }
};

/// Runs `body` as every rank: forked processes and their threads, or this process alone when a launcher started it.
/// `body` returns an Exit code, the same on every rank. Returns the program's exit code: a rank that fails or dies, the
/// limit and Ctrl-C end all others.
///
/// Must be called before anything else touches tutti: the ranks are forked.
int launch(const LaunchOptions& options, std::string_view program, const std::function<int(Rank&)>& body);

/// Unless `result` is success: says which call of which rank failed and why, and ends the process.
void expect_success(tuttiResult_t result, tuttiComm_t comm, int rank, std::string_view call);

/// Says what is wrong and ends the process. The parent ends the other ranks.
[[noreturn]] void fail(int rank, std::string_view what);

}  // namespace perf
