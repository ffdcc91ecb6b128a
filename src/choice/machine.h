// The speed of a machine: the numbers from which the time of a call is predicted, and ways and loops are chosen.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/loop.h"

namespace tutti {

/// Bytes per second of one core while the other cores do the same, by how much memory a rank accesses repeatedly. GB/s
/// = 1,000 bytes/µs. Between two footprints the time per byte is interpolated; outside, the nearest applies.
struct Rates {
  static constexpr std::array<std::size_t, 6> footprints = {16 << 10, 128 << 10, 1 << 20, 3 << 20, 8 << 20, 32 << 20};
  static constexpr std::array<std::string_view, footprints.size()> names = {"16K", "128K", "1M", "3M", "8M", "32M"};
  std::array<double, footprints.size()> gbps{};

  /// µs per byte of a pass with a footprint of `footprint` bytes in all.
  double us_per_byte(double footprint) const;
  bool operator==(const Rates&) const = default;
};

/// GB/s of whole passes that read own memory and a peer's and write to both, all bytes read and written counted
/// together, while the other cores do the same: by class of pass, footprint and loop.
struct LoopRates {
  using OfLoops = std::array<double, loop_count>;
  std::array<std::array<OfLoops, LoopFootprints::bytes.size()>, pass_classes.size()> gbps{};
  /// GB/s of sums that are made, then copied by the peer's kernel, by footprint and loop: bytes of sums.
  using OfPulled = std::array<double, PulledFootprints::loops.size()>;
  std::array<OfPulled, PulledFootprints::bytes.size()> pulled_gbps{};

  /// The fastest loop of each; page after page unless taking pages in turn is faster by more than a tenth.
  LoopTable table() const;
  bool operator==(const LoopRates&) const = default;
};

/// TCP sockets between hosts. The relevant property is that a message is expensive. The defaults are those of a fast
/// network, with the time that it takes; what is measured is this machine's part alone.
struct SocketRates {
  double hop_us = 15;
  double message_us = 1.5;  ///< of its sender, and twice of its receiver
  double gbps = 2.5;        ///< copying into a message, or out of one
  bool operator==(const SocketRates&) const = default;
};

/// Memory that ranks pass data on in: windows and messages.
struct FarRates {
  Rates read{.gbps = {14, 14, 14, 13, 12, 11}};   ///< memory last written by another core
  Rates write{.gbps = {12, 12, 12, 10.5, 9, 7}};  ///< memory last read by another core
  /// The same where the stores are nontemporal: slower until measured, so that nothing uses such stores unmeasured.
  Rates streamed_read{.gbps = {1, 1, 1, 1, 1, 1}};
  Rates streamed_write{.gbps = {1, 1, 1, 1, 1, 1}};

  /// Messages of this size or more are written with nontemporal stores. Messages lie in shared memory that only their
  /// writer writes, in slots and behind call descriptors. Plain stores fetch each cache line from the core that read it
  /// last; between cores that share no cache that takes several times as long as writing to memory.
  std::size_t streamed_bytes() const;
  struct UsPerByte {
    double read, write;
  };
  /// Of messages of `bytes` in memory of `footprint` bytes that ranks use in turn. `streamed_bytes`: as above.
  UsPerByte message_us_per_byte(double bytes, double footprint, std::size_t streamed_bytes) const;
  bool operator==(const FarRates&) const = default;
};

/// Copying from another process's memory (CMA).
struct PullRates {
  double call_us = 0.5;   ///< one process_vm_readv of no bytes
  double apart_gbps = 9;  ///< copying 1 MiB where the addresses are 16 bytes apart modulo a page
  /// Pulling into bounce buffers of these sizes, to sum up what is pulled: bytes pulled.
  static constexpr std::array<std::size_t, 3> bounces = {128 << 10, 512 << 10, 1 << 20};
  static constexpr std::array<std::string_view, bounces.size()> bounce_names = {"128K", "512K", "1M"};
  std::array<double, bounces.size()> bounced_gbps{6, 6, 6};
  Rates together{.gbps = {9, 9, 9, 9, 9, 9}};       ///< copying its bytes, between pages of 4 KiB
  Rates huge_together{.gbps = {9, 9, 9, 9, 9, 9}};  ///< the same between huge pages
  Rates alone{.gbps = {9, 9, 9, 9, 9, 9}};          ///< as together, while the other cores wait
  Rates huge_alone{.gbps = {9, 9, 9, 9, 9, 9}};     ///< the same between huge pages

  /// The size of bounce buffers: the smallest one unless a larger one is faster by more than a fiftieth.
  std::size_t bounce_bytes() const;
  /// µs per byte pulled with a footprint of `footprint` bytes, while this share of all ranks pulls.
  double us_per_byte(double footprint, double share) const;
  bool operator==(const PullRates&) const = default;
};

/// Measured once (src/tune); all ranks of a communicator use rank 0's numbers. The defaults are those of a server of
/// 2023 with two cores and AVX-512; tests use them, and so do processes in which measuring is off.
struct Machine {
  /// from a rank's store until another rank sees it, each on its own core
  double hop_us = 0.11;
  double switch_us = 1.6;  ///< a core switches to another of its ranks
  double enter_us = 0.22;  ///< fixed cost of every call
  double setup_us = 0.35;  ///< fixed cost of every call that is not inline: a run of a plan is set up
  double line_us = 0.03;   ///< reading one call descriptor that has arrived
  double pass_us = 0.02;   ///< a pass over no bytes
  /// one action on a slot or a flag: fetching a cache line from the other rank's core
  double message_us = 0.03;
  PullRates pull;
  Rates read{.gbps = {140, 90, 60, 36, 24, 18}};  ///< own memory, for one more source of a pass
  Rates write{.gbps = {70, 45, 30, 19, 13, 9}};   ///< own memory
  FarRates far;
  LoopRates loops = built_in_loops();
  SocketRates wire;

  /// Whether a copy by CMA between addresses that are a few bytes apart modulo a page is faster through a buffer in the
  /// cache.
  bool realigning_pays() const;
  /// A GPU whose kernels pass data on, in round numbers of an H200 (docs/performance.md). All ranks' memory is equally
  /// fast, whoever wrote it, so only the proportions matter: a flag costs as much as a megabyte.
  static Machine of_gpu();
  /// As this machine, with all ordinary memory on huge pages.
  Machine on_huge_pages() const;

  /// How many numbers there are; they are sent and stored in the order above.
  static constexpr std::size_t count = 12 + PullRates::bounces.size() + 10 * Rates::footprints.size() +
                                       pass_classes.size() * LoopFootprints::bytes.size() * loop_count +
                                       PulledFootprints::bytes.size() * PulledFootprints::loops.size();
  std::array<double, count> numbers() const;
  /// By index, for example "hop_us", "far_read_gbps_128K" and "loop_gbps_2to2_64M_nontemporal".
  static const std::vector<std::string>& names();
  /// Errors: remote, for numbers that are not finite or not possible for a machine. Bounded, so that no sum of them
  /// overflows.
  static Result<Machine> of(std::span<const double> numbers);
  bool operator==(const Machine&) const = default;

 private:
  static LoopRates built_in_loops();
};

}  // namespace tutti
