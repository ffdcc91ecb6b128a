// How a rank has ended, as it travels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "transport/rank_area.h"

namespace tutti {

/// How a rank has ended, as its header says it.
struct RankEnd {
  RankState state = RankState::closed;
  std::uint32_t code = 0;
  bool ends_all = false;
  int culprit = -1;
  std::uint64_t completed = 0;
  std::string words = {};

  /// As it travels, without the state.
  Bytes encode() const;
  static std::optional<RankEnd> decode(RankState state, const Bytes& bytes);
  static constexpr std::size_t bytes_before_words = 4 + 1 + 4 + 8;
  static constexpr std::size_t bytes_max = bytes_before_words + sizeof(AreaHeader::message) - 1;

  static RankEnd read(const AreaHeader& header);
  void write(AreaHeader& header) const;
};

}  // namespace tutti
