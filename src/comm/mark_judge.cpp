#include "comm/mark_judge.h"

#include "call/mismatch.h"

namespace tutti {

Result<bool> MarkJudge::operator()(const CallMark& theirs) {
  constexpr std::int64_t name_limit_ns = 1'000'000'000;
  const MadeCall made{peer_, theirs.sequence, theirs.signature};
  if (theirs.sequence == mark_.sequence) return differing_calls({rank_, mark_.sequence, mark_.signature}, made);
  const auto own = history_.find(theirs.sequence);
  if (own && !(own->last.signature == theirs.signature))
    return differing_calls({rank_, theirs.sequence, own->last.signature}, made);
  const std::int64_t now = system_.now_ns();
  if (differs_since_ns_ == 0) differs_since_ns_ = now;
  if (now - differs_since_ns_ < name_limit_ns) return false;
  return differing_calls({rank_, mark_.sequence, mark_.signature}, made);
}

}  // namespace tutti
