#include "base/error.h"

#include <cstring>

#include <fmt/format.h>

namespace tutti {

std::string_view name(Code code) {
  switch (code) {
    case Code::success: return "success";
    case Code::cuda: return "CUDA error";
    case Code::system: return "system error";
    case Code::internal: return "internal error";
    case Code::invalid_argument: return "invalid argument";
    case Code::invalid_usage: return "invalid usage";
    case Code::remote: return "remote error";
    case Code::in_progress: return "in progress";
    case Code::timeout: return "timeout";
  }
  return "unknown error";
}

Error&& Error::during(std::string_view doing) && {
  what = fmt::format("{}: {}", doing, what);
  return std::move(*this);
}

std::string Error::text() const {
  std::string text = fmt::format("{}: {}", name(code), what);
  if (sys_errno != 0) text += fmt::format(": {} (errno {})", std::strerror(sys_errno), sys_errno);
  if (peer >= 0) text += fmt::format(" [peer {}]", peer);
  if (channel >= 0) text += fmt::format(" [channel {}, step {}]", channel, step);
  return text;
}

}  // namespace tutti
