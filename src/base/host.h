// Who we are, in words.
#pragma once

#include <string>

namespace tutti {

std::string host_name();     ///< "node-b"; "localhost" where the system does not know
std::string this_process();  ///< "pid 48211 on node-b"
bool is_traced();            ///< a debugger looks at this process

}  // namespace tutti
