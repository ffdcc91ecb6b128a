// Names of this host and process.
#pragma once

#include <string>

namespace tutti {

std::string host_name();     ///< "node-b"; "localhost" if unknown to the system
std::string this_process();  ///< "pid 48211 on node-b"
bool is_traced();            ///< a debugger is attached to this process

}  // namespace tutti
