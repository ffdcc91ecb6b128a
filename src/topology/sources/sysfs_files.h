// The files of /sys: one line each, in folders.
#pragma once

#include <string>

namespace tutti::topology {

std::string line_of(const std::string& path);           ///< the first line; empty if the file cannot be read
int number_of(const std::string& path, int otherwise);  ///< that line as a number

}  // namespace tutti::topology
