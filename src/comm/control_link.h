// One control connection to a rank of another host, and the header that stands for this rank's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "comm/waits.h"
#include "net/life_probe.h"
#include "net/wire.h"
#include "transport/call_summary.h"
#include "transport/rank_area.h"

namespace tutti {

/// Stands for the area of a rank whose memory cannot be mapped. Only the header of such an area is ever used;
/// ControlLinks keeps it up to date.
class MirroredHeader {
 public:
  /// The header as `format` leaves it, with state open.
  explicit MirroredHeader(const AreaShape& shape) : page_(std::make_unique<Page>()), area_(page_->bytes, shape) {
    area_.format();
    header().waits.store(waits::unknown, std::memory_order_relaxed);
    header().state.store(RankState::open, std::memory_order_release);
  }

  RankArea area() const { return area_; }
  AreaHeader& header() const { return area_.header(); }

  /// The summary of its calls, and for whom it waits, in the rank's words. False: they are none.
  bool take_summary(const Bytes& words) {
    CallSummary theirs;
    if (words.size() != sizeof theirs) return false;
    std::memcpy(&theirs, words.data(), sizeof theirs);
    header().calls.store(theirs);
    return true;
  }
  bool take_wait(const Bytes& words) {
    if (words.size() != sizeof(std::uint32_t)) return false;
    header().waits.store(ByteReader(words).number<std::uint32_t>(), std::memory_order_relaxed);
    return true;
  }

 private:
  static constexpr std::size_t page_bytes = 4096;
  struct alignas(page_bytes) Page {
    std::byte bytes[page_bytes]{};
  };
  static_assert(sizeof(AreaHeader) <= page_bytes);
  std::unique_ptr<Page> page_;
  RankArea area_;
};

struct ControlLink {
  int rank = 0;
  int host = 0;  ///< its number in the communicator
  Wire wire;
  std::shared_ptr<MirroredHeader> mirror;
  std::string who;                       ///< "rank 2/8 (process 48211 on node-b)"
  std::shared_ptr<LifeProbe> life = {};  ///< calls it while it is silent; null: nothing does
  bool said = false;  ///< its final state is known (failed, aborted, left or lost); later messages are ignored
  bool ended = false;
  std::optional<Bytes> head = {};  ///< of the frame being read
  std::int64_t silent_ns = 0;      ///< of this thread's time since anything was received
  int unanswered = 0;              ///< beats sent since then
  bool heard = false;              ///< anything has been received
  bool traced = false;
  std::uint32_t sent_wait = waits::unknown;  ///< see ControlLinks::send_wait

  /// As far as is known, the communicator is open at the other end.
  bool open() const { return !ended && !said; }
  /// As much as the socket takes; the service thread sends the rest, and handles errors of the connection.
  void send(std::shared_ptr<const Bytes> frame) {
    wire.queue(std::move(frame));
    (void)wire.flush();
  }
};

}  // namespace tutti
