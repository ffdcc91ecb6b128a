#include "call/mismatch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "call/request.h"
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

std::string line(const MadeCall& call) {
  return fmt::format("\n  rank {}: #{} {}", call.rank, call.sequence, call_text(call.signature));
}

std::string last_call(const MadeCall& call) {
  return call.sequence == 0 ? "no call" : fmt::format("#{} {}", call.sequence, call_text(call.signature));
}

Error mismatch(std::uint64_t sequence, int peer, const std::string& calls) {
  return {
      .code = Code::invalid_usage, .what = fmt::format("collective mismatch at #{}{}", sequence, calls), .peer = peer};
}

}  // namespace

std::string call_text(const Signature& call) {
  const auto known_collective = enumerator<Collective>(call.collective);
  const auto known_type = enumerator<DataType>(call.type);
  const auto op = enumerator<ReduceOp>(call.op);
  const auto form = enumerator<Form>(call.form);
  if (!known_collective || !known_type || !op || !form)
    return fmt::format("call {} count={} type {} op {} form {}", call.collective, call.count, call.type, call.op,
                       call.form);
  const Collective collective = *known_collective;
  const auto type = name(*known_type);
  if (form == Form::scatter_gather)
    return fmt::format("ScatterGather unitcount={} {} lists {:08x}", call.count, type, call.root);
  if (collective == Collective::barrier) return "Barrier";
  std::string text = form == Form::counts ? fmt::format("{}V {}", words(name(collective)), type)
                                          : fmt::format("{} count={} {}", words(name(collective)), call.count, type);
  if (reduces(collective)) text += fmt::format(" {}", name(*op));
  if (rooted(collective)) text += fmt::format(" root={}", call.root);
  if (form == Form::released) text += " on device memory";
  return text;
}

Error mismatch_report(const std::vector<std::optional<Signature>>& calls, std::uint64_t sequence, Reporter by,
                      Error error) {
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
    error.what += fmt::format("\n  ranks {}: {}", joined(ranks, ","), call_text(call));
  if (!silent.empty()) error.what += fmt::format("\n  ranks {}: no call yet", joined(silent, ","));
  error.what += by.in_call == sequence
                    ? fmt::format("\n  Nothing was written on rank {}.", by.rank)
                    : fmt::format(
                          "\n  The call had ended on rank {} when this was seen: what it and later calls wrote is "
                          "undefined.",
                          by.rank);
  return error;
}

Error differing_calls(const MadeCall& own, const MadeCall& theirs) {
  const bool first = own.rank < theirs.rank;
  return mismatch(
      own.sequence, theirs.rank,
      line(first ? own : theirs) + line(first ? theirs : own) + "\n  What these and later calls wrote is undefined.");
}

Error differing_between(int own, int theirs, std::uint64_t after, std::uint64_t until) {
  return mismatch(
      until, theirs,
      fmt::format("\n  ranks {} and {}: calls differ somewhere between #{} and #{}; which call is not known any "
                  "more\n  What these and later calls wrote is undefined.",
                  std::min(own, theirs), std::max(own, theirs), after + 1, until));
}

Error left_before(const std::string& who, const MadeCall& last, const MadeCall& own) {
  Error error = mismatch(last.sequence + 1, last.rank, line(own));
  error.what = fmt::format("{} left the communicator after {}: a {}", who, last_call(last), error.what);
  return error;
}

Error more_calls(const MadeCall& own, const MadeCall& theirs) {
  return mismatch(
      own.sequence + 1, theirs.rank,
      fmt::format("\n  rank {}: leaves the communicator after {}{}", own.rank, last_call(own), line(theirs)));
}

}  // namespace tutti
