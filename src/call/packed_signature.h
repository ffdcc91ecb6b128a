// The signature of a call by kernels in 64 bits, which kernels compare: so a difference can be put into words.
#pragma once

#include <cstdint>

#include "call/request.h"
#include "plan/types.h"
#include "transport/call_descriptor.h"

namespace tutti {

/// A collective of Form::plain or Form::counts, and the channels by which a rank carries it out. Two calls have one
/// packed form exactly if they are alike, up to counts of 2^38.
struct PackedSignature {
  Signature signature;         ///< with a root below 64
  std::uint32_t channels = 0;  ///< at most 63

  static constexpr auto form_of_counts = static_cast<std::uint8_t>(Form::counts);
  static_assert(static_cast<std::uint8_t>(Form::plain) == 0);

  std::uint64_t pack() const {
    return std::uint64_t{signature.collective} | std::uint64_t{signature.type} << 4 | std::uint64_t{signature.op} << 9 |
           std::uint64_t{channels} << 13 | std::uint64_t{signature.root} << 19 |
           std::uint64_t{signature.form == form_of_counts} << 25 | signature.count << 26;
  }
  static PackedSignature unpack(std::uint64_t bits) {
    return {.signature = {.collective = static_cast<std::uint8_t>(bits & 15),
                          .type = static_cast<std::uint8_t>(bits >> 4 & 31),
                          .op = static_cast<std::uint8_t>(bits >> 9 & 15),
                          .form = (bits >> 25 & 1) != 0 ? form_of_counts : std::uint8_t{0},
                          .root = static_cast<std::uint32_t>(bits >> 19 & 63),
                          .count = bits >> 26},
            .channels = static_cast<std::uint32_t>(bits >> 13 & 63)};
  }
};
static_assert(collective_count <= 16 && data_type_count <= 32 && reduce_op_count <= 16);

}  // namespace tutti
