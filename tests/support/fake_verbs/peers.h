// Other processes of the fabric: whether they live, their memory, and their descriptors that are to be woken.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <span>

namespace tutti::testing::fake_verbs {

/// Of a process that has ended but was not waited for: false.
bool is_running(std::uint32_t pid);

/// What this process holds of others. Thread-safe.
class Peers {
 public:
  Peers() = default;
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  /// `serial` names the process for good; its pid may be used again.
  bool alive(std::uint64_t serial, std::uint32_t pid);
  /// Writes one event into the eventfd `descriptor` of that process, which `id` names for good.
  void wake(std::uint64_t serial, std::uint32_t pid, int descriptor, std::uint64_t id);

 private:
  int process(std::uint64_t serial, std::uint32_t pid);

  std::mutex lock_;
  std::map<std::uint64_t, int> processes_;    ///< serial → pidfd
  std::map<std::uint64_t, int> descriptors_;  ///< id → our copy
};

/// An eventfd in this process.
void wake(int descriptor);

/// Copies to memory of this process, or of `pid` where it is not 0; both sides have equally many bytes. 0 or an errno.
int move_bytes(std::uint32_t pid, std::span<iovec> from, std::span<iovec> to);

}  // namespace tutti::testing::fake_verbs
