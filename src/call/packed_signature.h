// The signature of a call by kernels in 64 bits, which kernels compare: so a difference can be put into words.
#pragma once

#include <cstdint>

#include "call/request.h"
#include "plan/types.h"
#include "transport/call_descriptor.h"

namespace tutti {

/// A collective of Form::plain or Form::counts, and the channels by which a rank carries it out. Two calls have one
/// packed form exactly if they are alike, up to counts of 2^39.
struct PackedSignature {
  Signature signature;         ///< with a root below 64
  std::uint32_t channels = 0;  ///< at most 63

  static constexpr auto form_of_counts = static_cast<std::uint8_t>(Form::counts);
  static_assert(static_cast<std::uint8_t>(Form::plain) == 0);

  std::uint64_t pack() const {
    return std::uint64_t{signature.collective} | std::uint64_t{signature.type} << 4 | std::uint64_t{signature.op} << 8 |
           std::uint64_t{channels} << 12 | std::uint64_t{signature.root} << 18 |
           std::uint64_t{signature.form == form_of_counts} << 24 | signature.count << 25;
  }
  static PackedSignature unpack(std::uint64_t bits) {
    return {.signature = {.collective = static_cast<std::uint8_t>(bits & 15),
                          .type = static_cast<std::uint8_t>(bits >> 4 & 15),
                          .op = static_cast<std::uint8_t>(bits >> 8 & 15),
                          .form = (bits >> 24 & 1) != 0 ? form_of_counts : std::uint8_t{0},
                          .root = static_cast<std::uint32_t>(bits >> 18 & 63),
                          .count = bits >> 25},
            .channels = static_cast<std::uint32_t>(bits >> 12 & 63)};
  }
};
static_assert(collective_count <= 16 && data_type_count <= 16 && reduce_op_count <= 16);

}  // namespace tutti
