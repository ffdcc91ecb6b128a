// The files of /sys: one line each, in folders.
#pragma once

#include <string>
#include <vector>

namespace tutti::topology {

std::string line_of(const std::string& path);           ///< the first line; empty if the file cannot be read
int number_of(const std::string& path, int otherwise);  ///< that line as a number

/// Of the NUMA nodes in SYS/devices/system/node, in the order of their files.
std::vector<int> node_numbers(const std::string& folder);

}  // namespace tutti::topology
