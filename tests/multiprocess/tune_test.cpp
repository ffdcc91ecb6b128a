// Numbers of the machine that calls have contradicted are measured again by the next start of a program.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "support/folder.h"
#include "support/launch_ranks.h"
#include "support/results.h"

namespace tutti::testing {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What two processes log of a start that keeps its numbers in `folder`.
std::string log_of_start(const Folder& folder, const std::string& name) {
  const Team team{.ranks = 2,
                  .layout = Layout::processes,
                  .environment = {"TUTTI_DEBUG=INFO", "TUTTI_DEBUG_SUBSYS=ALL", "TUTTI_DEBUG_FILE=" + folder / name,
                                  "TUTTI_TUNE=on", "TUTTI_CACHE_DIR=" + folder / "kept"}};
  Workers workers(team, [](Seat& seat) {
    const tuttiComm_t comm = seat.init_one();
    if (comm != nullptr) {
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    }
  });
  EXPECT_TRUE(workers.finish());
  return text_of(folder / name);
}

TEST(KeptNumbers, AreMeasuredAgainOnceContradicted) {
  const Folder folder;
  if (log_of_start(folder, "first").find("measured: ") == std::string::npos)
    GTEST_SKIP() << "other work has the cores: nothing is kept";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "kept")) {
    ++files;
    std::ofstream(entry.path(), std::ios::app) << "contradicted 2026-11-25T00:00:00Z: 8 calls, by a test\n";
  }
  ASSERT_EQ(files, 1);
  const std::string second = log_of_start(folder, "second");
  if (second.find("8 calls, by a test") == std::string::npos)
    GTEST_SKIP() << "the cores are at another distance now, for which there are other numbers";
  if (second.find("not measured again yet") != std::string::npos) GTEST_SKIP() << "other work has the cores";
  EXPECT_NE(second.find("by a test; measured again"), std::string::npos) << second;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "kept")) {
    EXPECT_NE(text_of(entry.path()).find("\nmeasured again "), std::string::npos) << text_of(entry.path());
    EXPECT_EQ(text_of(entry.path()).find("contradicted"), std::string::npos);
  }
}

}  // namespace
}  // namespace tutti::testing
