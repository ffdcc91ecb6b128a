// What one system call has returned beyond the end of a small message, until the messages that it belongs to are read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

namespace tutti {

class ReadAhead {
 public:
  static constexpr std::size_t bytes_max = 16 * 1024;

  void turn(bool on) { on_ = on; }
  /// Whether a message of so many bytes is to be read with what follows it.
  bool is_for(std::size_t message_bytes) const { return begin_ == end_ && on_ && message_bytes < bytes_max; }
  /// To be read into, if that is so; then `filled` says how much was.
  std::span<std::byte> buffer() { return {memory_.get(), bytes_max}; }
  void filled(std::size_t bytes) {
    begin_ = 0;
    end_ = bytes;
  }

  std::size_t size() const { return end_ - begin_; }
  /// Takes as much as is there and wanted.
  std::size_t take(std::span<std::byte> into) {
    const std::size_t taken = std::min(into.size(), size());
    if (taken > 0) std::memcpy(into.data(), memory_.get() + begin_, taken);
    begin_ += taken;
    return taken;
  }

 private:
  std::unique_ptr<std::byte[]> memory_{new std::byte[bytes_max]};
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool on_ = true;
};

}  // namespace tutti
