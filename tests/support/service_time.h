// The processor time of the library's service thread.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace tutti::testing {

/// What the service thread of this process has spent.
inline double service_seconds() {
  double seconds = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name, stat;
    std::getline(std::ifstream(task.path() / "comm") >> std::ws, name);
    std::getline(std::ifstream(task.path() / "stat") >> std::ws, stat);
    if (name != "tutti-service") continue;
    std::istringstream fields(stat.substr(stat.rfind(')') + 2));
    std::string skipped;
    for (int field = 3; field < 14; ++field) fields >> skipped;
    double user = 0, system = 0;
    fields >> user >> system;
    seconds += (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  return seconds;
}

}  // namespace tutti::testing
