#include "choice/access_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/page_kind.h"

namespace tutti {
AccessTable predict_access_table(const Shape& shape, const Machine& machine, const Conditions& conditions,
                                 bool ordinary, const MakeEnvelope& make) {
  // A single rank accesses nobody's memory.
  if (shape.ranks == 1 || shape.collective == Collective::barrier) return {};
  Shape of = shape;
  of.root = 0;
  // Null where an access is not available.
  std::shared_ptr<const Envelope> cma, cma_huge, slots;
  const auto in_line = make(of, Access::in_line, machine, conditions);
  const auto mapped = make(of, Access::mapped, machine, conditions);
  if (ordinary) {
    cma = make(of, Access::cma, machine, conditions);
    cma_huge = make(of, Access::cma, machine.on_huge_pages(), conditions);
    slots = make(of, Access::slots, machine, conditions);
  }
  // What it costs a call to ask on which pages its buffers lie: one system call for each buffer now and then, at most
  // as long as one that copies nothing from another process.
  const double asking_us = 2 * machine.pull.call_us / PageKinds::repeats;
  AccessTable access_table;
  for (std::size_t width = 1; width < 65; ++width) {
    const std::size_t size = std::size_t{1} << (width - 1);
    const auto us = [size](const auto& envelope) {
      return envelope == nullptr ? std::numeric_limits<double>::infinity() : envelope->us(size);
    };
    const bool smaller_too = width == 1 || access_table.inline_below == size;
    if (smaller_too && us(in_line) <= us(mapped)) access_table.inline_below = 2 * size;
    access_table.pulls[width] = us(cma) < us(slots);
    // Where huge pages spare less than the question costs, all pages are taken for small ones.
    const double spared = us(slots) - us(cma_huge);
    access_table.pulls_huge[width] = std::abs(spared) > asking_us ? spared > 0 : access_table.pulls[width];
    access_table.carries[width] = us(in_line) < std::min(us(cma), us(slots));
  }
  return access_table;
}

}  // namespace tutti
