#include "comm/prediction_check.h"

#include <algorithm>

#include <fmt/format.h>

namespace tutti {

void PredictionCheck::finish(std::int64_t now_ns) {
  const auto spent_ns = static_cast<double>(std::max<std::int64_t>(now_ns - running_.started_ns, 1));
  const double ratio = spent_ns * 1e-3 / running_.predicted_us;
  Seen& seen = seen_[running_.kind];
  seen.least = seen.calls == 0 ? ratio : std::min(seen.least, ratio);
  seen.sum += ratio;
  ++seen.calls;
  if (ratio < 1 / factor) ++seen.fast;
}

double PredictionCheck::Seen::off() const {
  if (calls < calls_min) return 1;
  if (least > factor) return least;
  return 2 * fast > calls ? std::max(factor, static_cast<double>(calls) / sum) : 1;
}

std::optional<std::string> PredictionCheck::contradiction() const {
  const auto most = std::ranges::max_element(seen_, {}, [](const auto& each) { return each.second.off(); });
  if (most == seen_.end() || most->second.off() <= 1) return std::nullopt;
  const auto& [kind, seen] = *most;
  const std::string calls =
      fmt::format("{} calls of {} over {}, of {} bytes and more,", seen.calls, name(kind.collective), name(kind.access),
                  std::uint64_t{1} << std::max(kind.width - 1, 0));
  return seen.least > factor ? fmt::format("{} took at least {:.1f} times as long as predicted", calls, seen.least)
                             : fmt::format("{} took {:.2f} of the predicted time on average", calls,
                                           seen.sum / static_cast<double>(seen.calls));
}

}  // namespace tutti
