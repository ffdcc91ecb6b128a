// Whatever lies where a setting says that a file is: a start reads or writes it, or refuses it, and never waits for it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/unique_fd.h"
#include "support/folder.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

enum class Must { fail, not_wait };

/// Every setting that names a file or folder. `fail`: what lies there is used at every start, so it must be refused.
struct Named {
  std::string_view setting;
  Must must = Must::fail;
};
constexpr Named all[] = {
    {"TUTTI_CONF_FILE"},
    {"TUTTI_COMM_SECRET_FILE"},
    {"TUTTI_MACHINE_FILE"},
    {"TUTTI_PLAN_FILE"},
    {"TUTTI_TOPO_FILE"},
    {"TUTTI_TOPO_DUMP_FILE"},
    {"TUTTI_GRAPH_FILE"},
    {"TUTTI_GRAPH_DUMP_FILE"},
    {"TUTTI_JOB_DUMP_FILE"},
    {"TUTTI_DEBUG_FILE", Must::not_wait},    // lines go to stderr then
    {"TUTTI_CACHE_DIR", Must::not_wait},     // nothing is kept then
    {"TUTTI_IB_LIBRARY", Must::not_wait},    // the rest is loaded where there is a use for it
    {"TUTTI_CUDA_LIBRARY", Must::not_wait},  //
    {"TUTTI_CUDA_KERNELS", Must::not_wait},
};

bool names_a_file(std::string_view setting) {
  return std::ranges::any_of(std::vector<std::string_view>{"_FILE", "_DIR", "_LIBRARY", "_KERNELS"},
                             [&](std::string_view end) { return setting.ends_with(end); });
}

TEST(OddFiles, AllSettingsAreListed) {
  for (const Setting& setting : settings()) {
    const bool listed = std::ranges::find(all, setting.name, &Named::setting) != std::end(all);
    EXPECT_EQ(listed, names_a_file(setting.name)) << setting.name;
  }
}

/// A rank of two that a launcher started; the other one comes only if this one can.
void expect_no_wait(const Named& named, const std::string& path, const std::string& what) {
  Team team{.ranks = 2, .environment = {std::string(named.setting) + "=" + path, "TUTTI_TUNE=off"}};
  // Measuring keeps what it found, and a log says something.
  if (named.setting == "TUTTI_CACHE_DIR") team.environment.pop_back();
  if (named.setting == "TUTTI_DEBUG_FILE") team.environment.push_back("TUTTI_DEBUG=INFO");
  const bool secret = named.setting == "TUTTI_COMM_SECRET_FILE";
  if (secret) team.environment.push_back("TUTTI_COMM_ID=127.0.0.1:1");
  EXPECT_TRUE(launch_ranks(
      team,
      [&](Seat& seat) {
        tuttiComm_t comm = nullptr;
        const tuttiUniqueId id = secret ? tuttiUniqueId{} : seat.next_id();
        const auto result =
            secret ? tuttiCommInitFromEnv(&comm, nullptr) : tuttiCommInitRank(&comm, seat.ranks(), id, seat.rank());
        if (named.must == Must::fail) {
          EXPECT_NE(result, tuttiSuccess) << named.setting << ", " << what;
          EXPECT_NE(std::string_view(tuttiGetLastError(nullptr)).find(named.setting), std::string_view::npos)
              << tuttiGetLastError(nullptr);
        } else {
          EXPECT_EQ(result, tuttiSuccess) << named.setting << ", " << what << ": " << tuttiGetLastError(nullptr);
        }
        if (comm != nullptr) EXPECT_EQ(tuttiCommDestroy(comm), tuttiSuccess);
      }))
      << named.setting << " is " << what;
}

TEST(OddFiles, NoStartWaitsForThem) {
  const Folder folder;
  const std::string lonely = folder / "lonely", held = folder / "held";
  ASSERT_EQ(::mkfifo(lonely.c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo(held.c_str(), 0600), 0);
  const UniqueFd both_ends(::open(held.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  ASSERT_TRUE(both_ends);
  for (const Named& named : all) {
    expect_no_wait(named, lonely, "a pipe without another end");
    expect_no_wait(named, held, "a pipe into which nobody writes");
    expect_no_wait(named, "/dev/zero", "a device without an end");
  }
}

}  // namespace
}  // namespace tutti::testing
