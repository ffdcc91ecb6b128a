// How the blocks of a rank's buffers are named, and where what is known of each is kept.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti {

enum class Buffer : std::uint8_t { input, output, scratch };

/// One block of a rank's buffer.
///
/// A buffer is an array of *groups* of equal size, each divided into `parts` parts: block = group · parts + part. A
/// group is what one rank contributes or receives (`count` elements of the call). Sizes depend on the part alone, so a
/// transfer connects two blocks of one part. The collective determines how many groups a buffer has.
struct Ref {
  Buffer buffer = Buffer::input;
  int block = 0;
  bool operator==(const Ref&) const = default;
};

/// A value for each block of one rank, which are few enough to be found by their place. Grows to the blocks asked for.
template <class T>
class BlockTable {
 public:
  T& at(Ref ref) {
    std::vector<T>& values = values_[static_cast<std::size_t>(ref.buffer)];
    const auto block = static_cast<std::size_t>(ref.block);
    if (values.size() <= block) values.resize(std::max(block + 1, 2 * values.size()));
    return values[block];
  }
  const std::vector<T>& of(Buffer buffer) const { return values_[static_cast<std::size_t>(buffer)]; }

 private:
  std::array<std::vector<T>, 3> values_;
};

}  // namespace tutti
