#include "choice/explain.h"

#include <algorithm>

#include <fmt/format.h>

#include "choice/select.h"

namespace tutti {
namespace {

std::string reason(const std::vector<Prediction>& all, const Prediction& used, const Shape& shape, Access access,
                   const Grounds& grounds) {
  const std::string& forced = grounds.forced;
  if (grounds.fixed_order) return "it has the reduction order that deterministic requires";
  if (access == Access::in_line) return "no choice: an inline call is one pass on every rank";
  if (all.size() == 1) return "the only one that can serve this call";
  const Prediction& fastest = all.front();
  const auto filtered = candidates(shape, access, forced);
  const auto allowed = [&](const Prediction& p) { return std::ranges::find(filtered, p.algorithm) != filtered.end(); };
  if (!forced.empty() && !allowed(fastest)) return fmt::format("TUTTI_ALGO={} leaves out what is faster", forced);
  if (&fastest == &used) {
    const auto slower = std::ranges::find_if(all, [&](const Prediction& p) { return p.us > 1.01 * used.us; });
    if (slower == all.end()) return "predicted to be as fast as all others, and the first in the list of algorithms";
    const char* const why = used.steps < slower->steps   ? "fewer steps"
                            : used.bytes < slower->bytes ? "fewer bytes moved"
                                                         : "less waiting, or fewer passes";
    return fmt::format("predicted to be the fastest: {:.0f} % less than {}, by {}", 100 * (1 - used.us / slower->us),
                       slower->algorithm->name, why);
  }
  return fmt::format("the first in the list of algorithms within {:.1f} % of the fastest at this power of two",
                     100 * (used.us / fastest.us - 1));
}

}  // namespace

std::string explain(const Shape& shape, Access access, std::size_t bytes, const Algorithm& used,
                    const Grounds& grounds) {
  std::vector<const Algorithm*> all = is_modelled(shape, access) ? candidates(shape, access, "") : std::vector{&used};
  if (std::ranges::find(all, &used) == all.end()) all.push_back(&used);
  const auto predicted = predictions(shape, access, bytes, all, grounds.machine, grounds.conditions);
  std::string text = fmt::format("{} of {} ranks, {} bytes, over {}:\n", name(shape.collective), shape.ranks, bytes,
                                 grounds.over.empty() ? name(access) : grounds.over);
  text += fmt::format("  {:<28}{:>12}{:>7}{:>14}\n", "algorithm", "predicted", "steps", "bytes moved");
  const Prediction* chosen = nullptr;
  for (const Prediction& one : predicted) {
    if (one.algorithm == &used) chosen = &one;
    text += fmt::format("{} {:<28}{:>9.2f} µs{:>7}{:>14}\n", one.algorithm == &used ? '*' : ' ', one.algorithm->name,
                        one.us, one.steps, one.bytes);
  }
  text += fmt::format("  used: {}, {}\n", used.name, reason(predicted, *chosen, shape, access, grounds));
  return text;
}

}  // namespace tutti
