#include "choice/access_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/page_kind.h"

namespace tutti {
namespace {

/// Null where an access is not available.
struct AccessEnvelopes {
  const Envelope* in_line = nullptr;
  const Envelope* mapped = nullptr;
  const Envelope* cma = nullptr;
  const Envelope* cma_huge = nullptr;
  const Envelope* slots = nullptr;
};

/// `asking_us`: what it costs a call to ask on which pages its buffers lie.
AccessTable choose_accesses(const AccessEnvelopes& envelopes, double asking_us) {
  AccessTable access_table;
  for (std::size_t width = 1; width < 65; ++width) {
    const std::size_t size = std::size_t{1} << (width - 1);
    const auto us = [size](const Envelope* envelope) {
      return envelope == nullptr ? std::numeric_limits<double>::infinity() : envelope->us(size);
    };
    const bool smaller_too = width == 1 || access_table.inline_below == size;
    if (smaller_too && us(envelopes.in_line) <= us(envelopes.mapped)) access_table.inline_below = 2 * size;
    access_table.pulls[width] = us(envelopes.cma) < us(envelopes.slots);
    // Where huge pages spare less than the question costs, all pages are taken for small ones.
    const double spared = us(envelopes.slots) - us(envelopes.cma_huge);
    access_table.pulls_huge[width] = std::abs(spared) > asking_us ? spared > 0 : access_table.pulls[width];
    access_table.carries[width] = us(envelopes.in_line) < std::min(us(envelopes.cma), us(envelopes.slots));
  }
  return access_table;
}

}  // namespace

AccessTable predict_access_table(const Shape& shape, const Machine& machine, const Conditions& conditions,
                                 bool ordinary, const MakeEnvelope& make) {
  // A single rank accesses nobody's memory.
  if (shape.ranks == 1 || shape.collective == Collective::barrier) return {};
  Shape of = shape;
  of.root = 0;
  const auto in_line = make(of, Access::in_line, machine, conditions);
  const auto mapped = make(of, Access::mapped, machine, conditions);
  // One system call for each buffer now and then, at most as long as one that copies nothing from another process.
  const double asking_us = 2 * machine.pull.call_us / PageKinds::repeats;
  if (!ordinary) return choose_accesses({.in_line = in_line.get(), .mapped = mapped.get()}, asking_us);
  const auto cma = make(of, Access::cma, machine, conditions);
  const auto cma_huge = make(of, Access::cma, machine.on_huge_pages(), conditions);
  const auto slots = make(of, Access::slots, machine, conditions);
  return choose_accesses({.in_line = in_line.get(),
                          .mapped = mapped.get(),
                          .cma = cma.get(),
                          .cma_huge = cma_huge.get(),
                          .slots = slots.get()},
                         asking_us);
}

}  // namespace tutti
