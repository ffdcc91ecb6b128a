// The agreement of two ranks to use RDMA on a channel, through the channel's TCP connection.
//
//   connecting end → listening end   offer: queue pairs, port, ring and its key
//   listening end → connecting end   offer: the same, once its queue pairs are ready to receive
//   connecting end → listening end   verdict: whether an empty write reached the listening end's device
//
// With iWARP, where rdma_cm connects queue pairs, the connecting end does so before it sends the empty write, and shows
// a token there: a code of the listening end's nonce under the connection's secret. A connection without it is refused.
// The write waits for one more frame:
//
//   listening end → connecting end   joined: whether its own queue pair is connected
//
// Until then the listening device may lose sight of what arrives: siw answers the call before it watches the
// connection, and would find a write that came in between only when something else comes. Nothing would, since the
// listening end sends nothing before that write.
//
// Each frame ends with an HMAC under the connection's secret. An end that cannot use RDMA refuses in its offer, with
// the reason, and both stay with the connection. An agreement that breaks off leaves a connection of no use.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/digest.h"
#include "net/unique_id.h"
#include "net/wire.h"
#include "transport/connection.h"
#include "transport/verbs/link.h"

namespace tutti {

/// One frame of the agreement. All of it but its length is unproven until `read` has compared the code.
struct RdmaFrame {
  enum class Kind : std::uint32_t { offer = 1, verdict = 2, joined = 3, first = offer, last = joined };
  static constexpr std::size_t reason_bytes = 400;
  static constexpr std::size_t bytes = 8 + 4 + 4 + 4 + reason_bytes + 3 * 4 + 8 + 4 + 4 + 4 + 16 +
                                       8 * verbs::queue_pairs_max + 8 + 4 + 4 + 32 + sizeof(Digest);

  Kind kind = Kind::offer;
  std::string refusal = {};  ///< empty: none
  verbs::LinkAddress at = {};
  // Of a listening end with iWARP.
  std::uint16_t cm_port = 0;
  std::array<std::byte, 32> nonce = {};

  /// `role`: of the end that writes. Errors: system.
  Result<Bytes> write(const Secret& secret, std::string_view role) const;
  /// Errors: remote (not such a frame, of another version, or made with another secret), system.
  static Result<RdmaFrame> read(std::span<const std::byte> bytes, const Secret& secret, std::string_view role);
};

class RdmaUpgrade final : public ChannelUpgrade {
 public:
  using Maker = std::function<Result<std::shared_ptr<verbs::Link>>()>;
  /// `connects`: this end has connected. `make` makes this end's link. `limit_ns`: of the whole agreement.
  RdmaUpgrade(System& system, Socket socket, bool connects, const Secret& secret, Maker make, std::int64_t limit_ns);

  bool advance() override;
  std::int64_t poll_set(std::vector<PollItem>& items) const override;
  Outcome take() override;

 private:
  enum class State { begin, offer, join, peer_join, probe, verdict, say, decided };
  Result<State> step();
  Result<State> begin();
  Result<State> hear_offer();
  Result<State> answer(const RdmaFrame& offer);
  Result<void> make_answer(const RdmaFrame& offer, RdmaFrame& own);
  Result<void> call(const RdmaFrame& offer);
  Result<State> join();
  Result<State> hear_that_peer_gave_up();
  Result<State> tell_joined(std::string refusal, State next);
  Result<State> hear_joined();
  Result<State> begin_probe();
  Result<State> probe();
  Result<State> give_verdict(std::string refusal);
  Result<State> hear_verdict();
  Result<void> send(const RdmaFrame& frame);
  Result<std::optional<RdmaFrame>> receive(RdmaFrame::Kind wanted);
  void fail(Error error);

  System& system_;
  Wire wire_;
  bool connects_;
  Secret secret_;
  Maker make_;
  std::int64_t give_up_ns_;
  State state_ = State::begin;
  std::shared_ptr<verbs::Link> link_;  // kept even if it is not used: completions of it may still come
  bool awaits_joined_ = false;         // with iWARP each end hears of the other, however it ends
  bool agreed_ = false;
  std::int64_t probe_until_ns_ = 0;  // or until which the queue pair must be connected
  std::string why_;                  // for the connection
  std::optional<Error> failure_;
};

}  // namespace tutti
