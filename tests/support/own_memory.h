// Offers between ranks of one process.
#pragma once

#include <cstdint>
#include <optional>

#include "transport/offer.h"

namespace tutti::testing {

/// Any memory of the process.
class OwnMemory final : public OfferedMemory {
 public:
  std::optional<Offer> describe(int, std::span<const std::byte> memory) const override {
    return Offer{.memory = {.address = reinterpret_cast<std::uint64_t>(memory.data())}, .bytes = memory.size()};
  }
  Result<OfferedBlock> find(int, const Offer& offer) override {
    return OfferedBlock{.at = {reinterpret_cast<const std::byte*>(offer.memory.address), offer.bytes}};
  }
};

}  // namespace tutti::testing
