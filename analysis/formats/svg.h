// A schedule as a picture: ranks from top to bottom, steps from left to right, an arrow per message.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "plan/schedule.h"

namespace tutti::formats {

/// A complete SVG file for any browser; an arrow's tooltip lists its blocks. Blue arrows copy, red arrows reduce; a dot
/// is a rank's work on its own blocks. Errors: invalid_argument, if there are more than 20000 messages to draw.
Result<std::string> draw(const Schedule& schedule, std::string_view title);

}  // namespace tutti::formats
