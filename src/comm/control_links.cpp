#include "comm/control_links.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/fixed_text.h"
#include "base/host.h"

namespace tutti {
namespace {

constexpr std::int64_t farewell_ns = 2'000'000'000;
constexpr std::int64_t nap_ns = 1'000'000'000;
constexpr std::size_t head_bytes = 12;  // state, kind, length of the text
constexpr std::size_t text_bytes_max = sizeof(AreaHeader::message) - 1;
/// Kind of a frame with state open. The text of a `calls` frame holds CallMarks. The text of `summary`, `ask` (which
/// requests an answer) and `answered` holds a CallSummary of all calls so far; that of `hearsay` a Hearsay.
enum Alive : std::uint32_t { beating = 0, traced = 1, calls = 2, summary = 3, ask = 4, answered = 5, hearsay = 6 };
constexpr std::size_t end_bytes = 4 + 1 + 4 + 8;  // of a RankEnd, before its words
constexpr std::size_t frame_text_max = std::max(Hearsay::bytes_max, end_bytes + text_bytes_max);
constexpr std::size_t marks_max = 64;  // in one frame
static_assert(marks_max * sizeof(CallMark) <= text_bytes_max);

std::shared_ptr<const Bytes> frame_of(RankState state, std::uint32_t kind, std::span<const std::byte> text) {
  ByteWriter writer;
  writer.number(static_cast<std::uint32_t>(state));
  writer.number(kind);
  writer.sized(text);
  return std::make_shared<const Bytes>(std::move(writer).take());
}

std::shared_ptr<const Bytes> frame_of(const RankEnd& end) {
  ByteWriter writer;
  writer.number(end.code);
  writer.number(static_cast<std::uint8_t>(end.ends_all));
  writer.number(static_cast<std::int32_t>(end.culprit));
  writer.number(end.completed);
  writer.raw(std::as_bytes(std::span(end.words).first(std::min(end.words.size(), text_bytes_max))));
  return frame_of(end.state, 0, writer.bytes());
}

std::optional<RankEnd> end_in(RankState state, const Bytes& text) {
  if (text.size() < end_bytes) return std::nullopt;
  ByteReader reader(text);
  RankEnd end{.state = state};
  end.code = reader.number<std::uint32_t>();
  end.ends_all = reader.number<std::uint8_t>() != 0;
  end.culprit = reader.number<std::int32_t>();
  end.completed = reader.number<std::uint64_t>();
  end.words.assign(reinterpret_cast<const char*>(text.data()) + end_bytes, text.size() - end_bytes);
  return end;
}

std::span<const std::byte> text_of(const CallSummary& of) {
  return std::as_bytes(std::span(&of, 1));
}

Error nonsense() {
  return {.code = Code::invalid_argument, .what = "it sent an invalid control message"};
}

/// Why the rank at the other end of a connection that ended with `error` is lost.
std::string words_for(const Error& error) {
  switch (error.sys_errno) {
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN: return fmt::format("its host does not answer any more ({})", error.text());
    case ECONNRESET:
      return "its connection was reset: its process was killed or exited without leaving the communicator, or "
             "something between the hosts cut the connection";
    default: break;
  }
  if (error.code == Code::invalid_argument) return error.what;
  return "its process was killed or exited without leaving the communicator";
}

/// Of other hosts.
std::vector<Rank> neighbours_by_distance(Rank rank, const std::vector<int>& hosts) {
  const int ranks = static_cast<int>(hosts.size());
  std::vector<Rank> all;
  for (int distance = 1; distance < ranks; distance *= 2)
    for (const int other : {(rank + distance) % ranks, (rank + ranks - distance) % ranks})
      if (hosts[static_cast<std::size_t>(other)] != hosts[static_cast<std::size_t>(rank)]) all.push_back(other);
  return all;
}

/// For each rank that has no neighbour by distance: itself, and the next rank of another host, in order of ranks.
std::vector<std::pair<Rank, Rank>> links_of_the_linkless(const std::vector<int>& hosts) {
  constexpr int links_max = 64;  // of one rank
  std::vector<std::pair<Rank, Rank>> all;
  if (std::ranges::adjacent_find(hosts, std::not_equal_to()) == hosts.end()) return all;  // one host
  std::vector<int> links(hosts.size());
  const int ranks = static_cast<int>(hosts.size());
  for (Rank rank = 0; rank < ranks; ++rank) {
    if (!neighbours_by_distance(rank, hosts).empty()) continue;
    Rank other = rank;
    while (hosts[static_cast<std::size_t>(other)] == hosts[static_cast<std::size_t>(rank)]) other = (other + 1) % ranks;
    if (links[static_cast<std::size_t>(other)]++ < links_max) all.emplace_back(rank, other);
  }
  return all;
}

}  // namespace

std::vector<Rank> control_neighbours(Rank rank, const std::vector<int>& hosts) {
  std::vector<Rank> all = neighbours_by_distance(rank, hosts);
  for (const auto& [one, other] : links_of_the_linkless(hosts)) {
    if (one == rank) all.push_back(other);
    if (other == rank) all.push_back(one);
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

MirroredHeader::MirroredHeader(const AreaShape& shape) : page_(std::make_unique<Page>()), area_(page_->bytes, shape) {
  area_.format();
  header().state.store(RankState::open, std::memory_order_release);
}

RankEnd RankEnd::read(const AreaHeader& header) {
  return {.state = header.state.load(std::memory_order_acquire),
          .code = header.failure.load(std::memory_order_relaxed),
          .ends_all = header.ends_all.load(std::memory_order_relaxed) != 0,
          .culprit = header.culprit.load(std::memory_order_relaxed),
          .completed = header.completed.load(std::memory_order_acquire),
          .words = get_text(header.message, Lines::several)};
}

void RankEnd::write(AreaHeader& header) const {
  header.failure.store(code, std::memory_order_relaxed);
  header.ends_all.store(ends_all ? 1 : 0, std::memory_order_relaxed);
  header.culprit.store(culprit, std::memory_order_relaxed);
  header.completed.store(completed, std::memory_order_relaxed);
  put_text(header.message, words);
  header.state.store(state, std::memory_order_release);
}

void ControlLinks::announce(const RankEnd& end) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(announced_, true)) return;
  const auto frame = frame_of(end);
  for (Link& link : links_) {
    if (link.ended) continue;
    link.wire.queue(frame);
    (void)link.wire.flush();  // the service thread handles errors of the connection
  }
}

void ControlLinks::tell_summary(const CallSummary& summary_now, bool asks) {
  const std::lock_guard lock(mutex_);
  const auto frame = frame_of(RankState::open, asks ? ask : summary, text_of(summary_now));
  for (Link& link : links_) {
    if (link.ended || link.said || announced_) continue;
    link.wire.queue(frame);
    (void)link.wire.flush();
  }
}

void ControlLinks::tell_gone(const GoneRank& gone) {
  const std::lock_guard lock(mutex_);
  if (!heard_.add(gone)) return;
  news_ = true;
  pass_on();
}

/// Also to ranks that have failed, and after this one has: somebody else may wait for the rank. Requires the lock.
void ControlLinks::pass_on() {
  if (!std::exchange(news_, false)) return;
  const auto frame = frame_of(RankState::open, hearsay, heard_.write());
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

void ControlLinks::tell_calls(int rank, const std::vector<CallMark>& marks) {
  const std::lock_guard lock(mutex_);
  const auto link = std::ranges::find(links_, rank, &Link::rank);
  if (link == links_.end() || link->ended || link->said || announced_) return;
  std::span<const CallMark> left = marks;
  while (!left.empty()) {
    const auto part = left.first(std::min(left.size(), marks_max));
    left = left.subspan(part.size());
    link->wire.queue(frame_of(RankState::open, calls, std::as_bytes(part)));
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
  for (Link& link : links_)
    if (!link.ended) read(link);
  pass_on();
  if (beat_ns_ != 0 && !announced_ && system_.now_ns() >= next_beat_ns_) beat();
  if (leave_by_ns_ == 0) return true;
  // Closing a connection with unread data would destroy data on its way to the peer, so give peers time to receive it.
  const bool late = system_.now_ns() >= leave_by_ns_;
  return !late && std::ranges::any_of(links_, [](const Link& link) { return !link.ended && !link.said; });
}

/// Sends a sign of life to all peers, and finds the silent ones. Runs after all received messages have been read.
void ControlLinks::beat() {
  next_beat_ns_ = system_.now_ns() + beat_ns_;
  const auto frame = frame_of(RankState::open, is_traced() ? traced : beating, {});
  for (Link& link : links_) {
    if (link.ended || link.said) continue;
    if (++link.unheard <= beats) {  // do not queue ever more frames for a peer that does not read
      link.wire.queue(frame);
      (void)link.wire.flush();
    }
    if (!is_silent(link)) continue;
    const double silent_s = static_cast<double>((link.unheard - 1) * beat_ns_) * 1e-9;
    lose(link, RankState::silent,
         fmt::format("it does not answer any more: nothing was received for {:.1f} s, so its process is stopped, "
                     "or its host hangs or was cut off",
                     silent_s));
  }
}

bool ControlLinks::is_silent(const Link& link) const {
  if (link.traced) return false;
  return link.unheard >= (link.heard ? beats : std::max<std::int64_t>(beats, start_ns_ / beat_ns_));
}

/// A frame is a head of fixed length, whose last number is the length of the text that follows.
void ControlLinks::read(Link& link) {
  const auto sent = link.wire.flush();  // handled only after all data received before the end is read
  for (;;) {
    std::size_t wanted = head_bytes;
    if (link.head) wanted = ByteReader(std::span(*link.head).last(4)).number<std::uint32_t>();
    if (link.head && wanted > frame_text_max) return end(link, nonsense());
    auto bytes = link.wire.take(wanted);
    if (!bytes) return end(link, bytes.error());
    if (!*bytes) return sent ? void() : end(link, sent.error());
    if (link.head) {
      believe(link, *link.head, **bytes);
      if (link.ended) return;
      link.head.reset();
    } else {
      link.head = **std::move(bytes);
    }
  }
}

void ControlLinks::believe(Link& link, const Bytes& head, const Bytes& text) {
  ByteReader reader(head);
  const auto state = static_cast<RankState>(reader.number<std::uint32_t>());
  const auto kind = reader.number<std::uint32_t>();
  link.unheard = 0;
  link.heard = true;
  if (state == RankState::open) return believe_alive(link, kind, text);
  const auto told = end_in(state, text);
  const bool ends = state == RankState::failed || state == RankState::aborted || state == RankState::closed;
  if (!told || !ends) return end(link, nonsense());
  believe_end(link, *told);
}

void ControlLinks::believe_end(Link& link, const RankEnd& end) {
  if (std::exchange(link.said, true)) return;
  end.write(link.mirror->header());
  if (end.ends_all && !announced_) return;  // so it does for this rank, which will say so
  const bool left = end.state == RankState::closed;
  if (heard_.add({.rank = link.rank, .left = left, .culprit = end.culprit, .words = end.words})) news_ = true;
}

/// Ranks at the other end of a connection speak for themselves: what they said before they left may be on its way.
bool ControlLinks::believe_hearsay(const Bytes& text) {
  const auto told = Hearsay::read(text);
  if (!told) return false;
  for (GoneRank& gone : heard_.merge(*told)) {
    if (std::ranges::find(links_, gone.rank, &Link::rank) == links_.end()) gone_.push_back(std::move(gone));
    news_ = true;
  }
  return true;
}

void ControlLinks::believe_alive(Link& link, std::uint32_t kind, const Bytes& words) {
  bool sound = true;
  switch (kind) {
    case calls: sound = believe_calls(link, words); break;
    case hearsay: sound = believe_hearsay(words); break;
    case summary: sound = believe_summary(link, words); break;
    case ask:
      sound = believe_summary(link, words);
      if (sound) answer(link);
      break;
    case answered:
      sound = believe_summary(link, words);
      link.mirror->header().answers.fetch_add(1, std::memory_order_release);
      break;
    default: link.traced = kind == traced;
  }
  if (!sound) end(link, nonsense());
}

bool ControlLinks::believe_summary(Link& link, const Bytes& words) {
  CallSummary theirs;
  if (words.size() != sizeof theirs) return false;
  std::memcpy(&theirs, words.data(), sizeof theirs);
  link.mirror->header().calls.store(theirs);
  return true;
}

/// Answers with the summary of this rank's calls. A call that is being added counts as not made yet.
void ControlLinks::answer(Link& link) {
  if (!history_ || announced_) return;
  std::optional<CallSummary> own = history_->last();
  if (!own) own = history_->find(history_->latest() - 1);
  link.wire.queue(frame_of(RankState::open, answered, text_of(own.value_or(CallSummary{}))));
  (void)link.wire.flush();
}

bool ControlLinks::believe_calls(const Link& link, const Bytes& words) {
  if (words.size() % sizeof(CallMark) != 0) return false;
  auto known = std::ranges::find(calls_, link.rank, &PeerCalls::rank);
  if (known == calls_.end()) known = calls_.insert(calls_.end(), {.rank = link.rank, .marks = {}});
  const std::size_t before = known->marks.size();
  const std::size_t count = words.size() / sizeof(CallMark);
  if (before + count > CallHistory::kept) return true;  // more than this rank can compare
  known->marks.resize(before + count);
  if (count > 0) std::memcpy(&known->marks[before], words.data(), words.size());
  return true;
}

void ControlLinks::end(Link& link, const Error& error) {
  link.ended = true;
  link.wire = Wire(system_, Socket());
  lose(link, RankState::lost, words_for(error));
}

/// Marks the rank as lost or silent, unless its final state is known already or this communicator has ended. Does not
/// close the connection: a rank that comes back must learn that the communicator has failed.
void ControlLinks::lose(Link& link, RankState state, const std::string& why) {
  if (std::exchange(link.said, true) || leave_by_ns_ != 0) return;
  AreaHeader& header = link.mirror->header();
  const std::string words = fmt::format("{} lost: {}", link.who, why);
  put_text(header.message, words);
  header.state.store(state, std::memory_order_release);
  if (state == RankState::lost && heard_.add({.rank = link.rank, .words = words})) news_ = true;
}

std::int64_t ControlLinks::poll_set(std::vector<PollItem>& items) {
  const std::lock_guard lock(mutex_);
  for (const Link& link : links_)
    if (!link.ended) items.push_back(link.wire.interest());
  for (const Socket& socket : data_.sockets) items.push_back({.handle = socket.handle(), .want_read = true});
  if (leave_by_ns_ != 0) return leave_by_ns_;
  return beat_ns_ != 0 && !announced_ ? next_beat_ns_ : system_.now_ns() + nap_ns;
}

}  // namespace tutti
