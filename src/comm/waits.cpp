#include "comm/waits.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "comm/communicator.h"

namespace tutti {
namespace {

constexpr std::size_t links_shown = 4;  // of a longer chain: its first ones, and the last

std::uint32_t told_by(const Communicator& communicator, Rank rank) {
  return communicator.members().peers[static_cast<std::size_t>(rank)].area.header().waits.load(
      std::memory_order_acquire);
}

/// Whom `rank` waits for; empty: nobody, or it is not known. What a peer shows is checked.
std::optional<Rank> next_of(const Communicator& communicator, Rank rank) {
  const std::uint32_t told = told_by(communicator, rank);
  if (told < waits::for_rank(0) || told >= waits::for_rank(communicator.ranks())) return std::nullopt;
  return static_cast<Rank>(told - waits::for_rank(0));
}

/// The number of the last collective that `rank` has begun, if it is less than this rank's.
std::optional<std::uint64_t> last_call_before_own(const Communicator& communicator, Rank rank) {
  std::uint64_t last = 0;
  if (!communicator.members().spans_hosts()) {
    last = communicator.links().descriptors().last_sequence(rank);
  } else {
    const Peer& peer = communicator.members().peers[static_cast<std::size_t>(rank)];
    const auto told = peer.area.header().calls.load();
    if (!told || (peer.remote() && told->sequence() == 0)) return std::nullopt;  // it may not have told yet
    last = told->sequence();
  }
  return last < communicator.order().entered() ? std::optional(last) : std::nullopt;
}

/// Why the word of `rank` may not be of now: a process that is stopped, or a host that is cut off, shows its last one.
std::string silence_text(const Communicator& communicator, Rank rank) {
  const Peer& peer = communicator.members().peers[static_cast<std::size_t>(rank)];
  if (peer.process && peer.process->is_stopped()) return fmt::format("rank {} is stopped (state T in /proc)", rank);
  if (!peer.remote()) return "";
  const auto heard = communicator.members().control->hears(rank);
  if (!heard || heard->silent_ns == 0) return "";
  return fmt::format("nothing has come from rank {} for {:.1f} s", rank, static_cast<double>(heard->silent_ns) * 1e-9);
}

bool is_known(const Communicator& communicator, Rank rank) {
  const Peer& peer = communicator.members().peers[static_cast<std::size_t>(rank)];
  return !peer.remote() || communicator.members().control->links_to(rank);
}

/// Of a rank at which a chain ends. Kernels may wait where no call does.
std::string end_text(const Communicator& communicator, Rank rank) {
  if (!is_known(communicator, rank)) return "";
  std::vector<std::string> said;
  const std::uint32_t told = told_by(communicator, rank);
  if (told == waits::for_any_rank) said.push_back(fmt::format("rank {} waits for any rank", rank));
  if (told == waits::for_nobody && communicator.device() == nullptr)
    said.push_back(fmt::format("rank {} waits in no call of this communicator", rank));
  if (const auto last = last_call_before_own(communicator, rank))
    said.push_back(*last == 0 ? fmt::format("rank {} has made no collective call", rank)
                              : fmt::format("the last call of rank {} is #{}", rank, *last));
  return joined(said, ", ");
}

/// Follows the ranks' words from one to the next.
class Chain {
 public:
  Chain(const Communicator& communicator, Rank first) : communicator_(communicator), ranks_{first} {}

  Holdup follow() {
    std::string end = silence_text(communicator_, ranks_.back());
    while (end.empty() && !circle_) {
      const auto next = next_of(communicator_, ranks_.back());
      if (!next) {
        end = end_text(communicator_, ranks_.back());
        break;
      }
      if (*next == ranks_.back()) {
        end = fmt::format("rank {} waits for itself", *next);
        break;
      }
      step(*next);
      end = circle_ ? "so they wait for each other" : silence_text(communicator_, ranks_.back());
    }
    shorten();
    if (!end.empty()) said_.push_back(std::move(end));
    return {.rank = circle_ ? ranks_.front() : ranks_.back(), .words = said_.empty() ? "" : "; " + joined(said_, ", ")};
  }

 private:
  void step(Rank next) {
    said_.push_back(fmt::format("rank {} waits for rank {}", ranks_.back(), next));
    circle_ = next == communicator_.rank() || std::ranges::find(ranks_, next) != ranks_.end();
    if (!circle_) ranks_.push_back(next);
  }
  void shorten() {
    if (said_.size() <= links_shown + 1) return;
    const std::size_t left_out = said_.size() - links_shown;
    said_.erase(said_.begin() + links_shown - 1, said_.end() - 1);
    said_.insert(said_.end() - 1, fmt::format("and so on through {} more", left_out));
  }

  const Communicator& communicator_;
  std::vector<Rank> ranks_;
  std::vector<std::string> said_;
  bool circle_ = false;
};

}  // namespace

Holdup held_up_by(const Communicator& communicator, Rank rank) {
  if (rank < 0 || rank >= communicator.ranks() || rank == communicator.rank()) return {};
  return Chain(communicator, rank).follow();
}

}  // namespace tutti
