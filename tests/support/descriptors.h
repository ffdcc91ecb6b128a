// Descriptors of this process: how many are open.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <thread>

namespace tutti::testing {

/// The one with which it counts is among them.
inline std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

/// Whether no more than `most` are open in the end. The library's own threads hold some for a moment, e.g. that of
/// memory which another process asks for.
inline bool descriptors_fall_to(std::ptrdiff_t most) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (open_descriptors() > most && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  return open_descriptors() <= most;
}

}  // namespace tutti::testing
