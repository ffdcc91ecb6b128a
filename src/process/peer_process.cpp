#include "process/peer_process.h"

#include <poll.h>

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "base/file.h"

namespace tutti {
namespace {

constexpr std::int64_t look_ns_max = 1'000'000'000;
constexpr std::int64_t forget_ns = 2'000'000'000;  // between looks, where the kernel does not say whether it has run

/// The kernel reports for a pidfd the number of its process in this /proc: 0 or less if it has none there.
int number_in_proc(int pidfd) {
  std::istringstream info(content_of(fmt::format("/proc/self/fdinfo/{}", pidfd)));
  for (std::string word; info >> word;) {
    int number = 0;
    if (word == "Pid:" && info >> number) return number;
  }
  return 0;
}

}  // namespace

PeerProcess::PeerProcess(SeenProcess seen) : seen_(std::move(seen)) {
  if (seen_.pidfd) {
    seen_.connected = UniqueSocket();
    proc_pid_ = number_in_proc(seen_.pidfd.get());
  }
}

bool PeerProcess::ended() const {
  if (watched() < 0 || lost_handle()) return false;
  pollfd item{.fd = watched(), .events = POLLIN, .revents = 0};
  const bool is_ready = ::poll(&item, 1, 0) == 1;
  if ((item.revents & POLLNVAL) != 0) lost_handle_ = true;
  return is_ready && !lost_handle();
}

void PeerProcess::poll_set(std::vector<PollItem>& items) const {
  if (watched() >= 0 && !lost_handle()) items.push_back({.handle = watched(), .want_read = true});
}

/// What follows the name, which may contain anything but ends at the last parenthesis: the state, five numbers of other
/// things, the flags, and more (proc(5)).
std::string PeerProcess::stat() const {
  const std::string line = content_of(fmt::format("/proc/{}/stat", proc_pid_));
  const auto name_end = line.rfind(')');
  return name_end == std::string::npos || name_end + 2 > line.size() ? "" : line.substr(name_end + 2);
}

bool PeerProcess::is_ending() const {
  constexpr unsigned exiting = 4;  // PF_EXITING of linux/sched.h
  if (!shows_stops()) return false;
  std::istringstream words(stat());
  std::string skipped;
  for (int i = 0; i < 6; ++i) words >> skipped;
  unsigned flags = 0;
  return words >> flags && (flags & exiting) != 0;
}

/// For how long its first thread has run, in ns, as text: equal as long as it does not.
std::string PeerProcess::run_time() const {
  const std::string all = content_of(fmt::format("/proc/{}/schedstat", proc_pid_));
  return all.substr(0, all.find(' '));
}

std::int64_t PeerProcess::stopped_ns(std::int64_t now_ns) {
  if (!shows_stops()) return 0;
  const std::int64_t passed_ns = now_ns - std::exchange(looked_ns_, now_ns);
  const bool was_stopped = std::exchange(stopped_, is_stopped());
  std::string ran = run_time();
  const bool is_known = !ran.empty() || passed_ns <= forget_ns;
  const bool throughout = std::exchange(ran_, ran) == ran && is_known && stopped_ && was_stopped;
  stopped_ns_ = throughout ? stopped_ns_ + std::min(passed_ns, look_ns_max) : 0;
  return stopped_ns_;
}

Result<std::shared_ptr<PeerProcess>> PeerProcesses::get(std::uint64_t token,
                                                        const std::function<Result<SeenProcess>()>& meet) {
  const auto known = [&]() -> std::shared_ptr<PeerProcess> {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(token);
    return found == known_.end() ? nullptr : found->second.lock();
  };
  if (auto peer = known()) return peer;
  auto seen = TUTTI_TRY(meet());  // waits for the peer, so not under the lock
  if (auto peer = known()) return peer;
  auto peer = std::make_shared<PeerProcess>(std::move(seen));
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  known_[token] = peer;
  return peer;
}

}  // namespace tutti
