#include "peers.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tutti::testing::fake_verbs {
namespace {

int open_process(std::uint32_t pid) {
  return static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
}

/// A pidfd becomes readable when the process ends.
bool ended(int process) {
  pollfd item{.fd = process, .events = POLLIN, .revents = 0};
  return process < 0 || ::poll(&item, 1, 0) != 0;
}

/// Takes so many bytes off the front.
void advance(std::span<iovec>& pieces, std::size_t bytes) {
  while (!pieces.empty()) {
    const std::size_t part = std::min(bytes, pieces.front().iov_len);
    pieces.front().iov_base = static_cast<char*>(pieces.front().iov_base) + part;
    pieces.front().iov_len -= part;
    bytes -= part;
    if (pieces.front().iov_len > 0) return;
    pieces = pieces.subspan(1);
  }
}

int move_within(std::span<iovec> from, std::span<iovec> to) {
  while (!from.empty() && !to.empty()) {
    const std::size_t part = std::min(from.front().iov_len, to.front().iov_len);
    if (part > 0) std::memcpy(to.front().iov_base, from.front().iov_base, part);
    advance(from, part);
    advance(to, part);
  }
  return 0;
}

}  // namespace

bool is_running(std::uint32_t pid) {
  const int process = open_process(pid);
  const bool running = !ended(process);
  if (process >= 0) ::close(process);
  return running;
}

Peers::~Peers() {
  for (const auto& [serial, process] : processes_) ::close(process);
  for (const auto& [id, descriptor] : descriptors_) ::close(descriptor);
}

int Peers::process(std::uint64_t serial, std::uint32_t pid) {
  const auto at = processes_.find(serial);
  if (at != processes_.end()) return at->second;
  const int opened = open_process(pid);
  if (opened >= 0) processes_[serial] = opened;
  return opened;
}

bool Peers::alive(std::uint64_t serial, std::uint32_t pid) {
  const std::lock_guard guard(lock_);
  return !ended(process(serial, pid));
}

void Peers::wake(std::uint64_t serial, std::uint32_t pid, int descriptor, std::uint64_t id) {
  const std::lock_guard guard(lock_);
  auto at = descriptors_.find(id);
  if (at == descriptors_.end()) {
    const int taken = static_cast<int>(::syscall(SYS_pidfd_getfd, process(serial, pid), descriptor, 0));
    if (taken < 0) return;  // it has ended, or closed it
    at = descriptors_.emplace(id, taken).first;
  }
  fake_verbs::wake(at->second);
}

void wake(int descriptor) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, &one, sizeof one);
}

int move_bytes(std::uint32_t pid, std::span<iovec> from, std::span<iovec> to) {
  if (pid == 0) return move_within(from, to);
  while (!from.empty() && !to.empty()) {
    const ssize_t moved =
        ::process_vm_writev(static_cast<pid_t>(pid), from.data(), from.size(), to.data(), to.size(), 0);
    if (moved < 0) return errno;
    const auto bytes = static_cast<std::size_t>(moved);
    advance(from, bytes);
    advance(to, bytes);
  }
  return 0;
}

}  // namespace tutti::testing::fake_verbs
