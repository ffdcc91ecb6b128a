// Changes a schedule as no algorithm would: for tests that spoil it.
#pragma once

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "plan/schedule.h"

namespace tutti {

class ScheduleEditor {
 public:
  /// `schedule` with other transfers, its other facts derived from them as if they had been added in that order.
  static Schedule with(Schedule schedule, std::vector<Transfer> transfers) {
    std::ranges::stable_sort(transfers, {}, &Transfer::step);
    schedule.steps_ = transfers.empty() ? 0 : transfers.back().step + 1;
    schedule.scratch_groups_ = 0;
    schedule.chained_ = false;
    std::map<std::tuple<int, Rank, Buffer, int>, int> operands;
    for (const Transfer& t : transfers) {
      for (const Ref& ref : {t.src, t.dst})
        if (ref.buffer == Buffer::scratch)
          schedule.scratch_groups_ = std::max(schedule.scratch_groups_, ref.block / schedule.parts_ + 1);
      if (t.kind == Kind::reduce && ++operands[{t.step, t.to, t.dst.buffer, t.dst.block}] > limits::sources_max)
        schedule.chained_ = true;
    }
    schedule.transfers_ = std::move(transfers);
    return schedule;
  }
};

}  // namespace tutti
