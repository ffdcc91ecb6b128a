// What it means that a peer's message carries the mark of another call than this rank is in.
#pragma once

#include "comm/call_history.h"

namespace tutti {

class MarkJudge {
 public:
  /// `mark`: the call that the rank is in; `history`: the values that it has had. Both outlive this object.
  MarkJudge(System& system, const CallMark& mark, const CallHistory& history, int rank, int peer)
      : system_(system), mark_(mark), history_(history), rank_(rank), peer_(peer) {}

  /// If the numbers of the calls differ, an earlier call differed. Either this rank's history shows which call, or
  /// CallComparison finds it within a moment, so wait for that at most a second. False: ask again. Errors:
  /// invalid_usage (both calls are named).
  Result<bool> operator()(const CallMark& theirs);

 private:
  System& system_;
  const CallMark& mark_;
  const CallHistory& history_;
  int rank_;
  int peer_;
  std::int64_t differs_since_ns_ = 0;  // since when the received mark is of another call
};

}  // namespace tutti
