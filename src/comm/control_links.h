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
#include "comm/wire.h"
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

/// A rank's connections to ranks of other hosts, which carry nothing but changes of its state; a Task of the service
/// thread. What peers say is written into their mirrored headers, where everybody looks for it. A connection that ends
/// without a word before is a lost rank. Who hears of a failure fails and says so in turn: so the news reaches all
/// ranks as long as these connections join them.
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
  };
  ControlLinks(System& system, std::vector<Link> links) : system_(system), links_(std::move(links)) {}

  /// What all peers are to know. Sends at once what the sockets take. Any thread; the first time counts.
  void announce(RankState state, Code code, int culprit, std::string_view words);

  /// The communicator is gone. Ends once peers have left too or heard, at most two seconds later.
  void leave();

  bool advance() override;
  std::int64_t interests(std::vector<PollItem>& items) override;

 private:
  void read(Link& link);
  void believe(Link& link, const Bytes& head, const Bytes& words);
  void end(Link& link, const Error& error);

  System& system_;
  std::mutex mutex_;
  std::vector<Link> links_;
  bool announced_ = false;
  std::int64_t leave_by_ns_ = 0;  // 0: it stays
};

}  // namespace tutti
