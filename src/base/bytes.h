// Numbers and texts in frames: little endian. Reading past the end is detected and never happens.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tutti {

using Bytes = std::vector<std::byte>;

/// Appends to a frame.
class ByteWriter {
 public:
  template <std::integral T>
  void number(T value) {
    const auto bits = static_cast<std::uint64_t>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes_.push_back(static_cast<std::byte>(bits >> (8 * i)));
  }
  void raw(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  /// A 32-bit length, then the bytes.
  void sized(std::span<const std::byte> bytes) {
    number(static_cast<std::uint32_t>(bytes.size()));
    raw(bytes);
  }
  void text(std::string_view text) { sized(std::as_bytes(std::span(text))); }

  const Bytes& bytes() const { return bytes_; }
  Bytes take() && { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

/// Numbers, raw bytes, and texts with their lengths, one after another.
template <class... Parts>
Bytes serialized(const Parts&... parts) {
  ByteWriter writer;
  const auto add = [&]<class Part>(const Part& part) {
    if constexpr (std::integral<Part>)
      writer.number(part);
    else if constexpr (std::convertible_to<Part, std::string_view>)
      writer.text(part);
    else
      writer.raw(part);
  };
  (add(parts), ...);
  return std::move(writer).take();
}

/// Reads a frame. Past the end, reads return zeros and empty spans, and `ok` stays false: check it once, after the last
/// read and before any of the values is used.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : left_(bytes) {}

  template <std::integral T>
  T number() {
    const auto from = raw(sizeof(T));
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < from.size(); ++i) bits |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
    return static_cast<T>(bits);
  }
  template <std::integral... T>
  void numbers(T&... values) {
    ((values = number<T>()), ...);
  }
  std::span<const std::byte> raw(std::size_t bytes) {
    if (bytes > left_.size()) {
      ok_ = false;
      left_ = {};
      return {};
    }
    const auto taken = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return taken;
  }
  /// The bytes written by ByteWriter::sized; more than `bytes_max` makes `ok` false.
  std::span<const std::byte> sized(std::size_t bytes_max) {
    const auto bytes = number<std::uint32_t>();
    if (bytes > bytes_max) ok_ = false;
    return ok_ ? raw(bytes) : std::span<const std::byte>{};
  }
  std::string text(std::size_t bytes_max) {
    const auto from = sized(bytes_max);
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }

  bool ok() const { return ok_; }
  /// True if every read was within the frame and nothing is left.
  bool done() const { return ok_ && left_.empty(); }

 private:
  std::span<const std::byte> left_;
  bool ok_ = true;
};

}  // namespace tutti
