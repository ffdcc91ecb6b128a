#include "exec/direct_pass.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "plan/inviting.h"
#include "plan/outlasting.h"

namespace tutti {
namespace {

/// Sizes of the pieces that are reduced while the rest of a message still arrives: small enough to stay in the
/// second-level cache until they are reduced, and large enough to outweigh the cost of beginning a pass.
constexpr std::size_t arriving_bytes_max = 256 * 1024;
constexpr std::size_t arriving_bytes_min = 64 * 1024;

constexpr std::size_t destinations_max = 64;  // of a pass that offers: number of bits of Cursor::offered

/// What pass_direct does, step by step.
class DirectPass {
 public:
  DirectPass(const Passes& passes, Channel& channel, Cursor& cursor, const Action& action, const Range& range)
      : passes_(passes),
        bound_(passes.bound()),
        channel_(channel),
        cursor_(cursor),
        action_(action),
        whole_{.at = range.begin, .count = range.count} {}

  /// Messages that have not left yet may be sent from buffers that the pass is about to write: makes their senders keep
  /// this data. False: a peer is yet to read it.
  bool keep() const {
    bool kept = true;
    for (const Place& place : destinations()) {
      if (!is_written(place)) continue;
      const std::byte* const source =
          bound_.copies_one(action_) ? bound_.source_of(channel_, sources()[0], whole_) : nullptr;
      std::byte* const destination = bound_.destination_of(channel_, place, whole_);
      if (source == destination) continue;  // in place, a block that stays as it is
      for (const std::uint16_t peer : channel_.unsent)
        kept = tutti::kept(*channel_.senders[peer], {destination, bytes()}) && kept;
    }
    return kept;
  }
  /// Each source that a peer has offered must have at least the bytes that the pass reads.
  Result<void> check_offered() const {
    for (const Place& place : sources()) {
      if (place.where != Where::slot || open(place).offered.empty()) continue;
      const auto& offered = open(place).offered[place.block];
      if (offered.at.data() != nullptr && offered.at.size() < bytes())
        return Error{.code = Code::remote,
                     .what = fmt::format("offers a block of {} bytes, expected {} bytes", offered.at.size(), bytes()),
                     .peer = place.peer};
    }
    return {};
  }
  /// Offers senders the block in the call's buffer, to send it from there instead of from a copy in a slot. Returns the
  /// destinations that need not be written, as bits.
  std::uint64_t offer() const {
    const auto to = destinations();
    // The block in a buffer of the call, now or after the pass; null: it lies in none.
    const Place* const lasting =
        to.size() <= destinations_max ? lasting_place(bound_.plan(), action_, bound_.scales()) : nullptr;
    const std::byte* const from = lasting == nullptr ? nullptr : bound_.source_of(channel_, *lasting, whole_);
    if (from == nullptr) return 0;
    const std::span block(from, bytes());
    std::uint64_t offered = 0;
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::uint16_t peer = to[i].peer;
      if (to[i].where != Where::slot || open(to[i]).filling.data() == nullptr) continue;
      Offering* const offering = channel_.senders[peer]->offering();
      if (offering == nullptr || (!offering->copies_offers() && !outlasts(i))) continue;
      if (!offering->offer(begin_of(to[i]), block)) continue;
      offered |= std::uint64_t{1} << i;
      add_once(channel_.unsent, peer);  // `keep` must consider this peer from now on
    }
    return offered;
  }
  /// Whether the pass copies an arriving block that can be received directly into a buffer of the call.
  bool lands() const {
    return action_.verb == Verb::copy && open(sources()[0]).arriving != nullptr &&
           tutti::lands(bound_.plan(), cursor_.action);
  }
  Result<bool> land(std::size_t& budget) const {
    const Place& from = sources()[0];
    const Place& first = *landing_place(bound_.plan(), action_);
    const std::span into(bound_.destination_of(channel_, first, whole_), bytes());
    auto landed = open(from).arriving->land(begin_of(from), into);
    if (!landed) return std::move(landed).error().at_peer(from.peer);
    budget -= std::min(budget, 2 * (*landed - std::min(*landed, cursor_.pass_done * element_bytes())));
    cursor_.pass_done = *landed / element_bytes();
    if (*landed < into.size()) return false;
    Place rest[destinations_max];
    passes_.copy_to(channel_, written(rest), whole_, into.data(), Loop::plain);
    return true;
  }
  Result<bool> move_pieces(std::size_t& budget) const {
    Place rest[destinations_max];
    const std::span<const Place> to = written(rest);
    if (to.empty()) return true;
    const std::size_t operands = action_.sources + to.size(), size = element_bytes();
    while (cursor_.pass_done < whole_.count) {
      if (budget == 0) return false;
      const std::size_t done = cursor_.pass_done;
      Piece piece{.at = whole_.at + done, .skipped = done, .count = whole_.count - done};
      auto here = TUTTI_TRY(arrived(piece));
      if (here == 0) return false;
      piece.count = std::min(here, passes_.piece_elements(channel_, action_, budget));
      TUTTI_TRY(passes_.move(channel_, action_, to, piece));
      cursor_.pass_done += piece.count;
      budget -= std::min(budget, operands * piece.count * size);
    }
    return true;
  }

 private:
  std::span<const Place> sources() const { return bound_.plan().sources(action_); }
  std::span<const Place> destinations() const { return bound_.plan().destinations(action_); }
  std::size_t element_bytes() const { return bound_.binding().split.element_bytes(); }
  std::size_t bytes() const { return whole_.count * element_bytes(); }
  Channel::OpenMessages& open(const Place& place) const { return channel_.open[place.peer]; }
  /// Where the block lies in its message.
  std::size_t begin_of(const Place& place) const { return place.block * bound_.binding().split.stride(); }
  /// Whether the block of a destination stays as it is until the message's receiver needs nothing more of this rank.
  bool outlasts(std::size_t destination) const {
    const std::vector<bool>& outlasts = bound_.plan().outlasts;
    const std::size_t at = action_.first + action_.sources + destination;
    return at < outlasts.size() && outlasts[at];
  }
  /// The destinations that must still be written: all of the plan's, or those copied to `rest`.
  std::span<const Place> written(std::span<Place> rest) const {
    const auto to = destinations();
    if (cursor_.offered == 0) return to;
    std::size_t left = 0;
    for (std::size_t i = 0; i < to.size(); ++i)
      if ((cursor_.offered >> i & 1) == 0) rest[left++] = to[i];
    return rest.first(left);
  }
  /// The number of remaining elements of a pass that can be moved now; zero: too few to begin.
  Result<std::size_t> arrived(const Piece& left) const {
    const std::size_t size = element_bytes();
    std::size_t count = left.count;
    for (const Place& place : sources()) {
      if (place.where != Where::slot || open(place).arriving == nullptr) continue;
      const std::size_t at = begin_of(place) + left.skipped * size;
      auto here = open(place).arriving->arrived(at, std::min(left.count * size, arriving_bytes_max));
      if (!here) return std::move(here).error().at_peer(place.peer);
      count = std::min(count, *here / size);
    }
    return count < left.count && count * size < arriving_bytes_min ? 0 : count;
  }

  const Passes& passes_;
  const BoundPlan& bound_;
  Channel& channel_;
  Cursor& cursor_;
  const Action& action_;
  const Piece whole_;
};

}  // namespace

Result<bool> pass_direct(const Passes& passes, Channel& channel, Cursor& cursor, const Action& action,
                         std::size_t& budget) {
  const Range range = passes.bound().range_of(action, cursor.tile);
  if (range.count == 0) return true;
  const DirectPass pass(passes, channel, cursor, action, range);
  if (!cursor.begun) {
    if (!pass.keep()) return false;
    TUTTI_TRY(pass.check_offered());
    cursor.offered = pass.offer();
    cursor.begun = true;
  }
  auto finished = pass.lands() ? pass.land(budget) : pass.move_pieces(budget);
  if (!finished || !*finished) return finished;
  cursor.begun = false;
  cursor.pass_done = 0;
  return true;
}

}  // namespace tutti
