// A Plan that is bound to one call and under way. Advancing it never waits.
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/limits.h"

#include "exec/pull_buffer.h"
#include "exec/reduce.h"
#include "plan/plan.h"
#include "transport/call_descriptor.h"
#include "transport/connection.h"
#include "transport/fifo.h"
#include "transport/flag.h"

namespace tutti {

/// One channel's senders, receivers and signals, by rank; null where there is no connection.
struct Channel {
  std::vector<std::unique_ptr<Sender>> senders;
  std::vector<std::unique_ptr<Receiver>> receivers;
  std::vector<std::shared_ptr<Connection>> connections;  ///< null: there is nothing to open
  std::vector<Signal> signals;

  /// The messages that the run has open towards a peer on this channel. Kept here, not in the run, so that a call
  /// allocates nothing.
  struct OpenMessages {
    std::span<std::byte> filling;        ///< acquired, not yet committed: the message's bytes
    std::span<const std::byte> reading;  ///< peeked, not yet released
    const std::byte* line = nullptr;     ///< payload of the peer's call descriptor
    std::uint64_t taken = 0;             ///< messages released by a run that invites
    Landing* arriving = nullptr;         ///< `reading` arrives in parts; null: all of it is here
    /// by item of `reading`: where the block lies if the peer has offered it
    std::vector<OfferedBlock> offered;
  };
  std::vector<OpenMessages> open;
  std::vector<std::uint16_t> unsent;     ///< peers with messages that wait for a flush, or with an offered part of one
  std::vector<std::uint16_t> undrained;  ///< peers of whose messages the end, which nobody needs, is still to be read
  /// What a run that invites has told peers so far: the next invitation is number `next` of the plan's, for `tile`.
  struct Inviting {
    std::size_t tile = 0;
    std::uint32_t next = 0;
    std::vector<std::uint16_t> peers;  ///< that may still be able to write into buffers of the call
  };
  Inviting inviting;
  PullBuffer bounce;  ///< bounce buffer for data read by CMA, until it is reduced; empty until needed

  /// False where nothing can have come from `peer`, and the receiver's peek would have to open the connection.
  bool may_have_arrived(int peer) const {
    const auto& connection = connections[static_cast<std::size_t>(peer)];
    return !connection || connection->may_have_arrived();
  }

  /// Makes space for `ranks` peers, none connected.
  void reserve(int ranks);
};

/// How passes go through memory. Ranks may differ in it, but for `direct_bytes`.
struct PassRules {
  LoopTable loops;                    ///< of passes that write results
  std::size_t nontemporal_bytes = 0;  ///< not 0: calls of this size or more use nontemporal stores, instead of `loops`
  /// Smaller blocks are copied through slots, which costs less than tracking the use of the caller's memory. Equal on
  /// all ranks.
  std::size_t direct_bytes = 8 * 1024;
  std::size_t bounce_bytes = 128 * 1024;  ///< of data pulled at once to be reduced
  /// Messages of this size or more are written with nontemporal stores: see FarRates::streamed_bytes.
  std::size_t streamed_bytes = std::numeric_limits<std::size_t>::max();
  /// Copies by CMA whose addresses are a few bytes apart modulo a page take less time through a bounce buffer.
  bool realigns = false;
};

/// Everything that a run uses of its communicator.
struct RunContext {
  std::span<Channel> channels;
  CallDescriptors* descriptors = nullptr;  ///< Access::in_line only
  std::span<Doorbell* const> doorbells;    ///< by rank; rung after a signal
  System* system = nullptr;
  bool oversubscribed = false;       ///< see Doorbell
  bool opens = false;                ///< some connections open when they are first needed
  const PassRules* rules = nullptr;  ///< null: the defaults of PassRules
};

enum class Progress { blocked, moved, done };

class Run {
 public:
  /// All arguments must outlive the run. Uses min(channels, tiles) channels; plans without slots use one.
  Run(const Plan& plan, const Binding& binding, const RunContext& links);

  /// Does the work that can be done without waiting, at most about a megabyte. Done only once all sent messages have
  /// left this process. Errors carry peer, channel and step.
  Result<Progress> advance();

  /// For a blocked run: adds the handles whose readiness may unblock it. Messages through shared memory ring the
  /// doorbell instead.
  void poll_set(std::vector<PollItem>& items) const;

  /// The position of the run, for stall reports: the first blocked channel, the peer that it waits for, and the step.
  struct Position {
    int peer = -1;
    int channel = 0;
    int step = 0;
    Verb verb = Verb::copy;
  };
  Position waiting_for() const;

 private:
  struct ChannelState {
    std::size_t tile;  // current tile; the next one is channels_ later
    std::uint32_t action;
    bool finished;
    std::size_t pass_done;  // elements of the current pass already moved
    bool begun;             // pass_direct has begun the current pass
    std::uint64_t offered;  // bit i: destination i of the current pass need not be written
  };
  /// A piece of a pass: elements [at, at + count) of the group; `skipped` elements of the block come before it.
  struct Piece {
    std::size_t at = 0;
    std::size_t skipped = 0;
    std::size_t count = 0;
  };

  Result<bool> advance_channel(int index, std::size_t& budget);
  Result<bool> flush(Channel& channel);
  int unopened() const;
  Result<bool> act(Channel& channel, ChannelState& state, const Action& action, std::size_t& budget);
  Result<bool> acquire(Channel& channel, const ChannelState& state, const Action& action);
  Result<bool> peek(Channel& channel, const ChannelState& state, const Action& action);
  Result<bool> wait_descriptor(Channel& channel, const Action& action);

  Result<bool> pass(Channel& channel, ChannelState& state, const Action& action, std::size_t& budget);
  Result<void> move(Channel& channel, const Action& action, std::span<const Place> to, const Piece& piece);
  Result<void> move_pulled_copy(Channel& channel, const Action& action, std::span<const Place> to, const Piece& piece);
  Result<void> move_pulled_copy_apart(Channel& channel, const Action& action, std::span<const Place> to,
                                      const Piece& piece);
  Result<std::byte*> pull_to_bounce(Channel& channel, const Place& from, const Piece& piece, std::size_t& used);
  Result<void> pull_sources(Channel& channel, const Action& action, const Piece& piece, std::span<Source> sources);

  Result<bool> pass_direct(Channel& channel, ChannelState& state, const Action& action, std::size_t& budget);
  bool keep(Channel& channel, const Action& action, const Piece& whole) const;
  Result<void> find_offered(Channel& channel, const Action& action) const;
  Result<void> check_offered(const Channel& channel, const Action& action, const Piece& whole) const;
  std::uint64_t offer(Channel& channel, const Action& action, const Piece& whole) const;
  bool outlasts(const Action& action, std::size_t destination) const;
  const std::byte* lasting(const Channel& channel, const Action& action, const Piece& whole) const;
  bool lands(const Channel& channel, const ChannelState& state, const Action& action) const;
  std::span<const Place> written(const ChannelState& state, const Action& action, std::span<Place> rest) const;
  Result<bool> move_pieces(Channel& channel, ChannelState& state, const Action& action, const Piece& whole,
                           std::size_t& budget);
  Result<bool> land(Channel& channel, ChannelState& state, const Action& action, const Piece& whole,
                    std::size_t& budget);
  Result<std::size_t> arrived(Channel& channel, const Action& action, const Piece& left) const;

  void begin_to_invite();
  void invite(Channel& channel, const ChannelState& state, std::size_t index) const;
  Invited invite_one(Channel& channel, const ChannelState& state, std::size_t index) const;
  bool close_invitations(Channel& channel) const;
  static Result<bool> drain(Channel& channel);

  Range range_of(const Action& action, std::size_t tile) const;
  std::size_t elements_of(const Action& action) const;
  bool is_empty_message(const ChannelState& state, const Action& action) const;
  std::size_t piece_elements(const Channel& channel, const Action& action, std::size_t budget) const;
  const std::byte* source_of(const Channel& channel, const Place& place, const Piece& piece) const;
  std::byte* destination_of(const Channel& channel, const Place& place, const Piece& piece) const;
  std::byte* in_buffer(const Place& place, std::byte* base, const Piece& piece) const;
  std::size_t begin_of(const Place& place) const;
  void set_source(Source& source, const Channel& channel, const Place& place, const Piece& piece) const;
  bool copies_one(const Action& action) const;
  ForeignProcess process_of(const Channel& channel, const Place& place) const;
  bool pulls(const Channel& channel, const Action& action) const;
  bool scales(const Place& place) const { return scales_ && place.contribution != 0; }
  const PassRules& rules() const;
  void set_loops();
  bool writes_messages(const Action& action) const;
  Loop loop_of(const Action& action, const Piece& piece) const;

  const Plan* plan_;
  const Binding* binding_;
  RunContext links_;
  int channels_ = 1;
  int unopened_ = std::numeric_limits<int>::max();
  int first_channel_ = 0;       // the next advance begins here, so that no channel uses up the whole budget
  bool groups_differ_ = false;  // a count per rank
  bool skips_empty_ = false;    // skips messages that both ends know to be empty
  bool average_ = false;
  bool weights_ = false;  // an average of floats
  bool scales_ = false;
  bool always_plain_ = true;
  Loop loop_ = Loop::plain;           // of all passes that write results, unless loops_ is set
  const LoopTable* loops_ = nullptr;  // of passes that write results
  std::size_t loop_footprint_ = 0;    // index into LoopFootprints
  std::optional<Loop> pulled_loop_;   // of sums that peers copy by CMA, if measured
  bool direct_ = false;               // blocks are large enough to send from and receive into the call's buffers
  bool invites_ = false;              // peers are told where their messages may be written
  std::array<ChannelState, limits::channels_max> state_;  // only entries of used channels are initialised
};

}  // namespace tutti
