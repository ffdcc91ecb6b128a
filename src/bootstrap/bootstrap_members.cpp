// The members of a start, from the root's point of view: admitting them, reading their frames, giving them their
// places.
#include <algorithm>

#include <fmt/format.h>

#include "base/host.h"
#include "bootstrap/bootstrap_messages.h"
#include "bootstrap/bootstrap_root_state.h"

namespace tutti {
namespace {

using bootstrap::Acceptor;
using bootstrap::Tree;

// for ranks that were asked to listen and report their address
constexpr std::int64_t place_limit_ns = 1'000'000'000;

std::string words(const Error& error) {
  return error.code == Code::remote ? error.what : error.text();
}

}  // namespace

void BootstrapRoot::State::let_in() {
  for (Acceptor::AuthenticatedConnection& connection : acceptor.advance(accepting())) {
    members.push_back({.wire = std::move(connection.wire), .rank = connection.rank, .host = connection.host});
    if (connection.version != handshake::protocol_version)
      fail(Error{
          .code = Code::invalid_usage,
          .what = fmt::format("rank {} at {} speaks version {} of the start protocol, the root version {}",
                              connection.rank, connection.host, connection.version, handshake::protocol_version)});
    if (failed.why()) tell(members.back(), *failed.why());
  }
  if (auto stuck = acceptor.stuck(); stuck && !failed.why() && (!members.empty() || !acceptor.shared()))
    fail(std::move(*stuck).during(
        fmt::format("the root ({}) admits {} ranks and no more", this_process(), members.size())));
  report.count_sockets(members.size() + acceptor.sockets());
}

/// One poll for all, instead of one for each: few have sent anything.
void BootstrapRoot::State::serve_members() {
  std::vector<PollItem> items;
  for (const Member& member : members) items.push_back(member.wire.interest());
  system.poll(items, 0);
  const std::int64_t now = system.now_ns();
  auto item = items.begin();
  for (Member& member : members)
    if (const bool ready = (item++)->ready; ready || (member.told && now >= member.deadline_ns)) serve(member);
}

void BootstrapRoot::State::serve(Member& member) {
  (void)member.wire.flush();
  while (!member.told) {
    auto frame =
        member.wire.take_frame(member.joined() ? std::max(bootstrap::contribution_bytes_max(limits.blob_bytes_max),
                                                          bootstrap::notice_bytes_max)
                                               : bootstrap::join_bytes_max);
    if (!frame) return lose(member, words(frame.error()));
    if (!*frame) return;
    obey(member, **frame);
    if (!member.wire.socket()) return;
  }
  if (!member.wire.drain() || system.now_ns() >= member.deadline_ns) member.wire = Wire(system, Socket());
}

void BootstrapRoot::State::obey(Member& member, const Frame& frame) {
  if (frame.kind == FrameKind::bye) return lose(member, "it left", /*left=*/true);
  if (member.joined()) return obey_joined(member, frame);
  if (frame.kind == FrameKind::excuse) return take_excuse(member, frame.body);
  return frame.kind == FrameKind::join ? join(member, frame.body) : lose(member, "it sent a frame of the wrong kind");
}

void BootstrapRoot::State::obey_joined(Member& member, const Frame& frame) {
  const bool moving = member.state == Member::State::moving;
  const bool seated = member.state == Member::State::seated;
  if (frame.kind == FrameKind::listens && member.listen && (moving || seated)) {
    auto where = bootstrap::read_listens(frame.body);
    if (!where) return lose(member, words(where.error()));
    member.listen = false;
    tree.listens(member.rank, *std::move(where));
  } else if (frame.kind == FrameKind::settled && moving) {
    member.wire = Wire(system, Socket());
  } else if (frame.kind == FrameKind::unreachable && moving) {
    tree.adopt(member.rank);
    welcome(member, Tree::root);
  } else if (frame.kind == FrameKind::contribute && seated) {
    take_contribution(member, frame.body);
  } else if (frame.kind == FrameKind::gone && seated) {
    take_gone(member, frame.body);
  } else if (frame.kind == FrameKind::confirm && seated) {
    take_confirmation(member, frame.body);
  } else if (frame.kind == FrameKind::failure && seated) {
    fail(bootstrap::read_failure(frame.body));
  } else {
    lose(member, "it sent a frame of the wrong kind");
  }
}

void BootstrapRoot::State::join(Member& member, const Bytes& body) {
  const auto who = bootstrap::read_join(body);
  if (!who) return lose(member, words(who.error()));
  member.rank = who->rank;
  const bool complete = roster.all_here();
  if (auto admitted = roster.admit(*who, system.now_ns()); !admitted) {
    // The start of ranks that have all met does not fail because a further one comes.
    if (complete) return tell(member, admitted.error());
    failed.expect(who->ranks);
    return fail(std::move(admitted).error());
  }
  member.state = Member::State::waiting;
  member.deadline_ns = system.now_ns() + place_limit_ns;
  member.here = who->process == this_process();
  member.listen = tree.arrive(who->rank, who->ranks);
}

/// As for a rank that joins: ranks that have all met do not need a further one.
void BootstrapRoot::State::take_excuse(Member& member, const Bytes& body) {
  const auto said = bootstrap::read_excuse(body);
  if (!said) return lose(member, words(said.error()));
  member.rank = said->rank;
  if (roster.all_here()) return tell(member, said->why);
  excuse(*said);
}

void BootstrapRoot::State::excuse(const bootstrap::Excused& one) {
  failed.expect(one.ranks);
  if (one.rank >= 0 && one.rank < one.ranks) failed.told(one.rank);
  if (failed.why()) return failed.end_soon_if_all_told(system.now_ns());
  fail(one.why);
}

void BootstrapRoot::State::give_places() {
  if (failed.why()) return;
  for (Member& member : members) {
    if (member.state != Member::State::waiting || member.told || !member.wire.socket()) continue;
    // A rank of this process is told last, so it must be the root that tells it: see answer_those_here.
    auto parent = member.here ? std::nullopt : tree.place(member.rank);
    if (!parent && !member.here && system.now_ns() < member.deadline_ns) continue;
    if (!parent) tree.adopt(member.rank);
    welcome(member, parent.value_or(Tree::root));
  }
}

void BootstrapRoot::State::welcome(Member& member, int parent) {
  bootstrap::Welcome place{.listen = member.listen && member.state == Member::State::waiting, .parent = parent};
  if (parent != Tree::root) {
    place.at = tree.address(parent);
    place.process = roster.process_of(parent);
  }
  roster.hang(member.rank, parent);
  member.state = parent == Tree::root ? Member::State::seated : Member::State::moving;
  member.wire.queue(frame(FrameKind::welcome, bootstrap::write_welcome(place)));
  (void)member.wire.flush();
}

void BootstrapRoot::State::take_contribution(Member& member, const Bytes& body) {
  auto contribution = bootstrap::read_contribution(body, limits.blob_bytes_max);
  if (!contribution) return lose(member, words(contribution.error()));
  const int rank = contribution->rank;
  if (!roster.admitted(rank))
    return lose(member, fmt::format("it sent a contribution of rank {}, which has not joined", rank));
  if (auto done = roster.contribute(rank, *std::move(contribution), system.now_ns()); !done)
    fail(std::move(done).error());
}

void BootstrapRoot::State::take_gone(Member& member, const Bytes& body) {
  const auto gone = bootstrap::read_gone(body);
  if (!gone) return lose(member, words(gone.error()));
  // A rank that the root has adopted has not gone.
  if (roster.admitted(gone->rank) && tree.parent(gone->rank) == gone->by)
    lose_rank(gone->rank, gone->reason, gone->left);
}

void BootstrapRoot::State::take_confirmation(Member& member, const Bytes& body) {
  const auto confirmation = bootstrap::read_confirmation(body);
  if (!confirmation) return lose(member, words(confirmation.error()));
  member.confirmed = confirmation->round + 1;
  member.refused = confirmation->refused;
}

}  // namespace tutti
