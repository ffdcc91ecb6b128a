// What ranks of several hosts hear when one of them is cut off or killed, and how soon.
#pragma once

#include <string>

#include "support/buffer.h"
#include "support/host_start.h"

namespace tutti::testing {

constexpr double told_limit_s = 5;  ///< of silence, as reliability promises; a proven death takes two
constexpr double death_limit_s = 2;
constexpr double leave_limit_s = 1;

/// Returns once ranks call, and that it is about to be done to one of them was noted. False: it took too long.
bool note_under_way(Workers& workers);

/// Rank r on host r mod hosts: all ranks call until a call fails, after what was noted: told within the limit, with
/// words that hold `named`; and leaving takes no longer than it may. Fails the test.
void call_until_told(Seat& seat, const NetNamespaces& net, int hosts, double limit_s, const std::string& named,
                     Memory memory = Memory::heap);

}  // namespace tutti::testing
