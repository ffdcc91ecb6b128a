// Control connections between ranks of different hosts: they carry failures, aborts and leaving, and show lost ranks.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/system.h"
#include "comm/call_history.h"
#include "comm/control_frames.h"
#include "comm/control_link.h"
#include "comm/heartbeat.h"
#include "comm/loss.h"
#include "net/gossip.h"
#include "transport/connection.h"
#include "transport/rank_end.h"

namespace tutti {

/// A rank's control connections to ranks of other hosts; a Task of the service thread. They carry only changes of the
/// rank's state, signs of life, and summaries of its calls (see CallComparison). Messages from peers are written into
/// the peers' mirrored headers, where all other code reads them. A rank is lost if its connection ends without a final
/// state, and silent if nothing arrives for too long (see Heartbeat): then its service thread does not run, because the
/// process is stopped, or the host hangs or is cut off. A rank that learns of a failure fails and announces its own
/// failure, so the failure reaches all ranks that these connections still join. What does not end the communicator for
/// all is passed on (see Gossip): who waits for a rank hears of its end, whether or not there is a connection to it.
class ControlLinks final : public Task {
 public:
  using Link = ControlLink;
  /// `silence_ns`: a rank that falls silent is lost between this time and a second more later; 0: never. Equal on all
  /// ranks. `start_ns`: the limit until the first sign of life, because other ranks may still be starting.
  ControlLinks(System& system, std::vector<Link> links, std::int64_t silence_ns, std::int64_t start_ns = 0);

  /// Sets the history from which peers' questions are answered. To be called before the first call.
  void answers_from(std::shared_ptr<const CallHistory> history) { history_ = std::move(history); }

  /// Announces this rank's end to all peers; later calls have no effect. Sends at once as much as the sockets take. Any
  /// thread.
  void announce(const RankEnd& end);

  /// Sends the summary to all peers, which compare it with their own calls. `ask`: peers answer at once with their
  /// summaries. Any thread.
  void send_summary(const CallSummary& summary, bool ask);
  /// Tells all peers for which rank this one waits (AreaHeader::waits), unless that is what they know. Any thread.
  void send_wait(std::uint32_t waits);
  /// Passes on that a rank is gone, unless that is known. Any thread.
  void send_gone(const GoneRank& gone);
  /// The ranks without a connection here that peers have told to be gone since the last time. Any thread.
  std::vector<GoneRank> take_gone();
  /// Of how many ranks the end is known here; grows. Any thread.
  std::size_t ends_known() const { return ends_known_.load(std::memory_order_acquire); }
  struct Heard {
    bool lately = false;         ///< it has given a sign of life
    std::int64_t silent_ns = 0;  ///< for how long nothing has come of it; 0: no beat is missing
    std::string at;              ///< the address of its end of the connection
  };
  /// None: there is no connection to it. Any thread.
  std::optional<Heard> hears(int rank);
  /// Whether the program has closed a connection. Any thread.
  bool lost_descriptors() const { return lost_descriptors_.load(std::memory_order_relaxed); }
  /// Whether there is a connection to it. Any thread.
  bool links_to(int rank);
  /// Sends this rank's calls to `rank`, which looks for the first difference. Any thread.
  void send_calls(int rank, const std::vector<CallMark>& marks);
  /// Returns the calls that peers have sent since the last time. Any thread.
  std::vector<PeerCalls> take_calls();

  /// To be called when the communicator is destroyed. The task ends once all peers have left or failed too, at most two
  /// seconds later. `data`: what carried data; its connections are read and kept open until then. Closing a connection
  /// with unread data, or before the last data arrives, would destroy data that is still on its way to the peer.
  void leave(ChannelRemains data);

  bool advance() override;
  std::int64_t poll_set(std::vector<PollItem>& items) override;

 private:
  void lose(Link& link, RankState state, const Loss& loss);
  void read(Link& link);
  void believe(Link& link, const Bytes& head, const Bytes& text);
  void believe_alive(Link& link, ControlFrame kind, const Bytes& words);
  void believe_end(Link& link, const RankEnd& end);
  void pass_on();
  void answer(Link& link);
  void end(Link& link, const Error& error);
  void empty_data();

  System& system_;
  std::mutex mutex_;
  std::vector<Link> links_;
  std::shared_ptr<const CallHistory> history_;
  ToldCalls calls_;
  Gossip news_;
  Heartbeat heartbeat_;
  ChannelRemains data_;  // see leave
  std::atomic<bool> lost_descriptors_ = false;
  std::atomic<std::size_t> ends_known_ = 0;
  bool announced_ = false;
  std::int64_t leave_by_ns_ = 0;  // 0: the communicator exists
};

}  // namespace tutti
