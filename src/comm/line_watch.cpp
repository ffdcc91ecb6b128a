#include "comm/line_watch.h"

#include <fmt/format.h>

#include "comm/mismatch.h"

namespace tutti {

Error with_calls(const CallLines& lines, Error error) {
  const std::uint64_t at = lines.differing();
  if (error.code != Code::invalid_usage || at == 0) return error;
  return mismatch_report(lines.calls(at), at, std::move(error));
}

Result<void> look_at_lines(Communicator& communicator, std::uint64_t sequence, bool over,
                           const std::function<std::string()>& where) {
  CallLines& lines = communicator.lines();
  if (auto looked = lines.look(); !looked) return with_calls(lines, std::move(looked).error());
  for (Rank rank = 0; rank < communicator.ranks(); ++rank) {
    const auto& header = communicator.members().peers[static_cast<std::size_t>(rank)].area.header();
    if (rank == communicator.rank() || header.state.load(std::memory_order_acquire) != RankState::closed) continue;
    auto line = lines.open(rank, sequence);
    if (!line) return with_calls(lines, std::move(line).error());
    if (*line == nullptr && !over)
      return Error{.code = Code::remote,
                   .what = fmt::format("{} left the communicator before {}", communicator.describe(rank), where()),
                   .peer = rank};
  }
  return {};
}

}  // namespace tutti
