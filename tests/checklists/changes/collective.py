"""Reduce of own blocks: everybody has a block for each rank, and the root gets the sum of those for it."""
NAME = "reduce_own"
TARGETS = ["tutti-plan", "reduce_own_perf", "algorithms_test", "verify_test", "schedule_test", "select_test", "arguments_test"]
COMMANDS = [
    "build/tests/algorithms_test",
    "build/tests/verify_test",
    "build/tests/schedule_test",
    "build/tests/select_test",
    "build/tests/arguments_test",
    "build/tools/tutti-plan verify reduce_own --ranks 7 --root 3",
    "build/perf/reduce_own_perf --procs 3 -b 4 -e 1M -f 8 -n 2 -w 1 -c 1",
    "TUTTI_HOSTID=$$ build/perf/reduce_own_perf --procs 3 -b 4 -e 64K -f 8 -n 2 -w 1 -c 1",
]

DECLARATION = """/* The root's recvbuff[i] = op over all ranks of sendbuff[root * count + i]; sendbuff has count elements for each rank,
 * recvbuff, which only the root has, count. Errors: invalidArgument. */
TUTTI_API tuttiResult_t tuttiReduceOwn(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type,
                                       tuttiRedOp_t op, int root, tuttiComm_t comm, tuttiStream_t stream);
"""

DEFINITION = """tuttiResult_t tuttiReduceOwn(const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t type,
                             tuttiRedOp_t op, int root, tuttiComm_t comm, tuttiStream_t stream) {
  return collective(comm, stream,
                    {.collective = Collective::reduce_own,
                    .input = bytes(sendbuff),
                    .output = bytes(recvbuff),
                    .count = count,
                    .root = root},
                    type, static_cast<int>(op));
}
"""

PERF = """// Measures and checks the reduction of own blocks.
#include "perf/harness.h"

int main(int argc, char** argv) {
  return perf::run(argc, argv,
                   {.name = "reduce_own",
                    .launch =
                        [](const perf::Call& c) {
                          return tuttiReduceOwn(c.send, c.recv, c.count, c.type, c.op, c.root, c.comm, c.stream);
                        },
                    .expected = [](const perf::Call& c) -> std::vector<perf::Piece> {
                      if (c.rank != c.root) return {};
                      return {{0, c.count, perf::Pattern::kAllRanks, static_cast<std::size_t>(c.root) * c.count}};
                    },
                    .bus_factor = perf::bus_factor_one,
                    .send = perf::Blocks::per_rank,
                    .in_place = perf::InPlace::never,
                    .reduces = true,
                    .has_root = true});
}
"""


def make(tree):
    tree.change("src/plan/collectives.inc", "TUTTI_COLLECTIVE(ex_scan,",
                "{}\nTUTTI_COLLECTIVE(reduce_own, everybody, one_per_rank, root, one, reduction, never)")
    # What -Wswitch asks for.
    tree.change("src/collective/collective_inside_host.cpp", "    case Collective::reduce_scatter: return run_.shape()",
                "    case Collective::reduce_own:\n{}")
    tree.change("analysis/simulator/bound.cpp", "    case Collective::reduce: return 1;", "    case Collective::reduce_own:\n{}")
    tree.change("tests/support/reference_values.cpp", "    case Collective::ex_scan: break;", "    case Collective::reduce_own:\n{}")
    # The call; one_shot carries it out at once.
    tree.change("include/tutti/tutti.h", "/* No rank returns (or completes, on a stream) before all ranks", DECLARATION + "\n{}")
    tree.change("src/api/api.cpp", "tuttiResult_t tuttiBarrier(", DEFINITION + "\n{}")
    tree.new("perf/reduce_own_perf.cpp", PERF)
    tree.change("perf/CMakeLists.txt", "set(perf_programs", "{} reduce_own")
