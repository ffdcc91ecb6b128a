// A process's descriptors: how many there may be, which numbers they get, and writes that nobody reads.
#pragma once

#include <concepts>
#include <cstdint>

#include "base/unique_fd.h"

namespace tutti {

struct DescriptorLimit {
  std::uint64_t before = 0;
  std::uint64_t now = 0;
};

/// Raises the soft limit to the hard limit, which any process may do: connections to many ranks need more than the
/// usual 1,024. A limit that cannot be raised stays as it is.
DescriptorLimit raise_descriptor_limit();

/// The descriptor `fd`, under a number that no standard stream has. Where a program has closed 0, 1 or 2, as daemons
/// do, the number goes to whatever is opened next, and what anybody then prints would be sent to a peer as data. So
/// every descriptor that tutti makes or receives passes through here (tests/tidy.py knows how), even if it is closed
/// before the function returns: a program that puts a file of its own at that number meanwhile (dup2) would have it
/// read, or closed. The system's own look-ups (getifaddrs) run under HeldStdio.
///
/// -1 is passed on. If no other number is free, `fd` is closed and the result is -1. Keeps errno where it succeeds.
int above_stdio(int fd);

/// A descriptor that is kept for the moment when there is no other: by it one peer can be told so.
class SpareDescriptor {
 public:
  SpareDescriptor() { take(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  /// Frees it for whatever is opened next. False: it is in use already.
  bool give();
  /// Takes one again, if it has been given and one is free.
  void take();

 private:
  UniqueFd fd_;
};

/// Holds 0, 1 and 2, where they are closed, by /dev/null, while a library opens descriptors and keeps their numbers to
/// itself: drivers, libibverbs, PMIx, the resolver. Printing to them fails as before. Where all are open it changes
/// nothing.
///
/// Threads may hold at the same time; the last one lets go, of what is still /dev/null as it was opened here. A file
/// that another thread opens meanwhile gets a number above 2, and one that it puts there (dup2) stays. Where another
/// thread closes one of 0 to 2 meanwhile, the library may get its number, as it would without tutti.
class HeldStdio {
 public:
  HeldStdio();
  ~HeldStdio();
  HeldStdio(const HeldStdio&) = delete;
  HeldStdio& operator=(const HeldStdio&) = delete;

 private:
  bool holds_ = false;
};

/// What `make` returns. It does not have the number of a standard stream even before it is moved, when another thread
/// may print: the kernel gives out the lowest number first.
template <std::invocable Make>
int above_stdio(const Make& make) {
  const HeldStdio held;
  return above_stdio(static_cast<int>(make()));
}

}  // namespace tutti
