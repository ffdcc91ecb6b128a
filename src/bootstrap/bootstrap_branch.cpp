#include "bootstrap/bootstrap_branch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "bootstrap/bootstrap_messages.h"

namespace tutti::bootstrap {

Result<std::unique_ptr<Branch>> Branch::open(System& system, const std::string& host, const Secret& secret, int rank,
                                             int ranks, std::size_t blob_bytes_max) {
  auto shared_listener = TUTTI_TRY(SharedListener::open(system, {.host = host}));
  auto registration = TUTTI_TRY(SharedListener::enter(shared_listener, secret));
  return std::unique_ptr<Branch>(new Branch(system, std::move(registration), secret, rank, ranks, blob_bytes_max));
}

Branch::Branch(System& system, const SharedListener::Registration& registration, const Secret& secret, int rank,
               int ranks, std::size_t blob_bytes_max)
    : system_(system),
      at_(registration.shared_listener->at()),
      rank_(rank),
      ranks_(ranks),
      blob_bytes_max_(blob_bytes_max),
      acceptor_(system, registration, secret) {}

void Branch::advance() {
  for (Acceptor::AuthenticatedConnection& connection : acceptor_.advance(/*accepting=*/true))
    children_.push_back({.wire = std::move(connection.wire), .rank = connection.rank});
  std::vector<PollItem> items;
  for (const Child& child : children_) items.push_back(child.wire.interest());
  if (items.empty()) return;
  system_.poll(items, 0);
  auto item = items.begin();
  for (Child& child : children_)
    if ((item++)->ready) serve(child);
  children_.remove_if([](const Child& child) { return !child.wire.socket(); });
}

void Branch::serve(Child& child) {
  (void)child.wire.flush();
  while (child.wire.socket()) {
    auto frame = child.wire.take_frame(
        child.joined ? std::max(contribution_bytes_max(blob_bytes_max_), notice_bytes_max) : join_bytes_max);
    if (!frame) return lose(child, frame.error().code == Code::remote ? frame.error().what : frame.error().text());
    if (!*frame) return;
    obey(child, **frame);
  }
}

void Branch::obey(Child& child, const Frame& frame) {
  if (!child.joined) return join(child, frame);
  const auto pass_on = [&] { rising_.push_back(tutti::frame(frame.kind, frame.body)); };
  switch (frame.kind) {
    case FrameKind::contribute: {
      const auto read = read_contribution(frame.body, blob_bytes_max_);
      return read ? pass_on() : lose(child, read.error().what);
    }
    case FrameKind::gone: {
      const auto read = read_gone(frame.body);
      return read ? pass_on() : lose(child, read.error().what);
    }
    case FrameKind::confirm: {
      const auto read = read_confirmation(frame.body);
      if (!read) return lose(child, read.error().what);
      child.confirmed = read->round + 1;
      child.refused = read->refused;
      return;
    }
    case FrameKind::failure: return pass_on();  // read_failure makes an error of any body
    case FrameKind::bye: return lose(child, "it left", /*left=*/true);
    case FrameKind::join:
    case FrameKind::welcome:
    case FrameKind::gathered:
    case FrameKind::listens:
    case FrameKind::unreachable:
    case FrameKind::settled:
    case FrameKind::excuse: return lose(child, "it sent a frame of the wrong kind");
  }
}

void Branch::join(Child& child, const Frame& frame) {
  const auto who = frame.kind == FrameKind::join ? read_join(frame.body) : Result<Bootstrap::Who>(Error{});
  if (!who || who->ranks != ranks_ || who->rank < 0 || who->rank >= ranks_) {
    child.wire = Wire(system_, Socket());  // the root has not sent this rank here
    return;
  }
  child.rank = who->rank;
  child.process = who->process;
  child.joined = true;
  child.wire.queue(tutti::frame(FrameKind::welcome, write_welcome({})));
  (void)child.wire.flush();
}

void Branch::lose(Child& child, const std::string& reason, bool left) {
  child.wire = Wire(system_, Socket());
  refused_below_ += child.refused;
  if (child.joined)
    rising_.push_back(
        frame(FrameKind::gone, write_gone({.rank = child.rank, .by = rank_, .reason = reason, .left = left})));
}

void Branch::hand_down(const SharedFrame& frame) {
  for (Child& child : children_) {
    if (!child.joined) continue;
    child.wire.queue(frame);
    (void)child.wire.flush();
  }
}

bool Branch::confirmed(std::uint32_t round) const {
  return std::ranges::all_of(children_, [round](const Child& one) { return !one.joined || one.confirmed > round; });
}

std::string Branch::awaited(std::uint32_t round) const {
  const auto one =
      std::ranges::find_if(children_, [round](const Child& child) { return child.joined && child.confirmed <= round; });
  return one == children_.end() ? "nobody" : fmt::format("rank {} ({})", one->rank, one->process);
}

std::uint64_t Branch::refused() const {
  std::uint64_t count = acceptor_.refusals().count() + refused_below_;
  for (const Child& child : children_) count += child.refused;
  return count;
}

std::int64_t Branch::poll_set(std::vector<PollItem>& items) const {
  for (const Child& child : children_) items.push_back(child.wire.interest());
  return acceptor_.poll_set(items, /*accepting=*/true);
}

}  // namespace tutti::bootstrap
