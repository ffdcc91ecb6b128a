// Standard streams that are closed, in programs that print.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace perf {

/// Opens /dev/null where 0, 1 or 2 is closed. Otherwise a file that is written gets the number, and with it what is
/// printed. Printing fails as before.
inline void open_closed_stdio() {
  int fd = 0;
  while (fd >= 0 && fd <= STDERR_FILENO) fd = ::open("/dev/null", O_RDONLY);
  if (fd >= 0) ::close(fd);
}

}  // namespace perf
