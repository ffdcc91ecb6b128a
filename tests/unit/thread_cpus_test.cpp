// Where threads of the library go, on machines that are not there.
#include <gtest/gtest.h>

#include <initializer_list>

#include "place/thread_cpus.h"

namespace tutti {
namespace {

using Kind = ThreadPlacement::Kind;

CpuSet cpus(std::initializer_list<int> list) {
  return cpus_in(std::span(list.begin(), list.size()));
}

CpuSet range(int first, int end) {
  CpuSet set;
  for (int cpu = first; cpu < end; ++cpu) set.set(static_cast<std::size_t>(cpu));
  return set;
}

/// Cores are numbered through; thread t of core c is CPU t · cores + c, as Linux numbers them on x86.
struct Machine {
  int packages = 1, nodes = 1, caches = 1, cores = 1;  ///< nodes of a package, caches of a node, cores of a cache
  int threads = 1;                                     ///< of a core

  int all_cores() const { return packages * nodes * caches * cores; }
  CpuSet all() const { return range(0, all_cores() * threads); }
  CpuSet block(int cpu, int size) const {
    const int first = cpu % all_cores() / size * size;
    CpuSet set;
    for (int thread = 0; thread < threads; ++thread)
      set |= range(first + thread * all_cores(), first + size + thread * all_cores());
    return set;
  }
  CpuSet part(Part part, int cpu) const {
    switch (part) {
      case Part::core: return block(cpu, 1);
      case Part::cache: return block(cpu, cores);
      case Part::node: return block(cpu, caches * cores);
      case Part::package: return block(cpu, nodes * caches * cores);
    }
    return {};
  }
  PartOf parts() const {
    return [this](Part which, int cpu) { return part(which, cpu); };
  }
  ThreadPlacement place(const CpuSet& home, std::vector<CpuSet> ranks, bool spins = false) const {
    return cpus_for_thread({.home = home, .allowed = all(), .ranks = std::move(ranks), .device = {}, .spins = spins},
                           parts());
  }
};

/// A rank on each of the first `count` cores.
std::vector<CpuSet> one_each(int count) {
  std::vector<CpuSet> ranks;
  for (int core = 0; core < count; ++core) ranks.push_back(cpus({core}));
  return ranks;
}

void expect_placed(const ThreadPlacement& place, const CpuSet& on, std::string_view where) {
  EXPECT_EQ(place.kind, Kind::placed);
  EXPECT_EQ(text_of(place.cpus), text_of(on));
  EXPECT_EQ(place.where, where);
}

const Machine small{.cores = 2};                                                 // two cores
const Machine desktop{.cores = 4, .threads = 2};                                 // 0-3, their siblings 4-7
const Machine server{.packages = 2, .nodes = 2, .caches = 2, .cores = 4};        // 32 cores, caches of four
const Machine smt_server{.packages = 2, .caches = 2, .cores = 4, .threads = 2};  // 16 cores, their siblings from 16

TEST(ThreadCpus, OfARankThatIsNotBoundAreLeftAlone) {
  EXPECT_EQ(small.place(small.all(), {small.all(), small.all()}).kind, Kind::left_alone);
  EXPECT_EQ(server.place(server.all(), one_each(4)).kind, Kind::left_alone) << "also beside ranks that are bound";
  const Machine one{};
  EXPECT_EQ(one.place(one.all(), {one.all()}).kind, Kind::left_alone) << "one core: there is nothing to be bound to";
}

TEST(ThreadCpus, AreTheOtherCoreOfTwo) {
  expect_placed(small.place(cpus({0}), {cpus({0})}), cpus({1}), "of the same cache");
  expect_placed(small.place(cpus({1}), {cpus({1}), small.all()}), cpus({0}), "of the same cache");
}

TEST(ThreadCpus, StayWhereEveryCoreHasARank) {
  EXPECT_EQ(small.place(cpus({0}), one_each(2)).kind, Kind::crowded);
  EXPECT_EQ(server.place(cpus({7}), one_each(32)).kind, Kind::crowded);
  EXPECT_EQ(desktop.place(cpus({1}), one_each(4)).kind, Kind::crowded) << "a core's other thread is the same core";
}

TEST(ThreadCpus, AreNeverTheOtherThreadOfARanksCore) {
  expect_placed(desktop.place(cpus({1}), one_each(2)), cpus({2, 3, 6, 7}), "of the same cache");
  expect_placed(desktop.place(cpus({1, 5}), {cpus({1, 5})}), cpus({0, 2, 3, 4, 6, 7}), "of the same cache");
}

TEST(ThreadCpus, AreTheNearestThatAreFree) {
  expect_placed(server.place(cpus({1}), one_each(3)), cpus({3}), "of the same cache");
  expect_placed(server.place(cpus({1}), one_each(4)), range(4, 8), "of the same NUMA node");
  expect_placed(server.place(cpus({1}), one_each(8)), range(8, 16), "of the same package");
  expect_placed(server.place(cpus({1}), one_each(16)), range(16, 32), "of the machine");
  expect_placed(smt_server.place(cpus({9}), {cpus({9})}), smt_server.part(Part::cache, 8) & ~cpus({9, 25}),
                "of the same cache");
}

TEST(ThreadCpus, OfARankOnSeveralCoresAreItsOwnButThoseOfOthers) {
  const CpuSet node = server.part(Part::node, 0);
  expect_placed(server.place(node, {node}), node, "of its rank");
  expect_placed(server.place(node, {node, cpus({2}), cpus({9})}), node & ~cpus({2}), "of its rank");
  expect_placed(server.place(cpus({0, 1}), {cpus({0, 1})}), cpus({0, 1}), "of its rank");
  expect_placed(server.place(cpus({0, 1}), {cpus({0, 1}), cpus({0}), cpus({1})}), cpus({2, 3}), "of the same cache");
}

TEST(ThreadCpus, ThatSpinAreEnoughForTheRanksAround) {
  expect_placed(server.place(cpus({1}), one_each(2), true), cpus({2, 3}), "of the same cache");
  expect_placed(server.place(cpus({1}), one_each(3), true), range(3, 8), "of the same NUMA node");
  expect_placed(server.place(cpus({1}), one_each(31), true), cpus({31}), "of the machine");
  auto twice = one_each(2);
  for (const CpuSet& again : one_each(2)) twice.push_back(again);
  expect_placed(server.place(cpus({1}), twice, true), cpus({2, 3}), "of the same cache");
}

TEST(ThreadCpus, AreAmongThoseOfTheControlGroup) {
  ThreadNeeds needs{.home = cpus({1}), .allowed = cpus({0, 1, 20}), .ranks = one_each(2), .device = {}};
  expect_placed(cpus_for_thread(needs, server.parts()), cpus({20}), "of the machine");
  needs.allowed = cpus({0, 1});
  EXPECT_EQ(cpus_for_thread(needs, server.parts()).kind, Kind::crowded);
  needs.allowed = cpus({1});
  EXPECT_EQ(cpus_for_thread(needs, server.parts()).kind, Kind::left_alone) << "a container of one core";
  needs.home = needs.allowed = range(0, 4);
  EXPECT_EQ(cpus_for_thread(needs, server.parts()).kind, Kind::left_alone) << "all that the group has";
}

TEST(ThreadCpus, AreNearTheGpuToo) {
  ThreadNeeds needs{.home = cpus({1}), .allowed = server.all(), .ranks = one_each(4), .device = range(0, 8)};
  expect_placed(cpus_for_thread(needs, server.parts()), range(4, 8), "of the same NUMA node");
  needs.device = range(16, 24);
  expect_placed(cpus_for_thread(needs, server.parts()), range(16, 24), "near its GPU");
  needs.device = range(0, 4);
  expect_placed(cpus_for_thread(needs, server.parts()), range(4, 8), "of the same NUMA node");
}

TEST(ThreadCpus, WhereNothingIsKnownOfTheMachineAreAnyFreeOne) {
  const PartOf unknown = [](Part, int) { return CpuSet(); };
  const ThreadNeeds needs{.home = cpus({1}), .allowed = range(0, 4), .ranks = one_each(2), .device = {}};
  expect_placed(cpus_for_thread(needs, unknown), cpus({2, 3}), "of the machine");
}

TEST(BoundCore, IsWhereAMaskHasNoMoreThanACore) {
  const auto core = [](const CpuSet& mask) { return text_of(bound_core(mask, desktop.all(), desktop.parts())); };
  EXPECT_EQ(core(cpus({2})), "2,6");
  EXPECT_EQ(core(cpus({2, 6})), "2,6");
  EXPECT_EQ(core(cpus({2, 3})), "none");
  EXPECT_EQ(core(desktop.all()), "none");
  EXPECT_EQ(core({}), "none");
}

TEST(MemoryNode, IsTheOneThatARankIsBoundTo) {
  const std::vector<NumaNode> nodes = {{0, range(0, 4)}, {1, range(4, 8)}, {8, {}}};  // 8: memory of a GPU
  EXPECT_EQ(memory_node(cpus({5}), nodes), 1);
  EXPECT_EQ(memory_node(range(0, 4), nodes), 0);
  EXPECT_EQ(memory_node(range(3, 5), nodes), -1);
  EXPECT_EQ(memory_node({}, nodes), -1);
  EXPECT_EQ(memory_node(cpus({1}), {{0, range(0, 8)}}), -1) << "one node";
  EXPECT_EQ(memory_node(cpus({1}), {}), -1);
}

TEST(CpuSet, IsWrittenAsRuns) {
  EXPECT_EQ(text_of({}), "none");
  EXPECT_EQ(text_of(cpus({0, 1, 2, 3, 8, 1023})), "0-3,8,1023");
  const cpu_set_t set = system_set(cpus({1, 700}));
  EXPECT_EQ(CPU_COUNT(&set), 2);
  EXPECT_EQ(cpus_in(set), cpus({1, 700}));
  EXPECT_EQ(cpus({-1, CPU_SETSIZE}), CpuSet()) << "no such bit";
}

}  // namespace
}  // namespace tutti
