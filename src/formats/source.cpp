#include "formats/source.h"

#include <fmt/format.h>

namespace tutti::formats {

Error refused(std::string_view place, std::string_view why) {
  return Error{.code = Code::invalid_argument, .what = fmt::format("{}: {}", place, why)};
}

}  // namespace tutti::formats
