// Numbers of the machine that calls contradict are measured again by the next start of a program, and not before.
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/build_id.h"
#include "support/folder.h"
#include "support/launch_ranks.h"
#include "support/results.h"
#include "tune/machine_file.h"

namespace tutti::testing {
namespace {

constexpr std::int64_t long_ago_s = 1'600'000'000;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// This machine, as if its memory were a thousand times slower than any is.
Machine slow_machine(double hop_us) {
  auto numbers = Machine{}.numbers();
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (std::string(Machine::names()[i]).find("gbps") != std::string::npos) numbers[i] = 1e-3;
  auto machine = *Machine::of(numbers);
  machine.hop_us = hop_us;
  return machine;
}

/// The files of what was measured for this machine, for all distances that its cores may have.
std::vector<std::string> keep(const std::string& folder, bool contradicted) {
  cpu_set_t cpus;
  EXPECT_EQ(::sched_getaffinity(0, sizeof cpus, &cpus), 0);
  const std::string here = fingerprint(CPU_COUNT(&cpus), library_version);
  std::filesystem::create_directories(folder);
  std::vector<std::string> files;
  for (const double hop_us : {0.04, 0.1, 0.25, 0.6}) {
    files.push_back(machine_file(folder, here, static_cast<int>(files.size())));
    std::string text = to_text(slow_machine(hop_us), here, long_ago_s);
    if (contradicted) text = with_contradiction(text, long_ago_s, "8 calls, by a test");
    std::ofstream(files.back()) << text;
  }
  return files;
}

Team team_of(const Folder& folder) {
  return {.ranks = 2,
          .environment = {"TUTTI_DEBUG=INFO", "TUTTI_DEBUG_SUBSYS=ALL", "TUTTI_DEBUG_FILE=" + folder / "log",
                          "TUTTI_TUNE=on", "TUTTI_CACHE_DIR=" + folder / "kept"}};
}

std::size_t with_word(const std::vector<std::string>& files, const std::string& word) {
  return static_cast<std::size_t>(
      std::ranges::count_if(files, [&](const auto& file) { return text_of(file).find(word) != std::string::npos; }));
}

bool are_for_these_cores(const std::string& log) {
  return log.find("measured: ") == std::string::npos && log.find("built-in numbers") == std::string::npos;
}

TEST(MachineRecord, AreMeasuredAgainOnceContradicted) {
  const Folder folder;
  const auto files = keep(folder / "kept", /*contradicted=*/true);
  EXPECT_TRUE(launch_ranks(team_of(folder), [](Seat& seat) {
    tuttiComm_t comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  }));
  const std::string log = text_of(folder / "log");
  const bool busy =
      log.find("8 calls, by a test; other work uses the cores: not measured again yet") != std::string::npos;
  const bool measured = log.find("8 calls, by a test; measured again") != std::string::npos;
  if (!busy && !measured) {
    ASSERT_FALSE(are_for_these_cores(log)) << log;
    GTEST_SKIP() << "cores at another distance than any that numbers were kept for";
  }
  EXPECT_EQ(with_word(files, "\ncontradicted "), busy ? 4u : 3u);
  EXPECT_EQ(with_word(files, "\nmeasured again "), busy ? 0u : 1u);
}

TEST(MachineRecord, AreContradictedByCallsThatAreMuchFaster) {
  const Folder folder;
  const auto files = keep(folder / "kept", /*contradicted=*/false);
  EXPECT_TRUE(launch_ranks(team_of(folder), [](Seat& seat) {
    tuttiComm_t comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    std::vector<float> x(1 << 18, 1.0f), y(x.size());
    for (int call = 0; call < 8; ++call)
      EXPECT_TRUE(ok(tuttiAllReduce(x.data(), y.data(), x.size(), tuttiFloat32, tuttiSum, comm, nullptr)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  }));
  const std::string log = text_of(folder / "log");
  if (log.find("more ranks than cores") != std::string::npos) GTEST_SKIP() << "times say nothing";
  if (!are_for_these_cores(log)) GTEST_SKIP() << "cores at another distance than any that numbers were kept for";
  EXPECT_EQ(with_word(files, "\ncontradicted "), 1u) << log;
  EXPECT_NE(log.find("the next start measures again: 8 calls of all_reduce"), std::string::npos) << log;
}

}  // namespace
}  // namespace tutti::testing
