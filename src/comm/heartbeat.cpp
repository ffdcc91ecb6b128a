#include "comm/heartbeat.h"

#include <algorithm>
#include <utility>

#include "base/host.h"
#include "comm/control_frames.h"

namespace tutti {
namespace {

constexpr int beats_in_silence = 16;               // or more
constexpr std::int64_t beat_ns_max = 250'000'000;  // less than lost_later_ns: who fell silent was heard so long before
constexpr std::int64_t debugger_ns = 1'000'000'000;  // between looks for one
constexpr std::int64_t lost_later_ns = 400'000'000;  // than silence; a cut one way is told 0.45 s late
constexpr int call_share = 4;                        // of silence_ns, until a rank is called
constexpr std::int64_t tick_ns = 50'000'000;         // looks while a rank is late
constexpr std::int64_t slack_ns = 20'000'000;        // a thread that may run wakes this much late

}  // namespace

Heartbeat::Heartbeat(System& system, std::int64_t silence_ns, std::int64_t start_ns)
    : system_(system),
      silence_ns_(silence_ns),
      start_ns_(start_ns),
      beat_ns_(std::min(silence_ns / beats_in_silence, beat_ns_max)) {}

void Heartbeat::pass_time(std::span<ControlLink> links) {
  const std::int64_t now = system_.now_ns();
  const std::int64_t looked_ns = std::exchange(looked_ns_, now);
  if (looked_ns == 0) return;
  const std::int64_t planned_ns = std::max<std::int64_t>(0, look_planned_ns_ - looked_ns);
  const std::int64_t own_ns = std::min(now - looked_ns, planned_ns + slack_ns);
  for (ControlLink& link : links) link.silent_ns += own_ns;
}

void Heartbeat::beat(std::span<ControlLink> links) {
  const std::int64_t now = system_.now_ns();
  if (now < next_beat_ns_) return;
  next_beat_ns_ = now + beat_ns_;
  if (now >= look_for_debugger_ns_) {
    traced_ = is_traced();
    look_for_debugger_ns_ = now + debugger_ns;
  }
  const auto frame = ControlFrames::frame(RankState::open, traced_ ? ControlFrame::traced : ControlFrame::beating, {});
  for (ControlLink& link : links) {
    if (!link.open()) continue;
    if (link.unanswered++ >= 2 * beats_in_silence) continue;  // do not queue ever more for a peer that does not read
    link.send(frame);
  }
}

bool Heartbeat::is_silent(const ControlLink& link) const {
  if (link.traced || !link.open()) return false;
  const std::int64_t limit_ns = silence_ns_ + lost_later_ns;
  return link.silent_ns >= (link.heard ? limit_ns : std::max(limit_ns, start_ns_));
}

void Heartbeat::call_late(std::span<ControlLink> links, bool watches) {
  for (ControlLink& link : links) {
    if (!link.life) continue;
    if (!watches || !link.open() || link.traced || link.silent_ns < silence_ns_ / call_share)
      link.life->rest();
    else if (link.life->advance(system_, silence_ns_ / beats_in_silence))
      link.silent_ns = 0;
  }
}

/// While no other rank of its host lives, which would see more than this one. Of several on one host the first, whose
/// last beat may have come a little later: that is the same one for as many ranks as possible.
ControlLink* Heartbeat::find_silent(std::span<ControlLink> links) const {
  const auto host_is_heard = [&](const ControlLink& link) {
    return std::ranges::any_of(links, [&](const ControlLink& other) {
      return &other != &link && other.host == link.host && other.heard && other.open() && heard_lately(other);
    });
  };
  const auto found =
      std::ranges::find_if(links, [&](const ControlLink& one) { return is_silent(one) && !host_is_heard(one); });
  if (found == links.end()) return nullptr;
  return &*std::ranges::find_if(links, [&](const ControlLink& one) {
    return one.host == found->host && !one.traced && one.open() &&
           (&one == &*found || (one.heard && one.silent_ns >= silence_ns_));
  });
}

std::int64_t Heartbeat::plan_look(std::span<const ControlLink> links) {
  const auto is_late = [&](const ControlLink& link) { return link.open() && link.silent_ns > 2 * beat_ns_; };
  look_planned_ns_ =
      std::ranges::any_of(links, is_late) ? std::min(next_beat_ns_, system_.now_ns() + tick_ns) : next_beat_ns_;
  return look_planned_ns_;
}

/// Since the last look nothing has come, or there would have been another.
std::int64_t Heartbeat::late_ns(const ControlLink& link) const {
  const std::int64_t since_ns = std::min(system_.now_ns(), look_planned_ns_) - looked_ns_;
  const std::int64_t silent_ns = link.silent_ns + std::max<std::int64_t>(0, since_ns);
  return beats() && silent_ns >= beat_ns_ + tick_ns ? silent_ns : 0;
}

}  // namespace tutti
