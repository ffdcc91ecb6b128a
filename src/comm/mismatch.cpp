#include "comm/mismatch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comm/request.h"
#include "plan/types.h"

namespace tutti {
namespace {

std::string words(std::string_view snake) {
  std::string text;
  bool upper = true;
  for (const char c : snake) {
    if (c == '_') {
      upper = true;
      continue;
    }
    text += upper ? static_cast<char>(std::toupper(c)) : c;
    upper = false;
  }
  return text;
}

}  // namespace

std::string call_text(const Signature& call) {
  if (call.collective >= collective_count || call.type >= data_type_count || call.op >= reduce_op_count)
    return fmt::format("call {} count={} type {} op {}", call.collective, call.count, call.type, call.op);
  const auto collective = static_cast<Collective>(call.collective);
  const auto type = name(static_cast<DataType>(call.type));
  const auto form = static_cast<Form>(call.form);
  if (form == Form::scatter_gather)
    return fmt::format("ScatterGather unitcount={} {} lists {:08x}", call.count, type, call.root);
  if (collective == Collective::barrier) return "Barrier";
  std::string text = form == Form::counts ? fmt::format("{}V {}", words(name(collective)), type)
                                          : fmt::format("{} count={} {}", words(name(collective)), call.count, type);
  if (reduces(collective)) text += fmt::format(" {}", name(static_cast<ReduceOp>(call.op)));
  if (rooted(collective)) text += fmt::format(" root={}", call.root);
  if (form == Form::device) text += " on device memory";
  return text;
}

Error mismatch_report(const std::vector<std::optional<Signature>>& calls, std::uint64_t sequence, Error error) {
  std::vector<std::pair<Signature, std::vector<int>>> groups;
  std::vector<int> silent;
  for (int rank = 0; rank < static_cast<int>(calls.size()); ++rank) {
    if (!calls[rank]) {
      silent.push_back(rank);
      continue;
    }
    auto same = std::ranges::find(groups, *calls[rank], &std::pair<Signature, std::vector<int>>::first);
    if (same == groups.end()) same = groups.insert(groups.end(), {*calls[rank], {}});
    same->second.push_back(rank);
  }
  if (groups.size() < 2) return error;
  error.what = fmt::format("collective mismatch at #{}", sequence);
  for (const auto& [call, ranks] : groups)
    error.what += fmt::format("\n  ranks {}: {}", fmt::join(ranks, ","), call_text(call));
  if (!silent.empty()) error.what += fmt::format("\n  ranks {}: no call yet", fmt::join(silent, ","));
  error.what += "\n  Nothing was written.";
  return error;
}

Error differing_calls(const MadeCall& own, const MadeCall& theirs) {
  const auto line = [](const MadeCall& call) {
    return fmt::format("\n  rank {}: #{} {}", call.rank, call.sequence, call_text(call.signature));
  };
  const bool first = own.rank < theirs.rank;
  return Error{.code = Code::invalid_usage,
               .what = fmt::format("collective mismatch at #{}{}{}\n  What these calls write to is undefined.",
                                   own.sequence, line(first ? own : theirs), line(first ? theirs : own)),
               .peer = theirs.rank};
}

}  // namespace tutti
