// What peers say on the control connections: checked, and written into their mirrored headers.
#include <algorithm>
#include <utility>

#include "base/enumeration.h"
#include "comm/control_links.h"

namespace tutti {
namespace {

/// See loss_by.
Error nonsense() {
  return {.code = Code::invalid_argument};
}

}  // namespace

/// A frame is a head of fixed length, whose last number is the length of the text that follows.
void ControlLinks::read(Link& link) {
  const auto sent = link.wire.flush();  // handled only after all data received before the end is read
  for (;;) {
    std::size_t wanted = ControlFrames::head_bytes;
    if (link.head) wanted = ByteReader(std::span(*link.head).last(4)).number<std::uint32_t>();
    if (link.head && wanted > ControlFrames::text_max) return end(link, nonsense());
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
  const auto state = enumerator<RankState>(reader.number<std::uint32_t>());
  const auto kind = enumerator<ControlFrame>(reader.number<std::uint32_t>());
  link.silent_ns = 0;
  link.unanswered = 0;
  link.heard = true;
  if (!state || !kind) return end(link, nonsense());
  if (state == RankState::open) return believe_alive(link, *kind, text);
  const auto told = RankEnd::decode(*state, text);
  const bool ends = state == RankState::failed || state == RankState::aborted || state == RankState::closed;
  if (!told || !ends) return end(link, nonsense());
  believe_end(link, *told);
}

void ControlLinks::believe_end(Link& link, const RankEnd& end) {
  if (std::exchange(link.said, true)) return;
  end.write(link.mirror->header());
  if (end.ends_all && !announced_) return;  // so it does for this rank, which will say so
  const bool left = end.state == RankState::closed;
  news_.add({.rank = link.rank, .left = left, .culprit = end.culprit, .words = end.words});
}

void ControlLinks::believe_alive(Link& link, ControlFrame kind, const Bytes& words) {
  bool sound = true;
  switch (kind) {
    case ControlFrame::calls: sound = calls_.add(link.rank, words); break;
    case ControlFrame::gossip:
      sound =
          news_.merge(words, [&](int rank) { return std::ranges::find(links_, rank, &Link::rank) != links_.end(); });
      break;
    case ControlFrame::summary: sound = link.mirror->take_summary(words); break;
    case ControlFrame::ask:
      sound = link.mirror->take_summary(words);
      if (sound) answer(link);
      break;
    case ControlFrame::answered:
      sound = link.mirror->take_summary(words);
      link.mirror->header().answers.fetch_add(1, std::memory_order_release);
      break;
    case ControlFrame::waits: sound = link.mirror->take_wait(words); break;
    case ControlFrame::beating:
    case ControlFrame::traced: link.traced = kind == ControlFrame::traced; break;
  }
  if (!sound) end(link, nonsense());
}

/// Answers with the summary of this rank's calls. A call that is being added counts as not made yet.
void ControlLinks::answer(Link& link) {
  if (!history_ || announced_) return;
  std::optional<CallSummary> own = history_->last();
  if (!own) own = history_->find(history_->latest() - 1);
  link.send(
      ControlFrames::frame(RankState::open, ControlFrame::answered, ControlFrames::text(own.value_or(CallSummary{}))));
}

}  // namespace tutti
