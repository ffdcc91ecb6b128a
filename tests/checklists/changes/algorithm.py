"""An all-gather whose blocks go round the other way."""
NAME = "backward_ring"
TARGETS = ["tutti-plan", "all_gather_perf", "algorithms_test", "families_ring_tree_test", "select_test"]
COMMANDS = [
    "build/tests/algorithms_test",
    "build/tests/families_ring_tree_test",
    "build/tests/select_test",
    "build/tools/tutti-plan verify all_gather --algo backward_ring --ranks 7",
    "TUTTI_ALGO=backward_ring build/perf/all_gather_perf --procs 3 -b 8 -e 1M -f 8 -n 2 -w 1 -c 1 --csv rows.csv >/dev/null"
    " && grep -q ,backward_ring, rows.csv",
]

SOURCE = """// Data travels from neighbour to neighbour, against the order of ranks.
#include "algorithms/algorithm.h"

namespace tutti {
namespace {

bool supports(const Shape& shape, int) {
  return shape.ranks > 1 && shape.collective == Collective::all_gather;
}

/// Backward ring: as the ring, the other way round.
///
///   steps n-1      sent per rank bytes·(n-1)/n     any n ≥ 2
Schedule build(const Shape& shape, int) {
  const int n = shape.ranks;
  Schedule schedule(shape, /*parts=*/1);
  for (Rank rank = 0; rank < n; ++rank) schedule.copy(rank, {Buffer::input, 0}, rank, {Buffer::output, rank});
  for (int step = 1; step < n; ++step, schedule.next_step())
    for (Rank rank = 0; rank < n; ++rank) {
      const int block = (rank + step - 1) % n;
      const Ref from = step == 1 ? Ref{Buffer::input, 0} : Ref{Buffer::output, block};
      schedule.copy(rank, from, (rank + n - 1) % n, {Buffer::output, block});
    }
  return schedule;
}

}  // namespace

const Family algorithm::backward_ring{.name = "backward_ring",
                                      .supports = supports,
                                      .build = build,
                                      .carried_by = carried_except_inline};

}  // namespace tutti
"""

TEST = """
TEST(BackwardRing, SendsEachBlockOverEveryLinkButOne) {
  for (int n = 2; n <= 64; ++n) {
    const Schedule ring = built("backward_ring", Collective::all_gather, n);
    EXPECT_EQ(ring.steps(), n - 1);
    for (const auto& [link, blocks] : loads(ring)) {
      EXPECT_EQ(link.first, (link.second + 1) % n);
      EXPECT_EQ(blocks, n - 1);
    }
  }
}
"""


def make(tree):
    tree.new("src/algorithms/backward_ring.cpp", SOURCE)
    tree.change("src/algorithms/list.inc", "ALGORITHM(ring)", "{}\nALGORITHM(backward_ring)")
    tree.change("docs/algorithms.md", "| `ring` |", "{}\n| `backward_ring` | all-gather | n−1 | b·(n−1)/n | | 0 | any |")
    tree.change("tests/unit/families_ring_tree_test.cpp", "}  // namespace", TEST.lstrip("\n") + "\n{}")
