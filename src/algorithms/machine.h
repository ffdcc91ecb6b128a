// The speed of a machine: the few numbers from which the time of a call is predicted.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/error.h"

namespace tutti {

/// Bytes per second of one core while the other cores do the same, by how much memory a rank accesses repeatedly. GB/s
/// = 1,000 bytes/µs. Between two footprints the time per byte is interpolated; outside, the nearest applies.
struct Rates {
  static constexpr std::array<std::size_t, 5> footprints = {16 << 10, 128 << 10, 1 << 20, 8 << 20, 32 << 20};
  std::array<double, footprints.size()> gbps{};

  /// µs per byte of a pass with a footprint of `footprint` bytes in all.
  double us_per_byte(double footprint) const;
  bool operator==(const Rates&) const = default;
};

/// Measured once (src/tune); all ranks of a communicator use rank 0's numbers. The defaults are those of a server of
/// 2023 with two cores and AVX-512; tests use them, and so do processes in which measuring is off.
struct Machine {
  /// from a rank's store until another rank sees it, each on its own core
  double hop_us = 0.11;
  double switch_us = 1.6;  ///< a core switches to another of its ranks
  double enter_us = 0.22;  ///< fixed cost of every call
  double line_us = 0.03;   ///< reading one call descriptor that has arrived
  double pass_us = 0.02;   ///< a pass over no bytes
  /// one action on a slot or a flag: fetching a cache line from the other rank's core
  double message_us = 0.03;
  double pull_us = 0.5;                          ///< one process_vm_readv of no bytes
  double pull_gbps = 9;                          ///< copying its bytes
  double nontemporal_gbps = 7;                   ///< nontemporal stores
  Rates read{.gbps = {140, 90, 60, 24, 18}};     ///< own memory, for one more source of a pass
  Rates write{.gbps = {70, 45, 30, 13, 9}};      ///< own memory
  Rates far_read{.gbps = {14, 14, 14, 12, 11}};  ///< memory last written by another core
  Rates far_write{.gbps = {12, 12, 12, 9, 7}};   ///< memory last read by another core

  /// How many numbers there are; they are sent and stored in the order above.
  static constexpr std::size_t count = 9 + 4 * Rates::footprints.size();
  std::array<double, count> numbers() const;
  /// Errors: remote, for numbers that are not finite or not possible for a machine. Bounded, so that no sum of them
  /// overflows.
  static Result<Machine> of(std::span<const double> numbers);
  bool operator==(const Machine&) const = default;
};

/// Built-in numbers for two hosts connected by TCP sockets, used for all pairs of ranks. The relevant property is that
/// a message is expensive.
Machine over_sockets();

}  // namespace tutti
