// What ranks of different hosts tell each other of their state: failures, aborts, leaving; and what their silence says.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system.h"
#include "comm/call_history.h"
#include "net/wire.h"
#include "plan/types.h"
#include "transport/rank_area.h"

namespace tutti {

/// The header of the area of a rank whose memory cannot be mapped: in its place, and kept up to date by ControlLinks.
/// All that is asked of such a rank's area is its header.
class MirroredHeader {
 public:
  /// As after `format`, and open.
  explicit MirroredHeader(const AreaShape& shape);

  RankArea area() const { return area_; }
  AreaHeader& header() const { return area_.header(); }

 private:
  static constexpr std::size_t page_bytes = 4096;
  struct alignas(page_bytes) Page {
    std::byte bytes[page_bytes]{};
  };
  static_assert(sizeof(AreaHeader) <= page_bytes);
  std::unique_ptr<Page> page_;
  RankArea area_;
};

/// The ranks that `rank` has control connections to: those 1, 2, 4, … before and behind it, where they are on other
/// hosts. With the ranks of each host, who see each other's state in shared memory, all are joined, also when some are
/// lost.
std::vector<Rank> control_neighbours(Rank rank, const std::vector<int>& hosts);

/// Calls that a peer has made, in their order, since it found that its calls and this rank's differ.
struct PeerCalls {
  int rank = 0;
  std::vector<CallMark> marks;
};

/// A rank's connections to ranks of other hosts, which carry nothing but changes of its state, signs of life, and what
/// it has called so far (see CallComparison); a Task of the service thread. What peers say is written into their
/// mirrored headers, where everybody looks for it. A connection that ends without a word before is a lost rank, and so
/// is one on which nothing came for too long: its service thread does not run, since the process is stopped, or the
/// host hangs or is cut off. Who hears of a failure fails and says so in turn: so the news reaches all ranks as long as
/// these connections join them.
///
/// Silence is counted in turns of this thread that are a quarter of the limit apart, so that being stopped or starved
/// itself makes nobody else look silent. A rank that a debugger looks at says so while it can, and may be silent.
class ControlLinks final : public Task {
 public:
  struct Link {
    int rank = 0;
    Wire wire;
    std::shared_ptr<MirroredHeader> mirror;
    std::string who;    ///< "rank 2/8 (process 48211 on node-b)"
    bool said = false;  ///< it has failed, aborted or left: what follows is no news
    bool ended = false;
    std::optional<Bytes> head = {};  ///< of the frame being read
    int unheard = 0;                 ///< beats of this side since anything came
    bool heard = false;              ///< its service thread has begun to beat
    bool traced = false;
  };
  /// `silence_ns`: after which a rank is lost; 0: never. Alike on all ranks. `start_ns`: until the first sign of life,
  /// as others may still be starting.
  ControlLinks(System& system, std::vector<Link> links, std::int64_t silence_ns, std::int64_t start_ns = 0)
      : system_(system), links_(std::move(links)), start_ns_(start_ns), beat_ns_(silence_ns / beats) {}

  /// Where to look up what this rank has called when a peer asks. Before the first call.
  void answers_from(std::shared_ptr<const CallHistory> history) { history_ = std::move(history); }

  /// What all peers are to know. Sends at once what the sockets take. Any thread; the first time counts.
  void announce(RankState state, Code code, int culprit, std::string_view words);

  /// For all peers to compare with their own calls; with `ask` they tell theirs at once. Any thread.
  void tell_summary(const CallSummary& summary, bool ask);
  /// For `rank` to find where its calls differ from this rank's. Any thread.
  void tell_calls(int rank, const std::vector<CallMark>& marks);
  /// What peers told so since the last time. Any thread.
  std::vector<PeerCalls> take_calls();

  /// The communicator is gone. Ends once peers have left too or heard, at most two seconds later. `data`: connections
  /// that carried data, which are kept and emptied until then. To close one with something unread, or to which
  /// something comes later, would take back what is still on its way to the peer.
  void leave(std::vector<Socket> data);

  bool advance() override;
  std::int64_t poll_set(std::vector<PollItem>& items) override;

 private:
  static constexpr int beats = 4;  ///< of this side with nothing heard between them: then it is lost
  void beat();
  bool is_silent(const Link& link) const;
  void lose(Link& link, const std::string& why);
  void read(Link& link);
  void believe(Link& link, const Bytes& head, const Bytes& words);
  void believe_alive(Link& link, std::uint32_t kind, const Bytes& words);
  bool believe_summary(Link& link, const Bytes& words);
  bool believe_calls(const Link& link, const Bytes& words);
  void answer(Link& link);
  void end(Link& link, const Error& error);
  void empty_data();

  System& system_;
  std::mutex mutex_;
  std::vector<Link> links_;
  std::shared_ptr<const CallHistory> history_;
  std::vector<PeerCalls> calls_;
  std::vector<Socket> data_;  // of a communicator that is gone
  bool announced_ = false;
  std::int64_t leave_by_ns_ = 0;  // 0: it stays
  std::int64_t start_ns_;
  std::int64_t beat_ns_;  // from one to the next; 0: none
  std::int64_t next_beat_ns_ = 0;
};

}  // namespace tutti
