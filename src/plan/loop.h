// The ways in which a pass can go through memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tutti {

/// The kind of a pass's stores, and the order in which it takes pages: one after the other, or several in turn, line by
/// line. Results are the same. Which is the fastest depends on processor, operands and size, so it is measured
/// (src/tune).
enum class Loop : std::uint8_t { plain, plain_pages, nontemporal, nontemporal_pages };
inline constexpr int loop_count = 4;
inline constexpr std::array<std::string_view, loop_count> loop_names = {"plain", "plain_pages", "nontemporal",
                                                                        "nontemporal_pages"};

constexpr bool is_nontemporal(Loop loop) {
  return loop == Loop::nontemporal || loop == Loop::nontemporal_pages;
}
constexpr bool takes_pages_in_turn(Loop loop) {
  return loop == Loop::plain_pages || loop == Loop::nontemporal_pages;
}
constexpr std::string_view name(Loop loop) {
  return loop_names[static_cast<std::size_t>(loop)];
}
constexpr std::optional<Loop> loop_of(std::string_view text) {
  for (int i = 0; i < loop_count; ++i)
    if (loop_names[static_cast<std::size_t>(i)] == text) return static_cast<Loop>(i);
  return std::nullopt;
}

/// Passes that are measured one by one, by their numbers of sources and destinations; the others do as the nearest.
struct PassClass {
  std::size_t sources;
  std::size_t destinations;
  bool own;  ///< reads the rank's own memory only; otherwise operands are dealt to the ranks in turn, a peer's first
  std::string_view name;
};
inline constexpr std::array<PassClass, 7> pass_classes = {{{1, 1, false, "1to1"},
                                                           {1, 4, false, "1to4"},
                                                           {2, 1, false, "2to1"},
                                                           {2, 2, false, "2to2"},
                                                           {4, 1, false, "4to1"},
                                                           {4, 4, false, "4to4"},
                                                           {1, 1, true, "own1to1"}}};
/// `own`: all sources are the rank's own memory.
constexpr std::size_t pass_class(std::size_t sources, std::size_t destinations, bool own) {
  if (own && sources == 1 && destinations == 1) return pass_classes.size() - 1;
  return (sources == 1 ? 0 : sources < 4 ? 2 : 4) + (destinations == 1 ? 0 : 1);
}

/// Sizes of the buffers of one rank, in all, for which loops are measured with two ranks at work. Calls of less than
/// half the first do as in the cache: plain.
struct LoopFootprints {
  static constexpr std::array<std::size_t, 3> bytes = {1 << 20, 8 << 20, 64 << 20};
  static constexpr std::size_t bytes_min = bytes[0] / 2;
  static constexpr std::array<std::string_view, bytes.size()> names = {"1M", "8M", "64M"};

  /// With how large buffers two ranks would occupy as much of a cache that they share as these `ranks` do.
  static constexpr std::size_t of_two(std::size_t own_bytes, int ranks) {
    return ranks > 2 ? own_bytes / 2 * static_cast<std::size_t>(ranks) : own_bytes;
  }
  /// The index of the nearest one in the logarithm. Requires at least bytes_min.
  static constexpr std::size_t nearest(std::size_t footprint) {
    return footprint < 3 << 20 ? 0 : footprint < 24 << 20 ? 1 : 2;
  }
};

/// Sums in a rank's own memory that a peer's kernel copies from there afterwards (CMA). Plain stores leave them in the
/// cache of this rank's core. Where two cores share no cache, the peer then takes them from there line by line, and the
/// next call's stores take them back; through memory this can be faster even if everything fits the caches.
struct PulledFootprints {
  static constexpr std::array<Loop, 2> loops = {Loop::plain, Loop::nontemporal};
  /// As those of LoopFootprints, and smaller. Calls of less than half the first use plain stores.
  static constexpr std::array<std::size_t, 4> bytes = {64 << 10, 1 << 20, 8 << 20, 64 << 20};
  static constexpr std::size_t bytes_min = bytes[0] / 2;
  static constexpr std::array<std::string_view, bytes.size()> names = {"64K", "1M", "8M", "64M"};

  /// The index of the nearest one in the logarithm. Requires at least bytes_min.
  static constexpr std::size_t nearest(std::size_t footprint) {
    return footprint < 256 << 10 ? 0 : 1 + LoopFootprints::nearest(footprint);
  }
};

/// The loop of each pass of a call, by class and footprint.
struct LoopTable {
  std::array<std::array<Loop, LoopFootprints::bytes.size()>, pass_classes.size()> best{};
  std::array<Loop, PulledFootprints::bytes.size()> pulled{};

  /// The same loop everywhere.
  static constexpr LoopTable all(Loop loop) {
    LoopTable table;
    for (auto& of_class : table.best) of_class.fill(loop);
    table.pulled.fill(loop);
    return table;
  }
  constexpr Loop at(std::size_t pass_class, std::size_t footprint_index) const {
    return best[pass_class][footprint_index];
  }
  bool operator==(const LoopTable&) const = default;
};

}  // namespace tutti
