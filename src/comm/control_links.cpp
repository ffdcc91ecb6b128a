#include "comm/control_links.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/fixed_text.h"

namespace tutti {
namespace {

constexpr std::int64_t farewell_ns = 2'000'000'000;
constexpr std::int64_t poll_timeout_ns = 1'000'000'000;

}  // namespace

ControlLinks::ControlLinks(System& system, std::vector<Link> links, std::int64_t silence_ns, std::int64_t start_ns)
    : system_(system), links_(std::move(links)), heartbeat_(system, silence_ns, start_ns) {}

void ControlLinks::announce(const RankEnd& end) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(announced_, true)) return;
  const auto frame = ControlFrames::frame(end.state, ControlFrame{}, end.encode());
  for (Link& link : links_)
    if (!link.ended) link.send(frame);
}

void ControlLinks::send_summary(const CallSummary& summary_now, bool asks) {
  const std::lock_guard lock(mutex_);
  if (announced_) return;
  const auto frame = ControlFrames::frame(RankState::open, asks ? ControlFrame::ask : ControlFrame::summary,
                                          ControlFrames::text(summary_now));
  for (Link& link : links_)
    if (link.open()) link.send(frame);
}

/// Not to a peer that has yet to read what was sent before: the next look tells it.
void ControlLinks::send_wait(std::uint32_t waits) {
  const std::lock_guard lock(mutex_);
  if (announced_) return;
  const auto frame = ControlFrames::frame(RankState::open, ControlFrame::waits, std::as_bytes(std::span(&waits, 1)));
  for (Link& link : links_) {
    if (!link.open() || link.sent_wait == waits || link.wire.interest().want_write) continue;
    link.sent_wait = waits;
    link.send(frame);
  }
}

void ControlLinks::send_gone(const GoneRank& gone) {
  const std::lock_guard lock(mutex_);
  if (news_.add(gone)) pass_on();
}

/// Also to ranks that have failed, and after this one has: somebody else may wait for the rank. Requires the lock.
void ControlLinks::pass_on() {
  const auto message = news_.take_message();
  if (!message) return;
  const auto frame = ControlFrames::frame(RankState::open, ControlFrame::gossip, *message);
  for (Link& link : links_)
    if (!link.ended) link.send(frame);
}

std::vector<GoneRank> ControlLinks::take_gone() {
  const std::lock_guard lock(mutex_);
  return news_.take();
}

void ControlLinks::send_calls(int rank, const std::vector<CallMark>& marks) {
  const std::lock_guard lock(mutex_);
  const auto link = std::ranges::find(links_, rank, &Link::rank);
  if (link == links_.end() || !link->open() || announced_) return;
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
  return calls_.take();
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
  heartbeat_.pass_time(links_);
  for (Link& link : links_)
    if (!link.ended) read(link);
  pass_on();
  const bool watches = heartbeat_.beats() && !announced_;
  if (watches) heartbeat_.beat(links_);
  heartbeat_.call_late(links_, watches);
  if (Link* const silent = watches ? heartbeat_.find_silent(links_) : nullptr; silent != nullptr)
    lose(*silent, RankState::silent, {.kind = LossKind::silent, .ns = silent->silent_ns});
  const auto said = static_cast<std::size_t>(std::ranges::count(links_, true, &Link::said));
  ends_known_.store(said + news_.size(), std::memory_order_release);
  if (leave_by_ns_ == 0) return true;
  // Closing a connection with unread data would destroy data on its way to the peer, so give peers time to receive it.
  const bool late = system_.now_ns() >= leave_by_ns_;
  return !late && std::ranges::any_of(links_, &Link::open);
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
  return Heard{.lately = !link->said && heartbeat_.heard_lately(*link),
               .silent_ns = heartbeat_.late_ns(*link),
               .at = there ? there->host : ""};
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
  if (state == RankState::lost) news_.add({.rank = link.rank, .words = words});
}

std::int64_t ControlLinks::poll_set(std::vector<PollItem>& items) {
  const std::lock_guard lock(mutex_);
  for (const Link& link : links_)
    if (!link.ended) items.push_back(link.wire.interest());
  for (const Link& link : links_)
    if (link.life) link.life->poll_set(items);
  for (const Socket& socket : data_.sockets) items.push_back({.handle = socket.handle(), .want_read = true});
  if (leave_by_ns_ != 0) return leave_by_ns_;
  if (!heartbeat_.beats() || announced_) return system_.now_ns() + poll_timeout_ns;
  return heartbeat_.plan_look(links_);
}

}  // namespace tutti
