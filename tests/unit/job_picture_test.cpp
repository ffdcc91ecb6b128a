// A job as a whole: planned, written and read, in text and as a picture.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pugixml.hpp>

#include <fstream>
#include <numeric>

#include "analysis/pictures/job_picture.h"
#include "place/job_file.h"
#include "place/locations.h"
#include "support/folder.h"
#include "tools/tutti_topo/job.h"
#include "topology/sources/read.h"

namespace tutti {
namespace {

using namespace topology;

Topology recorded(const std::string& name) {
  auto machine = read_machine(std::string(TUTTI_TEST_MACHINES "/") + name);
  EXPECT_TRUE(machine) << name;
  return machine ? *std::move(machine) : Topology{};
}

Job planned(const std::string& machine, int hosts, int each) {
  return job_of(PlannedJob{.hosts = hosts, .ranks_per_host = each}, recorded(machine));
}

/// As a communicator on two live hosts knows it: rank 0's machine, and locations; the last rank is bound to nothing.
Job live_job(const Topology& machine) {
  const std::vector<ReportedLocation> locations{
      {.package = 0, .numa = 0}, {.package = 1, .numa = 1}, {.package = 0, .numa = 0}, {}};
  const std::vector hosts{0, 0, 2, 2};
  const std::vector<std::string> names{"odd & \"name\x01", "", "other", ""};
  const auto first = std::make_shared<const Topology>(machine);
  const JobRanks ranks{
      .locations = locations, .hosts = hosts, .names = names, .machines = {first, first, nullptr, nullptr}};
  return job_of(ranks, map_of(locations, hosts, ranks.machines));
}

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

bool apart(const Box& one, const Box& two) {
  return one.x + one.width <= two.x || two.x + two.width <= one.x || one.y + one.height <= two.y ||
         two.y + two.height <= one.y;
}

bool inside(const Box& outer, const Box& inner) {
  return inner.x >= outer.x && inner.y >= outer.y && inner.x + inner.width <= outer.x + outer.width &&
         inner.y + inner.height <= outer.y + outer.height;
}

TEST(PlannedJob, FillsHostsInTheGivenOrder) {
  EXPECT_EQ(hosts_of({.hosts = 2, .ranks_per_host = 2}), (std::vector{0, 0, 2, 2}));
  EXPECT_EQ(hosts_of({.hosts = 2, .ranks_per_host = 2, .filling = {3, 0, 2, 1}}), (std::vector{0, 1, 1, 0}));
}

TEST(PlannedJob, IsWhatACommunicatorWouldFindOut) {
  const Topology machine = recorded("cube-mesh-double.txt");
  const PlannedJob plan{.hosts = 2, .ranks_per_host = 8};
  const Job job = job_of(plan, machine);
  const JobMap map = map_of(std::vector<ReportedLocation>(16, {.recorded = 1}), hosts_of(plan), &machine);
  EXPECT_EQ(job.levels, map.levels);
  EXPECT_EQ(job.order, map.order);
  EXPECT_EQ(map_of(plan, &machine), map);
  EXPECT_EQ(job.devices[11], "GPU3");
  EXPECT_EQ(level_name(job, 0), "2 hosts");
  EXPECT_EQ(level_name(job, 1), "4 NUMA nodes");
}

TEST(JobFile, IsReadAsItWasWritten) {
  const Folder folder;
  for (const Job& job : {planned("switched-8.xml", 3, 8), live_job(recorded("hwloc-4x6-divided.xml"))}) {
    const std::string path = folder.path() + "/job.json";
    std::ofstream(path) << to_json(job);
    const auto read = read_job(path);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(to_json(*read), to_json(job)) << "the machine without its buses";
    EXPECT_EQ(read->levels, job.levels);
    EXPECT_EQ(read->order, job.order);
    EXPECT_EQ(read->hosts.size(), job.hosts.size());
    EXPECT_EQ(job_picture(*read).size(), job_picture(job).size());
  }
}

TEST(JobText, SaysHowOftenTheRingEntersAHost) {
  Job job = planned("switched-8.xml", 2, 8);
  EXPECT_NE(job_text(job).find("enters and leaves each of 2 hosts once"), std::string::npos) << job_text(job);
  std::swap(job.order[1], job.order[8]);
  EXPECT_NE(job_text(job).find("4 times where 2 would do"), std::string::npos) << job_text(job);
  EXPECT_NE(job_text(planned("switched-8.xml", 1, 8)).find("one host"), std::string::npos);
}

TEST(JobPicture, HasEveryRankAndEveryStepOfTheRing) {
  for (const auto& [machine, hosts, each] : {std::tuple{"switched-8.xml", 2, 8},
                                             {"switched-8.xml", 16, 8},
                                             {"cube-mesh-double.txt", 5, 3},
                                             {"hwloc-4x6-divided.xml", 2, 24},
                                             {"switched-8.xml", 2, 32},
                                             {"template-fragment.xml", 1, 7}}) {
    const Job job = planned(machine, hosts, each);
    const std::string text = job_picture(job), name = fmt::format("{} {}x{}", machine, hosts, each);
    pugi::xml_document document;
    ASSERT_TRUE(document.load_string(text.c_str())) << name;
    EXPECT_EQ(count(text, "class=\"chip\""), job.locations.size() + 1) << name << ": and the legend's";
    EXPECT_EQ(count(text, "<polygon"), job.order.size()) << name << ": an arrowhead for each step";
    EXPECT_EQ(count(text, "class=\"bad\""), 0u) << name;
    EXPECT_EQ(text.find("nan"), std::string::npos) << name;
  }
}

TEST(JobPicture, PutsNothingOnSomethingElse) {
  for (const auto& [machine, hosts, each] : {std::tuple{"switched-8.xml", 16, 8},
                                             {"hwloc-4x6-divided.xml", 3, 30},
                                             {"template-fragment.xml", 2, 40},
                                             {"switched-8-one-off.xml", 20, 8}}) {
    const Job job = planned(machine, hosts, each);
    const JobLayout layout = job_layout(job, {0, 0});
    for (std::size_t a = 0; a < layout.hosts.size(); ++a) {
      EXPECT_TRUE(inside(layout.area, layout.hosts[a].whole.box));
      for (std::size_t b = 0; b < a; ++b) EXPECT_TRUE(apart(layout.hosts[a].whole.box, layout.hosts[b].whole.box));
    }
    for (std::size_t a = 0; a < layout.chips.size(); ++a) {
      if (layout.chips[a].width == 0) continue;
      const auto box = static_cast<std::size_t>(layout.box_of_host[static_cast<std::size_t>(job.locations[a].host)]);
      EXPECT_TRUE(inside(layout.hosts[box].whole.box, layout.chips[a])) << machine << " rank " << a;
      for (std::size_t b = 0; b < a; ++b) EXPECT_TRUE(apart(layout.chips[a], layout.chips[b])) << machine << a << b;
    }
  }
}

TEST(JobPicture, CountsHostsThatAreAlike) {
  Job job = planned("switched-8.xml", 40, 8);
  EXPECT_NE(job_picture(job).find("37 more hosts"), std::string::npos);
  std::swap(job.order[20 * 8 + 2], job.order[20 * 8 + 3]);  // one host has a ring of its own
  const std::string text = job_picture(job);
  EXPECT_NE(text.find("17 more hosts"), std::string::npos);
  EXPECT_NE(text.find(">host20<"), std::string::npos);
  EXPECT_NE(text.find("16 more hosts"), std::string::npos);
  EXPECT_EQ(count(text, "class=\"counted\""), 2u);
}

TEST(JobPicture, StaysReadableIfNoTwoHostsAreAlike) {
  Job job = planned("switched-8.xml", 300, 4);
  for (std::size_t rank = 0; rank < job.locations.size(); ++rank) job.locations[rank].cache = static_cast<int>(rank);
  const std::string text = job_picture(job);
  EXPECT_NE(text.find("253 more hosts"), std::string::npos);
  EXPECT_EQ(count(text, "in 1 · out 1"), 47u);
}

TEST(JobPicture, ShowsARingThatGoesToAndFro) {
  const Topology machine = recorded("switched-8.xml");
  for (const int hosts : {4, 40}) {
    PlannedJob plan{.hosts = hosts, .ranks_per_host = 2};
    for (int host = 0; host < hosts; ++host) plan.filling.insert(plan.filling.end(), {host, hosts + host});
    Job job = job_of(plan, machine);
    EXPECT_EQ(entries_of(job), std::vector(static_cast<std::size_t>(hosts), 1));
    std::iota(job.order.begin(), job.order.end(), 0);
    EXPECT_EQ(entries_of(job), std::vector(static_cast<std::size_t>(hosts), 2));
    const std::string text = job_picture(job);
    EXPECT_EQ(count(text, "in 2 · out 2"), hosts == 4 ? 4u : 3u) << "the other hosts are counted";
    EXPECT_NE(text.find(fmt::format("{} times where {} would do", 2 * hosts, hosts)), std::string::npos);
  }
}

TEST(JobPicture, OfALiveJobHasWhatSeatsTell) {
  const std::string text = job_picture(live_job(recorded("hwloc-4x6-divided.xml")));
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(text.c_str()));
  EXPECT_EQ(count(text, "class=\"chip\""), 5u);
  EXPECT_NE(text.find("GPU23"), std::string::npos) << "the host of rank 0 is known";
  EXPECT_EQ(count(text, "package 0"), 2u) << "and of the other one that it has this";
  EXPECT_NE(text.find("odd &amp; &quot;name?"), std::string::npos);
}

}  // namespace
}  // namespace tutti
