// A schedule as a picture: ranks down, steps across, an arrow for each message.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "plan/schedule.h"

namespace tutti::formats {

/// A whole SVG file that any browser opens; an arrow says its blocks when the mouse rests on it. Blue arrows copy, red
/// ones reduce; a dot is a rank's work on its own blocks. Errors: invalid_argument, where there are more than 20000
/// messages to draw.
Result<std::string> draw(const Schedule& schedule, std::string_view title);

}  // namespace tutti::formats
