// What a machine does how fast: the handful of numbers from which the time of a call is predicted.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/error.h"

namespace tutti {

/// Bytes per second of one core while the other cores do the same, by how much memory a rank goes over and over.
/// GB/s = 1,000 bytes/µs. Between two footprints the time per byte is interpolated; outside, the nearest counts.
struct Rates {
  static constexpr std::array<std::size_t, 5> footprints = {16 << 10, 128 << 10, 1 << 20, 8 << 20, 32 << 20};
  std::array<double, footprints.size()> gbps{};

  /// µs for one byte of a pass over `footprint` bytes in all.
  double us_per_byte(double footprint) const;
  bool operator==(const Rates&) const = default;
};

/// Measured once (src/tune), and the same on all ranks of a communicator: rank 0's. The defaults are those of a server
/// of 2023 with two cores and AVX-512; they are what tests use, and what serves where measuring is off.
struct Machine {
  double hop_us = 0.11;                          ///< from a rank's store to another rank's seeing it, each on its core
  double switch_us = 1.6;                        ///< a core goes on with another of its ranks
  double enter_us = 0.22;                        ///< what every call costs, whatever it does
  double line_us = 0.03;                         ///< reading one call descriptor that is here
  double pass_us = 0.02;                         ///< a pass over no bytes
  double message_us = 0.03;                      ///< one verb on a slot or a flag: a line that the other rank has
  double pull_us = 0.5;                          ///< one process_vm_readv of no bytes
  double pull_gbps = 9;                          ///< and its bytes
  double nontemporal_gbps = 7;                   ///< storing past the caches
  Rates read{.gbps = {140, 90, 60, 24, 18}};     ///< own memory, by one more source of a pass
  Rates write{.gbps = {70, 45, 30, 13, 9}};      ///< own memory
  Rates far_read{.gbps = {14, 14, 14, 12, 11}};  ///< what another core wrote last
  Rates far_write{.gbps = {12, 12, 12, 9, 7}};   ///< what another core read last

  /// All numbers, in the order above: how they travel and are kept.
  static constexpr std::size_t count = 9 + 4 * Rates::footprints.size();
  std::array<double, count> numbers() const;
  /// Errors: remote, for anything but finite numbers of a possible machine. Bounded, so that no sum of them overflows.
  static Result<Machine> of(std::span<const double> numbers);
  bool operator==(const Machine&) const = default;
};

/// Built-in numbers of two hosts joined by TCP sockets, for all pairs of ranks: what matters is that a message is dear.
Machine over_sockets();

}  // namespace tutti
