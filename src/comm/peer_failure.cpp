#include "comm/peer_failure.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/fixed_text.h"
#include "comm/loss.h"

namespace tutti {
namespace {

/// Adds to the text of a failure the rank that it came from. If there is one already, keeps it: the first rank found
/// the failure, later ones pass it on.
std::string told(const std::string& words, const std::string& by) {
  constexpr std::string_view mark = "  Told by ";
  if (words.find(mark) != std::string::npos) return words;
  return fmt::format("{}\n{}{}.", words, mark, by);
}

/// The rank that the end of `rank` came from; itself if it says none.
Rank culprit_of(const Communicator& communicator, Rank rank) {
  const AreaHeader& header = communicator.members().peers[static_cast<std::size_t>(rank)].area.header();
  const int culprit = header.culprit.load(std::memory_order_relaxed);
  return culprit >= 0 && culprit < communicator.ranks() ? culprit : rank;
}

}  // namespace

std::optional<Error> failure_of(const Communicator& communicator, Rank rank) {
  const AreaHeader& header = communicator.members().peers[static_cast<std::size_t>(rank)].area.header();
  switch (header.state_now()) {
    case RankState::aborted:
      return Error{.code = Code::remote,
                   .what = fmt::format("{} aborted the communicator", communicator.members().describe(rank)),
                   .peer = rank};
    case RankState::failed:
      // One event has one code on all ranks: that of its first cause.
      return Error{.code = received_code(header.failure.load(std::memory_order_relaxed)),
                   .what = told(get_text(header.message, Lines::several), communicator.members().describe(rank)),
                   .peer = culprit_of(communicator, rank)};
    case RankState::lost:
    case RankState::silent:
      return Error{.code = Code::remote,
                   .what = get_text(header.message, Lines::several),
                   .peer = culprit_of(communicator, rank)};
    case RankState::starting:
    case RankState::open:
      if (communicator.failure().gone().since_ns(rank) == 0) return std::nullopt;
      return lost(communicator, rank);
    case RankState::damaged:
      return Error{
          .code = Code::remote,
          .what = fmt::format("the state of {} in shared memory is a number that does not exist: something has "
                              "overwritten its memory",
                              communicator.members().describe(rank)),
          .peer = rank};
    case RankState::closed: return std::nullopt;
  }
  return std::nullopt;
}

/// Ranks of other hosts see the connections close before this can be told, and say that this rank is lost.
Error lost_descriptors(const Communicator& communicator) {
  return {.code = Code::system,
          .what = fmt::format("{} has lost its descriptors: the program has closed some that tutti uses (closefrom, "
                              "close_range, or close of numbers that are not its own)",
                              communicator.members().describe(communicator.rank())),
          .peer = communicator.rank()};
}

/// A process that lives and serves its peers no more is no rank any more, and was not killed either. One that is being
/// ended may still seem to live.
Error lost(const Communicator& communicator, Rank rank) {
  const auto& process = communicator.members().peers[static_cast<std::size_t>(rank)].process;
  LossKind kind = LossKind::ended;
  if (process && !process->ended())
    kind = communicator.failure().gone().is_mute(rank) ? LossKind::mute : LossKind::replaced;
  return Loss{.kind = kind}.error(communicator.members().describe(rank), rank);
}

std::optional<Error> failure_of_any(const Communicator& communicator) {
  for (Rank rank = 0; rank < communicator.ranks(); ++rank)
    if (rank != communicator.rank())
      if (auto failure = failure_of(communicator, rank)) return failure;
  return std::nullopt;
}

std::optional<Error> failure_in(const Communicator& communicator, Rank rank, std::uint64_t sequence) {
  const AreaHeader& header = communicator.members().peers[static_cast<std::size_t>(rank)].area.header();
  if (header.state_now() == RankState::lost) return std::nullopt;
  auto failure = failure_of(communicator, rank);
  if (!failure || completed_call(communicator, rank, sequence)) return std::nullopt;
  return failure;
}

std::optional<Error> failure_in_any(const Communicator& communicator, std::uint64_t sequence) {
  for (Rank rank = 0; rank < communicator.ranks(); ++rank)
    if (rank != communicator.rank())
      if (auto failure = failure_in(communicator, rank, sequence)) return failure;
  return std::nullopt;
}

std::optional<Error> failure_before(const Communicator& communicator, std::uint64_t sequence) {
  if (auto failure = failure_in_any(communicator, sequence)) return failure;
  const std::int64_t now_ns = communicator.process().system.now_ns();
  for (Rank rank = 0; rank < communicator.ranks(); ++rank) {
    const std::int64_t since_ns = communicator.failure().gone().since_ns(rank);
    if (since_ns != 0 && now_ns - since_ns >= next_call_ns && !completed_call(communicator, rank, sequence))
      if (auto failure = failure_of(communicator, rank)) return failure;
  }
  return std::nullopt;
}

std::optional<Error> obstacle(const Communicator& communicator, Rank rank, const Stall* stall,
                              const std::function<std::string()>& call) {
  const Peer& peer = communicator.members().peers[static_cast<std::size_t>(rank)];
  const RankState state = peer.area.header().state_now();
  if (state == RankState::closed) {
    if (peer.remote()) return std::nullopt;
    return left_before(communicator, rank, call());
  }
  if (peer.remote() && (state == RankState::lost || state == RankState::failed)) {
    const std::int64_t since_ns = communicator.failure().gone().since_ns(rank);
    if (since_ns == 0) return std::nullopt;
    const std::int64_t gone_ns = communicator.process().system.now_ns() - since_ns;
    const std::int64_t news_ns = stall != nullptr ? stall->news_ns() : last_news_ns;
    if (gone_ns < std::min(news_ns, last_news_ns)) return std::nullopt;
    if (stall != nullptr && stall->ns() < news_ns) return std::nullopt;
  }
  return failure_of(communicator, rank);
}

bool completed_call(const Communicator& communicator, Rank rank, std::uint64_t sequence) {
  const AreaHeader& header = communicator.members().peers[static_cast<std::size_t>(rank)].area.header();
  return completes_calls(communicator, rank) && header.completed.load(std::memory_order_acquire) >= sequence;
}

bool completes_calls(const Communicator& communicator, Rank rank) {
  const AreaHeader& header = communicator.members().peers[static_cast<std::size_t>(rank)].area.header();
  switch (header.state_now()) {
    case RankState::failed: return header.ends_all.load(std::memory_order_relaxed) == 0;
    case RankState::aborted:
    case RankState::silent:
    case RankState::damaged: return false;
    case RankState::starting:
    case RankState::open:
    case RankState::closed:
    case RankState::lost: break;
  }
  return true;
}

bool has_left(const Communicator& communicator, Rank rank) {
  return communicator.members().peers[static_cast<std::size_t>(rank)].area.header().state_now() == RankState::closed;
}

Error left_before(const Communicator& communicator, Rank rank, const std::string& call) {
  return {.code = Code::remote,
          .what = fmt::format("{} left the communicator before {}", communicator.members().describe(rank), call),
          .peer = rank};
}

}  // namespace tutti
