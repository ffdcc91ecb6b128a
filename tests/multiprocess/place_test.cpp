// TUTTI_TOPO_FILE: do levels, order and choice of a communicator follow the machine, and are all results still right?
#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/call.h"
#include "support/folder.h"
#include "support/has_hwloc.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

constexpr const char* gpus_8 = TUTTI_TEST_MACHINES "/cube-mesh-double.txt";
constexpr const char* switched_8 = TUTTI_TEST_MACHINES "/switched-8.xml";
constexpr const char* four_nodes = "synthetic:pack:2 numa:2 core:2 pu:1";
constexpr const char* no_hwloc = "libhwloc is not installed (Debian: libhwloc15)";

std::vector<std::string> on(const std::string& machine, const std::string& transport) {
  std::vector<std::string> environment = {"TUTTI_TRANSPORT=" + transport};
  if (!machine.empty()) environment.push_back("TUTTI_TOPO_FILE=" + machine);
  return environment;
}

std::string explained(tuttiComm_t comm, const char* collective, std::size_t count) {
  std::array<char, 16384> text{};
  EXPECT_TRUE(ok(tuttiCommExplain(comm, collective, count, tuttiFloat32, text.data(), text.size(), nullptr)));
  return text.data();
}

/// What rank 0's communicator says of a call through slots.
void with_explanation(const std::string& machine, int ranks, const std::function<void(const std::string&)>& use) {
  EXPECT_TRUE(
      launch_ranks({.ranks = ranks, .layout = Layout::threads, .environment = on(machine, "slots")}, [&](Seat& seat) {
        tuttiComm_t comm = seat.init_one();
        ASSERT_NE(comm, nullptr);
        if (seat.rank() == 0) use(explained(comm, "all_gather", 1 << 18));
        EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      }));
}

TEST(Place, WithoutAFileRanksOfAHostAreOneGroup) {
  with_explanation("", 4, [](const std::string& text) {
    EXPECT_EQ(text.find("order"), std::string::npos) << text;
    EXPECT_TRUE(text.starts_with("all_gather")) << text;
  });
}

TEST(Place, RanksTakeTheGpusOfARecordedMachine) {
  with_explanation(gpus_8, 8, [](const std::string& text) {
    EXPECT_NE(text.find("Ranks: 2 groups"), std::string::npos) << text;
    const std::size_t at = text.find("order 0 ");
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_NE(text.substr(at, 21), "order 0 1 2 3 4 5 6 7") << "a ring of that machine's NVLinks is not in that order";
    EXPECT_NE(text.find("hierarchical"), std::string::npos) << text;
  });
}

/// The algorithms that are used for an all-gather of several sizes, on a machine whose memory is faster than its links.
std::string used(const std::string& machine, const Folder& folder) {
  const std::string speeds = folder / "speeds";
  std::string text = "tutti machine 2\n";
  for (const char* size : {"16K", "128K", "1M", "3M", "8M", "32M"})
    text += fmt::format("far_read_gbps_{0} 400\nfar_write_gbps_{0} 400\n", size);
  std::ofstream(speeds) << text;
  std::vector<std::string> environment = on(machine, "slots");
  environment.push_back("TUTTI_MACHINE_FILE=" + speeds);
  const std::string result = folder / "used";
  EXPECT_TRUE(launch_ranks({.ranks = 8, .layout = Layout::threads, .environment = environment}, [&](Seat& seat) {
    tuttiComm_t comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    std::ofstream all(result);
    for (std::size_t count = 64; count <= (4 << 20) && seat.rank() == 0; count *= 16) {
      const std::string explanation = explained(comm, "all_gather", count);
      const std::size_t at = explanation.find("  used: ");
      ASSERT_NE(at, std::string::npos) << explanation;
      all << explanation.substr(at, explanation.find(',', at) - at) << '\n';
    }
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  }));
  std::stringstream text_of_all;
  text_of_all << std::ifstream(result).rdbuf();
  return text_of_all.str();
}

TEST(Place, ChoiceFollowsTheLinks) {
  const Folder folder;
  const std::string without = used("", folder);
  EXPECT_NE(without, "");
  EXPECT_NE(without, used(gpus_8, folder));
  if (has_hwloc()) {
    EXPECT_NE(without, used(four_nodes, folder));
  }
}

TEST(Place, RanksShareTheNodesOfASyntheticMachine) {
  if (!has_hwloc()) GTEST_SKIP() << no_hwloc;
  with_explanation(four_nodes, 8, [](const std::string& text) {
    EXPECT_NE(text.find("Ranks: 2 groups, then 4 groups"), std::string::npos) << text;
    EXPECT_NE(text.find("hierarchical"), std::string::npos) << text;
  });
}

using Where = std::tuple<const char*, const char*, int>;

class OnAMachine : public ::testing::TestWithParam<Where> {};

TEST_P(OnAMachine, EveryCollectiveIsRight) {
  const auto [machine, transport, ranks] = GetParam();
  if (machine == four_nodes && !has_hwloc()) GTEST_SKIP() << no_hwloc;
  EXPECT_TRUE(
      launch_ranks({.ranks = ranks, .layout = Layout::pairs, .environment = on(machine, transport)}, [&](Seat& seat) {
        tuttiComm_t comm = seat.init_one();
        ASSERT_NE(comm, nullptr);
        for (int kind = 0; kind < kind_count; ++kind)
          for (const std::size_t bytes : {std::size_t{8}, std::size_t{5000}, std::size_t{300'000}})
            for (const int root : {0, seat.ranks() - 1}) {
              const auto of = static_cast<Kind>(kind);
              const Call call{.kind = of,
                              .values = Values::random,
                              .count = count_for(of, tuttiFloat32, seat.ranks(), bytes),
                              .root = root,
                              .in_place = InPlace::some,
                              .memory = Mix::by_rank,
                              .seed = 5};
              EXPECT_EQ(run_call(call, seat.here(), seat.ranks(), {comm}, 2), "") << call.text();
            }
        EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      }));
}

INSTANTIATE_TEST_SUITE_P(Machines, OnAMachine,
                         ::testing::Combine(::testing::Values(gpus_8, four_nodes),
                                            ::testing::Values("auto", "slots", "socket"), ::testing::Values(3, 8)));

/// A file of NCCL's form, in a folder that ends with the test. `rings`: a digit for each device, a blank between rings.
std::string ring_file(const Folder& folder, const std::string& rings) {
  std::string text = R"(<graphs version="1"><graph id="0" pattern="4" nchannels="1"><channel>)";
  for (const char device : rings)
    text += device == ' ' ? "</channel><channel>" : fmt::format(R"(<gpu dev="{}"/>)", device);
  const std::string path = folder.path() + "/graph.xml";
  std::ofstream(path) << text << "</channel></graph></graphs>";
  return path;
}

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Ranks of an 8-GPU machine, in one process and as if each pair of them were a host.
class Rings : public ::testing::TestWithParam<Layout> {};

TEST_P(Rings, OfTheMachineGiveRightResults) {
  const Layout layout = GetParam();
  const Folder folder;
  const std::string written = folder.path() + "/job.json";
  std::vector<std::string> environment = on(gpus_8, layout == Layout::pairs ? "socket" : "slots");
  environment.insert(environment.end(), {"TUTTI_ALGO=multi_ring", "TUTTI_JOB_DUMP_FILE=" + written});
  EXPECT_TRUE(launch_ranks({.ranks = 8, .layout = layout, .environment = environment}, [layout](Seat& seat) {
    tuttiComm_t comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const std::string text = explained(comm, "all_reduce", 1 << 18);
    EXPECT_NE(text.find(layout == Layout::pairs ? " 2 rings: 0 1 " : " 6 rings: 0 2 "), std::string::npos) << text;
    EXPECT_NE(text.find("multi_ring/0"), std::string::npos) << text;
    for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter})
      for (const std::size_t count : {std::size_t{1}, std::size_t{77}, std::size_t{100'000}}) {
        const Call call{.kind = kind, .count = count, .seed = count};
        EXPECT_EQ(run_call(call, seat.here(), seat.ranks(), {comm}, 2), "") << call.text();
      }
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  }));
  EXPECT_NE(content(written).find(R"("rings": [)"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Rings, ::testing::Values(Layout::threads, Layout::pairs));

TEST(Place, RanksFollowAllChannelsOfAFile) {
  const Folder folder;
  const std::string written = folder.path() + "/written.xml";
  const Team team{
      .ranks = 4,
      .environment = {"TUTTI_TRANSPORT=slots", "TUTTI_ALGO=multi_ring",
                      "TUTTI_GRAPH_FILE=" + ring_file(folder, "0231 3012 0231"), "TUTTI_GRAPH_DUMP_FILE=" + written}};
  EXPECT_TRUE(launch_ranks(team, [](Seat& seat) {
    tuttiComm_t comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const std::string text = explained(comm, "all_gather", 1 << 18);
    EXPECT_NE(text.find("order 0 2 3 1; 2 rings: 0 2 3 1 | 3 0 1 2"), std::string::npos) << text;
    const Call call{.kind = Kind::all_reduce, .count = 5000, .seed = 5};
    EXPECT_EQ(run_call(call, seat.here(), seat.ranks(), {comm}, 2), "");
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  }));
  const std::string text = content(written);
  const std::size_t second = text.find("<channel>", text.find("<channel>") + 1);
  ASSERT_NE(second, std::string::npos) << text;
  EXPECT_LT(text.find(R"(dev="3")", second), text.find(R"(dev="0")", second)) << text;
  EXPECT_EQ(text.find("<channel>", second + 1), std::string::npos) << "equal channels are one ring\n" << text;
}

TEST(Place, RanksFollowTheRingOfAFile) {
  const Folder folder;
  const std::string written = folder.path() + "/written.xml";
  const Team team{.ranks = 4,
                  .environment = {"TUTTI_TRANSPORT=slots", "TUTTI_GRAPH_FILE=" + ring_file(folder, "0231"),
                                  "TUTTI_GRAPH_DUMP_FILE=" + written}};
  EXPECT_TRUE(launch_ranks(team, [](Seat& seat) {
    tuttiComm_t comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const std::string text = explained(comm, "all_gather", 1 << 18);
    EXPECT_NE(text.find("order 0 2 3 1"), std::string::npos) << text;
    const Call call{.kind = Kind::all_gather, .count = 5000, .seed = 5};
    EXPECT_EQ(run_call(call, seat.here(), seat.ranks(), {comm}, 2), "");
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  }));
  const std::string text = content(written);
  const std::size_t two = text.find(R"(dev="2")"), three = text.find(R"(dev="3")"), one = text.find(R"(dev="1")");
  EXPECT_LT(text.find(R"(dev="0")"), two) << text;
  EXPECT_LT(two, three) << text;
  EXPECT_LT(three, one) << text;
  EXPECT_NE(one, std::string::npos) << text;
}

/// As rank 0 wrote it. `ring` is of the ranks of one host.
std::string dumped_job(const char* transport, const char* ring, bool deterministic) {
  const Folder folder;
  const std::string written = folder.path() + "/job.json";
  const Team team{.ranks = 4,
                  .environment = {fmt::format("TUTTI_TRANSPORT={}", transport), "TUTTI_JOB_DUMP_FILE=" + written,
                                  "TUTTI_GRAPH_FILE=" + ring_file(folder, ring)}};
  EXPECT_TRUE(launch_ranks(team, [&](Seat& seat) {
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    config.deterministic = deterministic ? 1 : 0;
    tuttiComm_t comm = nullptr;
    EXPECT_TRUE(ok(tuttiCommInitRankConfig(&comm, seat.ranks(), seat.next_id(), seat.rank(), &config)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  }));
  return content(written);
}

TEST(Place, WritesTheJob) {
  const std::string one_host = dumped_job("slots", "0231", false);
  EXPECT_NE(one_host.find(R"("order": [0, 2, 3, 1])"), std::string::npos) << one_host;
  EXPECT_EQ(one_host.find(R"("host": 1)"), std::string::npos) << one_host;
  EXPECT_NE(one_host.find(R"("kind": "numa")"), std::string::npos) << one_host;
  // Sums of a deterministic communicator are in the order of the numbers.
  const std::string by_number = dumped_job("slots", "0231 0321", true);
  EXPECT_EQ(by_number.find("rings"), std::string::npos) << by_number;
  EXPECT_NE(by_number.find(R"("order": [0, 1, 2, 3])"), std::string::npos) << by_number;
  // By sockets, as if each process ran on its own host.
  const std::string four_hosts = dumped_job("socket", "0", false);
  EXPECT_NE(four_hosts.find(R"("host": 3)"), std::string::npos) << four_hosts;
}

/// Two processes of two ranks, by sockets as if each ran on its own host, on different recorded machines.
Team on_two_machines(const std::string& written) {
  return {.ranks = 4,
          .layout = Layout::pairs,
          .environment = {"TUTTI_TRANSPORT=socket", "TUTTI_JOB_DUMP_FILE=" + written},
          .environment_of = [](int first) -> std::vector<std::string> {
            return {std::string("TUTTI_TOPO_FILE=") + (first == 0 ? switched_8 : gpus_8)};
          }};
}

TEST(Place, EachHostHasItsOwnMachine) {
  const Folder folder;
  const std::string written = folder.path() + "/job.json";
  EXPECT_TRUE(launch_ranks(on_two_machines(written), [](Seat& seat) {
    tuttiComm_t comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const Call call{.kind = Kind::all_reduce, .count = 5000, .seed = 5};
    EXPECT_EQ(run_call(call, seat.here(), seat.ranks(), {comm}, 2), "");
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  }));
  std::ifstream file(written);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(text.find(R"("machine": 1})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("host": 1, "package")"), std::string::npos) << text;
  std::size_t gpus = 0;
  for (std::size_t at = text.find(R"("kind": "gpu")"); at != std::string::npos;
       at = text.find(R"("kind": "gpu")", at + 1))
    ++gpus;
  EXPECT_EQ(gpus, 16u) << text;
  const std::size_t nic = text.find(R"("kind": "nic")");
  EXPECT_NE(nic, std::string::npos) << "of the first machine: " << text;
}

/// Four processes, by sockets as if each ran on its own host, which have this to say of their racks.
Team in_racks(const std::function<std::vector<std::string>(int)>& environment_of) {
  return {.ranks = 4, .environment = {"TUTTI_TRANSPORT=socket"}, .environment_of = environment_of};
}

void expect_two_racks(const Team& team) {
  EXPECT_TRUE(launch_ranks(team, [](Seat& seat) {
    tuttiComm_t comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const std::string text = explained(comm, "all_reduce", 1 << 18);
    EXPECT_NE(text.find("Ranks: 2 groups; order 0 2 1 3"), std::string::npos) << text;
    EXPECT_NE(text.find("hierarchical"), std::string::npos) << text;
    for (int kind = 0; kind < kind_count; ++kind)
      EXPECT_EQ(run_call({.kind = static_cast<Kind>(kind), .count = 5000, .seed = 7}, seat.here(), 4, {comm}), "");
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  }));
}

TEST(Place, RacksAreALevelAboveHosts) {
  expect_two_racks(in_racks([](int rank) -> std::vector<std::string> {
    return {rank % 2 == 0 ? "TUTTI_TOPO_GROUPS=hall1/rack1" : "TUTTI_TOPO_GROUPS=hall1/rack2"};
  }));
}

TEST(Place, SlurmsSwitchesAreALevelAboveHosts) {
  expect_two_racks(in_racks([](int rank) -> std::vector<std::string> {
    return {fmt::format("SLURM_TOPOLOGY_ADDR=top.leaf{}.node{}", rank % 2, rank),
            "SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node"};
  }));
}

TEST(Place, SaysWhichGroupsItDoesNotUnderstand) {
  const Team team{.ranks = 2, .environment = {"TUTTI_TOPO_GROUPS=a//b"}};
  EXPECT_TRUE(launch_ranks(team, [](Seat& seat) {
    tuttiComm_t comm = nullptr;
    EXPECT_NE(tuttiCommInitRank(&comm, seat.ranks(), seat.next_id(), seat.rank()), tuttiSuccess);
    EXPECT_NE(std::string(tuttiGetLastError(nullptr)).find("TUTTI_TOPO_GROUPS=a//b"), std::string::npos)
        << tuttiGetLastError(nullptr);
  }));
}

TEST(Place, SaysWhichFileItCannotWrite) {
  const Team team{.ranks = 2, .environment = {"TUTTI_JOB_DUMP_FILE=/nowhere/job.json"}};
  EXPECT_TRUE(launch_ranks(team, [](Seat& seat) {
    tuttiComm_t comm = nullptr;
    EXPECT_NE(tuttiCommInitRank(&comm, seat.ranks(), seat.next_id(), seat.rank()), tuttiSuccess);
    EXPECT_NE(std::string(tuttiGetLastError(nullptr)).find("TUTTI_JOB_DUMP_FILE"), std::string::npos)
        << tuttiGetLastError(nullptr);
  }));
}

TEST(Place, SaysWhichRingDoesNotFit) {
  const Folder folder;
  for (const char* devices : {"01", "0012", "0124", "0123 01", "0123 0122"})
    EXPECT_TRUE(
        launch_ranks({.ranks = 4, .environment = {"TUTTI_GRAPH_FILE=" + ring_file(folder, devices)}}, [](Seat& seat) {
          tuttiComm_t comm = nullptr;
          EXPECT_NE(tuttiCommInitRank(&comm, seat.ranks(), seat.next_id(), seat.rank()), tuttiSuccess);
          EXPECT_NE(std::string(tuttiGetLastError(nullptr)).find("TUTTI_GRAPH_FILE"), std::string::npos)
              << tuttiGetLastError(nullptr);
        }));
}

TEST(Place, SaysWhichFileIsNotAMachine) {
  for (const auto& each :
       {std::pair{"/nowhere/machine.xml", tuttiSystemError}, std::pair{__FILE__, tuttiInvalidArgument}})
    EXPECT_TRUE(launch_ranks({.ranks = 2, .environment = on(each.first, "auto")}, [code = each.second](Seat& seat) {
      tuttiComm_t comm = nullptr;
      EXPECT_TRUE(fails(tuttiCommInitRank(&comm, seat.ranks(), seat.next_id(), seat.rank()), code, "TUTTI_TOPO_FILE"));
    }));
}

}  // namespace
}  // namespace tutti::testing
