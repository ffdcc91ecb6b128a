// Whatever lies where a setting says that a file is: a start reads or writes it, or refuses it, and never waits for it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

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
  return setting.ends_with("_FILE") || setting.ends_with("_DIR") || setting.ends_with("_LIBRARY") ||
         setting == "TUTTI_CUDA_KERNELS";
}

TEST(OddFiles, AllSettingsAreListed) {
  for (const Setting& setting : settings()) {
    const bool listed = std::ranges::find(all, setting.name, &Named::setting) != std::end(all);
    EXPECT_EQ(listed, names_a_file(setting.name)) << setting.name;
  }
}

/// The only rank of a job, which a launcher has started: it reads and writes whatever is read and written.
void expect_no_wait(const Named& named, const std::string& path, const std::string& what) {
  const std::string setting(named.setting);
  Team team{.ranks = 1,
            .environment = {setting + "=" + path, "TUTTI_RANK=0", "TUTTI_NRANKS=1",
                            fmt::format("TUTTI_JOB_ID=odd_files_{}", ::getpid())}};
  // What is kept must have been measured, and a log must have something to say.
  if (setting != "TUTTI_CACHE_DIR") team.environment.emplace_back("TUTTI_TUNE=off");
  if (setting == "TUTTI_DEBUG_FILE") team.environment.emplace_back("TUTTI_DEBUG=INFO");
  if (setting == "TUTTI_COMM_SECRET_FILE") team.environment.emplace_back("TUTTI_COMM_ID=127.0.0.1:1");
  EXPECT_TRUE(launch_ranks(team,
                           [&](Seat&) {
                             tuttiComm_t comm = nullptr;
                             const auto result = tuttiCommInitFromEnv(&comm, nullptr);
                             const std::string said = tuttiGetLastError(nullptr);
                             EXPECT_EQ(result != tuttiSuccess, named.must == Must::fail) << said;
                             if (result != tuttiSuccess) {
                               EXPECT_NE(said.find(setting), std::string::npos) << said;
                             } else {
                               EXPECT_EQ(tuttiCommDestroy(comm), tuttiSuccess);
                             }
                           }))
      << setting << " is " << what;
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
