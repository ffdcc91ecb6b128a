// Runs ranks as processes and threads of one program, watched by a parent that leaves no process behind.
#pragma once

#include <functional>
#include <string_view>

#include "perf/exchange.h"
#include "perf/gpu.h"
#include "perf/options.h"

namespace perf {

/// One initialised and pinned rank.
struct Rank {
  int rank;
  int ranks;
  tuttiComm_t comm;
  Exchange& exchange;
  const Gpu* gpu = nullptr;  ///< with --memory device

  bool is_first() const { return rank == 0; }
};

/// Runs `body` as every rank: in forked processes and their threads, or only in this process if a launcher started it.
/// `body` returns an Exit code, equal on every rank. Returns the program's exit code. A rank that fails or dies, the
/// time limit and Ctrl-C end all other ranks.
///
/// Must be called before tutti is used in any way: the ranks are forked.
int launch(const LaunchOptions& options, std::string_view program, const std::function<int(Rank&)>& body);

/// Unless `result` is success: reports which call of which rank failed and why, and ends the process.
void expect_success(tuttiResult_t result, tuttiComm_t comm, int rank, std::string_view call);

/// Reports the error and ends the process. The parent ends the other ranks.
[[noreturn]] void fail(int rank, std::string_view what);

}  // namespace perf
