// Measures which loop is the fastest for which pass.
#include <algorithm>
#include <array>
#include <limits>

#include "exec/reduce.h"
#include "tune/measure.h"
#include "tune/sampler.h"

namespace tutti {
namespace {

constexpr std::size_t operands_max = 4;
constexpr std::size_t align_down = 4096;
constexpr std::size_t uncounted_min = 16;  // samples until what fits a cache is there

/// Where the operands of a pass lie. As in a large all-reduce, each member's memory holds a rank's input, then its
/// output; a member works on its share of both members' buffers. The pass of one sample covers a window of the share:
/// windows follow each other, so that data is as cold as in a call on the whole.
class Operands {
 public:
  Operands(const Sampler& sampler, std::size_t footprint, const PassClass& pass)
      : sampler_(sampler), pass_(pass), buffer_(footprint / 2) {
    const auto share = [this](std::size_t operands) { return buffer_ / blocks(operands) / sharers(operands); };
    share_ = std::min(share(pass.sources), share(pass.destinations));
    window_ = std::min(share_, std::max(share_ / 8, window_min)) / align_down * align_down;
  }

  std::size_t window_bytes() const { return window_; }
  std::size_t windows() const { return share_ / window_; }

  void run(int member, std::size_t window, Loop loop) const {
    std::array<Source, operands_max> sources;
    std::array<std::byte*, operands_max> destinations{};
    const auto me = static_cast<std::size_t>(member);
    const std::size_t skipped = window * window_;
    for (std::size_t i = 0; i < pass_.sources; ++i)
      sources[i] =
          Source{.at = at(pass_.own ? me : me + 1, i, pass_.sources, me) + skipped, .scaled = false, .scalar = 0};
    for (std::size_t i = 0; i < pass_.destinations; ++i)
      destinations[i] = at(me, i, pass_.destinations, me) + buffer_ + skipped;
    reduce_pass({.sources = {sources.data(), pass_.sources},
                 .destinations = {destinations.data(), pass_.destinations},
                 .count = window_ / sizeof(float),
                 .type = DataType::float32,
                 .loop = loop});
  }

 private:
  static constexpr std::size_t window_min = 256 * 1024;

  std::size_t members() const { return static_cast<std::size_t>(sampler_.members()); }
  /// Operands are dealt to the members in turn; each has this many.
  std::size_t blocks(std::size_t operands) const { return (operands + members() - 1) / members(); }
  /// Each member works on its share of every block if all of them use it.
  std::size_t sharers(std::size_t operands) const { return operands > 1 ? members() : 1; }
  std::byte* at(std::size_t first, std::size_t nth, std::size_t operands, std::size_t member) const {
    const std::size_t block_bytes = buffer_ / blocks(operands);
    const std::size_t shared = operands > 1 ? member * block_bytes / members() : 0;
    return sampler_.memory(first + nth) + nth / members() * block_bytes + shared;
  }

  const Sampler& sampler_;
  PassClass pass_;
  std::size_t buffer_;
  std::size_t share_ = 0;
  std::size_t window_ = 0;
};

/// Seconds of a window by loop. The loops take turns, so that a slow moment of the machine does not decide between
/// them.
LoopRates::OfLoops seconds_of(Sampler& sampler, const Operands& operands, std::size_t uncounted, int rounds) {
  LoopRates::OfLoops seconds;
  seconds.fill(std::numeric_limits<double>::infinity());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t loop = 0; loop < seconds.size() && !sampler.disturbed(); ++loop) {
      std::size_t window = 0;
      const double median = sampler.median_of(uncounted, [&] {
        const auto sample = sampler.run([&](int member) { operands.run(member, window, static_cast<Loop>(loop)); });
        window = (window + 1) % operands.windows();
        return sample;
      });
      seconds[loop] = std::min(seconds[loop], median);
    }
  return seconds;
}

}  // namespace

void measure_loops(Sampler& sampler, LoopRates& rates) {
  // From small to large: after much has gone through a cache, it takes long until it holds what fits into it.
  for (std::size_t at = 0; at < LoopFootprints::bytes.size(); ++at)
    for (std::size_t of_class = 0; of_class < pass_classes.size(); ++of_class) {
      const PassClass& pass = pass_classes[of_class];
      const Operands operands(sampler, std::min(LoopFootprints::bytes[at], sampler.bytes()), pass);
      const bool in_cache = at + 1 < LoopFootprints::bytes.size();
      const std::size_t uncounted = in_cache ? std::max(uncounted_min, 2 * operands.windows()) : 1;
      const auto seconds = seconds_of(sampler, operands, uncounted, in_cache ? 2 : 1);
      const auto bytes = static_cast<double>(operands.window_bytes() * (pass.sources + pass.destinations));
      std::ranges::transform(seconds, rates.gbps[of_class][at].begin(), [&](double s) { return 1e-9 * bytes / s; });
    }
}

}  // namespace tutti
