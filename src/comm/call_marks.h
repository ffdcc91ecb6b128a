// The marks of a rank's calls, by which ranks without call descriptors find that their calls differ.
#pragma once

#include <atomic>
#include <memory>

#include "comm/call_comparison.h"
#include "comm/call_history.h"
#include "comm/membership.h"

namespace tutti {

/// Empty where all ranks share memory: the call descriptors tell there.
class CallMarks {
 public:
  /// All arguments must outlive this object; `failed` ends a comparison that waits.
  CallMarks(System& system, const Membership& members, const std::atomic<bool>& failed)
      : calls_(members.area->area.header().calls) {
    if (!members.spans_hosts()) return;
    history_ = std::make_shared<CallHistory>();
    comparison_ = std::make_unique<CallComparison>(system, members, *history_, failed);
    members.control->answers_from(history_);
  }

  /// Sets the mark that is sent before the first message of the call on each connection. For the call whose turn it is.
  void sign(std::uint64_t sequence, const Signature& signature) {
    mark_ = {sequence, signature};
    calls_.store(history_->add(mark_));
  }
  /// Of the call that the rank is in.
  const CallMark& mark() const { return mark_; }
  /// The last calls signed; null if ranks have call descriptors. Any thread.
  const CallHistory* history() const { return history_.get(); }
  /// Null if ranks have call descriptors.
  CallComparison* comparison() const { return comparison_.get(); }

 private:
  SharedCallSummary& calls_;  // where peers of this host read them
  CallMark mark_;
  std::shared_ptr<CallHistory> history_;
  std::unique_ptr<CallComparison> comparison_;
};

}  // namespace tutti
