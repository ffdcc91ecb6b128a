// The files of /sys: one line each, in folders.
#pragma once

#include <string>
#include <vector>

namespace tutti::topology {

std::vector<std::string> entries(const std::string& folder);  ///< sorted; empty if the folder cannot be read
std::string line_of(const std::string& path);                 ///< the first line; empty if the file cannot be read
int number_of(const std::string& path, int otherwise);        ///< that line as a number

}  // namespace tutti::topology
