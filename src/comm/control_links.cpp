#include "comm/control_links.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/fixed_text.h"
#include "base/host.h"

namespace tutti {
namespace {

constexpr std::int64_t farewell_ns = 2'000'000'000;
constexpr std::int64_t poll_timeout_ns = 1'000'000'000;
constexpr int beats = 16;                            // in silence_ns, or more
constexpr std::int64_t beat_ns_max = 250'000'000;    // less than late_ns: who fell silent was heard so long before
constexpr std::int64_t debugger_ns = 1'000'000'000;  // between looks for one
constexpr std::int64_t late_ns = 400'000'000;        // ranks are lost so much later; a cut one way is told 0.45 s late
constexpr int call_share = 4;                        // of silence_ns, until a rank is called
constexpr std::int64_t tick_ns = 50'000'000;         // looks while a rank is late
constexpr std::int64_t slack_ns = 20'000'000;        // a thread that may run wakes this much late

}  // namespace

MirroredHeader::MirroredHeader(const AreaShape& shape) : page_(std::make_unique<Page>()), area_(page_->bytes, shape) {
  area_.format();
  header().waits.store(waits::unknown, std::memory_order_relaxed);
  header().state.store(RankState::open, std::memory_order_release);
}

ControlLinks::ControlLinks(System& system, std::vector<Link> links, std::int64_t silence_ns, std::int64_t start_ns)
    : system_(system),
      links_(std::move(links)),
      start_ns_(start_ns),
      silence_ns_(silence_ns),
      beat_ns_(std::min(silence_ns / beats, beat_ns_max)) {}

void ControlLinks::announce(const RankEnd& end) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(announced_, true)) return;
  const auto frame = ControlFrames::frame(end.state, ControlFrame{}, end.encode());
  for (Link& link : links_) {
    if (link.ended) continue;
    link.wire.queue(frame);
    (void)link.wire.flush();  // the service thread handles errors of the connection
  }
}

void ControlLinks::send_summary(const CallSummary& summary_now, bool asks) {
  const std::lock_guard lock(mutex_);
  send_to_open(asks ? ControlFrame::ask : ControlFrame::summary, ControlFrames::text(summary_now));
}

/// Not to a peer that has yet to read what was sent before: the next look tells it.
void ControlLinks::send_wait(std::uint32_t waits) {
  const std::lock_guard lock(mutex_);
  if (announced_) return;
  const auto frame = ControlFrames::frame(RankState::open, ControlFrame::waits, std::as_bytes(std::span(&waits, 1)));
  for (Link& link : links_) {
    if (link.ended || link.said || link.sent_wait == waits || link.wire.interest().want_write) continue;
    link.sent_wait = waits;
    link.wire.queue(frame);
    (void)link.wire.flush();
  }
}

/// Sends to all peers for which the communicator is open. Requires the lock.
void ControlLinks::send_to_open(ControlFrame kind, std::span<const std::byte> text) {
  if (announced_) return;
  const auto frame = ControlFrames::frame(RankState::open, kind, text);
  for (Link& link : links_) {
    if (link.ended || link.said) continue;
    link.wire.queue(frame);
    (void)link.wire.flush();
  }
}

void ControlLinks::send_gone(const GoneRank& gone) {
  const std::lock_guard lock(mutex_);
  if (!gossip_.add(gone)) return;
  news_ = true;
  pass_on();
}

/// Also to ranks that have failed, and after this one has: somebody else may wait for the rank. Requires the lock.
void ControlLinks::pass_on() {
  if (!std::exchange(news_, false)) return;
  const auto frame = ControlFrames::frame(RankState::open, ControlFrame::gossip, gossip_.write());
  for (Link& link : links_) {
    if (link.ended) continue;
    link.wire.queue(frame);
    (void)link.wire.flush();
  }
}

std::vector<GoneRank> ControlLinks::take_gone() {
  const std::lock_guard lock(mutex_);
  return std::exchange(gone_, {});
}

void ControlLinks::send_calls(int rank, const std::vector<CallMark>& marks) {
  const std::lock_guard lock(mutex_);
  const auto link = std::ranges::find(links_, rank, &Link::rank);
  if (link == links_.end() || link->ended || link->said || announced_) return;
  std::span<const CallMark> left = marks;
  while (!left.empty()) {
    const auto part = left.first(std::min(left.size(), ControlFrames::marks_max));
    left = left.subspan(part.size());
    link->wire.queue(ControlFrames::frame(RankState::open, ControlFrame::calls, std::as_bytes(part)));
  }
  (void)link->wire.flush();
}

std::vector<PeerCalls> ControlLinks::take_calls() {
  const std::lock_guard lock(mutex_);
  return std::exchange(calls_, {});
}

void ControlLinks::leave(ChannelRemains data) {
  const std::lock_guard lock(mutex_);
  data_ = std::move(data);
  leave_by_ns_ = system_.now_ns() + farewell_ns;
}

/// Reads and drops data that no call needs any more. Reads only a limited number of times per connection, so that a
/// peer that goes on sending cannot keep this thread busy; the rest is read the next time, until the task ends.
void ControlLinks::empty_data() {
  constexpr int reads_max = 64;
  std::array<std::byte, 4096> nowhere;
  std::erase_if(data_.sockets, [&](Socket& socket) {
    for (int reads = 0; reads < reads_max; ++reads) {
      auto moved = system_.receive(socket, nowhere);
      if (!moved || moved->closed) return true;
      if (moved->bytes == 0) break;
    }
    return false;
  });
}

bool ControlLinks::advance() {
  const std::lock_guard lock(mutex_);
  empty_data();
  pass_time();
  for (Link& link : links_)
    if (!link.ended) read(link);
  pass_on();
  const bool watches = beat_ns_ != 0 && !announced_;
  if (watches && system_.now_ns() >= next_beat_ns_) beat();
  call_late(watches);
  if (watches) lose_silent();
  count_ends();
  if (leave_by_ns_ == 0) return true;
  // Closing a connection with unread data would destroy data on its way to the peer, so give peers time to receive it.
  const bool late = system_.now_ns() >= leave_by_ns_;
  return !late && std::ranges::any_of(links_, [](const Link& link) { return !link.ended && !link.said; });
}

/// Counts the time since the last look as silence, which `read` ends for peers of which something has come.
void ControlLinks::pass_time() {
  const std::int64_t now = system_.now_ns();
  const std::int64_t looked_ns = std::exchange(looked_ns_, now);
  if (looked_ns == 0) return;
  const std::int64_t planned_ns = std::max<std::int64_t>(0, look_planned_ns_ - looked_ns);
  const std::int64_t own_ns = std::min(now - looked_ns, planned_ns + slack_ns);
  for (Link& link : links_) link.silent_ns += own_ns;
}

void ControlLinks::beat() {
  const std::int64_t now = system_.now_ns();
  next_beat_ns_ = now + beat_ns_;
  if (now >= look_for_debugger_ns_) {
    traced_ = is_traced();
    look_for_debugger_ns_ = now + debugger_ns;
  }
  const auto frame = ControlFrames::frame(RankState::open, traced_ ? ControlFrame::traced : ControlFrame::beating, {});
  for (Link& link : links_) {
    if (link.ended || link.said) continue;
    if (link.unanswered++ >= 2 * beats) continue;  // do not queue ever more frames for a peer that does not read
    link.wire.queue(frame);
    (void)link.wire.flush();
  }
}

bool ControlLinks::is_silent(const Link& link) const {
  if (link.traced || link.ended || link.said) return false;
  const std::int64_t limit_ns = silence_ns_ + late_ns;
  return link.silent_ns >= (link.heard ? limit_ns : std::max(limit_ns, start_ns_));
}

/// Whether another rank of that host lives, which sees more than this one.
bool ControlLinks::hears_host_of(const Link& link) const {
  return std::ranges::any_of(links_, [&](const Link& other) {
    return &other != &link && other.host == link.host && other.heard && !other.ended && !other.said &&
           other.silent_ns < silence_ns_ / 2;
  });
}

/// A rank that answers lives, whatever holds up its connection. A call that is not advanced any more is hung up, or it
/// would go on waking the service thread.
void ControlLinks::call_late(bool watches) {
  for (Link& link : links_) {
    if (!link.life) continue;
    if (!watches || link.ended || link.said || link.traced || link.silent_ns < silence_ns_ / call_share)
      link.life->rest();
    else if (link.life->advance(system_, silence_ns_ / beats))
      link.silent_ns = 0;
  }
}

bool ControlLinks::links_to(int rank) {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(links_, rank, &Link::rank) != links_.end();
}

std::optional<ControlLinks::Heard> ControlLinks::hears(int rank) {
  const std::lock_guard lock(mutex_);
  const auto link = std::ranges::find(links_, rank, &Link::rank);
  if (link == links_.end()) return std::nullopt;
  if (link->ended) return Heard{};
  const auto there = system_.peer_address(link->wire.socket());
  // Since the last look nothing has come, or there would have been another.
  const std::int64_t since_ns = std::min(system_.now_ns(), look_planned_ns_) - looked_ns_;
  const std::int64_t silent_ns = link->silent_ns + std::max<std::int64_t>(0, since_ns);
  const bool beat_is_late = beat_ns_ != 0 && silent_ns >= beat_ns_ + tick_ns;
  return Heard{.lately = !link->said && link->silent_ns < silence_ns_ / 2,
               .silent_ns = beat_is_late ? silent_ns : 0,
               .at = there ? there->host : ""};
}

/// Of several on one host the first, whose last beat may have come a little later: that is the same one for as many
/// ranks as possible.
void ControlLinks::lose_silent() {
  const auto found =
      std::ranges::find_if(links_, [&](const Link& one) { return is_silent(one) && !hears_host_of(one); });
  if (found == links_.end()) return;
  const auto link = std::ranges::find_if(links_, [&](const Link& one) {
    return one.host == found->host && !one.traced && !one.ended && !one.said &&
           (&one == &*found || (one.heard && one.silent_ns >= silence_ns_));
  });
  lose(*link, RankState::silent, {.kind = LossKind::silent, .ns = link->silent_ns});
}

void ControlLinks::end(Link& link, const Error& error) {
  link.ended = true;
  lost_descriptors_ = lost_descriptors_ || error.sys_errno == EBADF;
  if (error.sys_errno == EBADF) return;  // this rank's own fault
  link.wire = Wire(system_, Socket());
  lose(link, RankState::lost, loss_by(error));
}

/// Marks the rank as lost or silent, unless its final state is known already or this communicator has ended. Does not
/// close the connection: a rank that comes back must learn that the communicator has failed.
void ControlLinks::lose(Link& link, RankState state, const Loss& loss) {
  if (std::exchange(link.said, true) || leave_by_ns_ != 0) return;
  AreaHeader& header = link.mirror->header();
  const std::string words = loss.text(link.who);
  put_text(header.message, words);
  header.state.store(state, std::memory_order_release);
  if (state == RankState::lost && gossip_.add({.rank = link.rank, .words = words})) news_ = true;
}

std::int64_t ControlLinks::poll_set(std::vector<PollItem>& items) {
  const std::lock_guard lock(mutex_);
  for (const Link& link : links_)
    if (!link.ended) items.push_back(link.wire.interest());
  for (const Link& link : links_)
    if (link.life) link.life->poll_set(items);
  for (const Socket& socket : data_.sockets) items.push_back({.handle = socket.handle(), .want_read = true});
  const std::int64_t now = system_.now_ns();
  if (leave_by_ns_ != 0) return leave_by_ns_;
  if (beat_ns_ == 0 || announced_) return now + poll_timeout_ns;
  const auto is_late = [&](const Link& link) { return !link.ended && !link.said && link.silent_ns > 2 * beat_ns_; };
  look_planned_ns_ = std::ranges::any_of(links_, is_late) ? std::min(next_beat_ns_, now + tick_ns) : next_beat_ns_;
  return look_planned_ns_;
}

}  // namespace tutti
