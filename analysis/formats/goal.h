// GOAL: the input of LogGOPSim and the simulators behind ATLAHS.
#pragma once

#include <string>

#include "analysis/formats/traffic.h"

namespace tutti::formats {

/// One `rank N { … }` per rank: sends and receives with the step as their tag, `calc` in nanoseconds, `requires`. A
/// message without bytes is sent as one byte, the least that the format's programs can handle. Errors: as `traffic`.
/// Hoefler, Siebert and Lumsdaine, "Group Operation Assembly Language", ICPP 2009.
Result<std::string> export_goal(const Schedule& schedule, const TrafficSize& size);

}  // namespace tutti::formats
