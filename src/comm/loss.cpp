#include "comm/loss.h"

#include <cerrno>
#include <utility>

#include <fmt/format.h>

namespace tutti {
namespace {

double seconds(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

}  // namespace

std::string Loss::why() const {
  switch (kind) {
    case LossKind::ended: return "its process was killed or exited without leaving the communicator";
    case LossKind::replaced:
      return "its process was killed or exited without leaving the communicator, or has become another program";
    case LossKind::mute:
      return "its process lives, but answers its peers no more: it has become another program (exec), or closed "
             "descriptors that are not its own";
    case LossKind::stopped:
      return fmt::format(
          "its process has been stopped for {:.1f} s (by SIGSTOP, SIGTSTP or similar: state T in /proc; "
          "SIGCONT resumes it)",
          seconds(ns));
    case LossKind::no_sign_of_life:
      return fmt::format(
          "it does not answer any more: no sign of life for {:.1f} s, so its process is stopped or hangs", seconds(ns));
    case LossKind::silent:
      return fmt::format(
          "it does not answer any more: nothing was received for {:.1f} s, so its process is stopped, or "
          "its host hangs or was cut off",
          seconds(ns));
    case LossKind::connection_ended:
      return "its process was killed or exited without leaving the communicator, or closed the connection";
    case LossKind::connection_reset:
      return "its connection was reset: its process was killed or exited without leaving the communicator, or "
             "something "
             "between the hosts cut the connection";
    case LossKind::unreachable: return fmt::format("its host does not answer any more ({})", detail);
    case LossKind::bad_frame: return "it sent an invalid control message";
  }
  return detail;
}

std::string Loss::text(std::string_view who) const {
  return fmt::format("{} lost: {}", who, why());
}

Error Loss::error(std::string_view who, Rank rank) const {
  return {.code = Code::remote, .what = text(who), .peer = rank};
}

Loss loss_by(const Error& error) {
  switch (error.sys_errno) {
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN: return {.kind = LossKind::unreachable, .detail = error.text()};
    case ECONNRESET: return {.kind = LossKind::connection_reset};
    default: break;
  }
  return {.kind = error.code == Code::invalid_argument ? LossKind::bad_frame : LossKind::connection_ended};
}

std::optional<Loss> SignsOfLife::look(PeerProcess& process, const AreaHeader& header, std::int64_t now_ns,
                                      std::int64_t passed_ns, std::int64_t limit_ns, bool excused) {
  if (passed_ns == 0) {
    silent_ns_ = 0;
    return std::nullopt;
  }
  if (process.shows_stops()) {
    const std::int64_t stopped_ns = process.stopped_ns(now_ns);
    if (stopped_ns < limit_ns) return std::nullopt;
    return Loss{.kind = LossKind::stopped, .ns = stopped_ns};
  }
  const std::uint32_t beats = header.beats.load(std::memory_order_relaxed);
  const bool alive =
      std::exchange(beats_, beats) != beats || header.traced.load(std::memory_order_relaxed) != 0 || excused;
  silent_ns_ = alive ? 0 : silent_ns_ + passed_ns;
  if (silent_ns_ < limit_ns) return std::nullopt;
  return Loss{.kind = LossKind::no_sign_of_life, .ns = silent_ns_};
}

}  // namespace tutti
