#include "gpu/path_comparison.h"

#include <fmt/format.h>

namespace tutti {

void PathComparison::note_kernel(bool captured) {
  if (calls_.empty()) return;
  PathHistory& own = *calls_[static_cast<std::size_t>(rank_)];
  if (captured)
    own.stop();
  else
    own.add(/*by_host=*/false);
}

void PathComparison::note_message(const PeerRequest& request, bool by_host) {
  if (messages_.empty() || request.peer == rank_) return;
  messages_[static_cast<std::size_t>(rank_)]->of(request.send, request.peer).add(by_host);
}

void PathComparison::note_captured(const PeerRequest& request) {
  if (messages_.empty() || request.peer == rank_) return;
  messages_[static_cast<std::size_t>(rank_)]->of(request.send, request.peer).stop();
}

/// To `peer`, or from it.
std::optional<Error> PathComparison::of_messages(Rank peer, bool send) const {
  const PathHistory& own = messages_[static_cast<std::size_t>(rank_)]->of(send, peer);
  const PathHistory& theirs = messages_[static_cast<std::size_t>(peer)]->of(!send, rank_);
  const auto message = PathHistory::difference(own, theirs);
  if (!message) return std::nullopt;
  const bool sender_by_host = (send ? own : theirs).by_host(*message);
  const auto memory = [](bool by_host) { return by_host ? "host memory" : "device memory"; };
  return Error{.code = Code::invalid_usage,
               .what = fmt::format("message {} from rank {} to rank {} is sent from {} and received into {}: both must "
                                   "be the same kind of memory",
                                   *message, send ? rank_ : peer, send ? peer : rank_, memory(sender_by_host),
                                   memory(!sender_by_host)),
               .peer = peer};
}

std::optional<Error> PathComparison::of_calls(Rank peer) const {
  const PathHistory& own = *calls_[static_cast<std::size_t>(rank_)];
  const auto call = PathHistory::difference(own, *calls_[static_cast<std::size_t>(peer)]);
  if (!call) return std::nullopt;
  const auto path = [](bool by_host) {
    return by_host ? "makes one that goes through the host" : "makes one by a kernel";
  };
  return Error{.code = Code::invalid_usage,
               .what = fmt::format("ranks make different calls: as collective {} rank {} {}, rank {} {}, so kind, "
                                   "size or memory differ",
                                   *call, rank_, path(own.by_host(*call)), peer, path(!own.by_host(*call))),
               .peer = peer};
}

std::optional<Error> PathComparison::difference() const {
  for (Rank peer = 0; peer < static_cast<Rank>(messages_.size()); ++peer)
    for (const bool send : {true, false})
      if (auto differs = of_messages(peer, send)) return differs;
  for (Rank peer = 0; peer < static_cast<Rank>(calls_.size()); ++peer)
    if (auto differs = of_calls(peer)) return differs;
  return std::nullopt;
}

}  // namespace tutti
