#include "base/error.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/enumeration.h"

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

Code received_code(std::uint32_t number) {
  const Code code = enumerator<Code>(number).value_or(Code::remote);
  return code == Code::success || code == Code::in_progress ? Code::remote : code;
}

Error&& Error::during(std::string_view doing) && {
  what = fmt::format("{}: {}", doing, what);
  return std::move(*this);
}

bool Error::lacks_descriptor() const {
  return sys_errno == EMFILE || sys_errno == ENFILE;
}

std::string Error::words() const {
  std::string words = what;
  if (sys_errno != 0) words += fmt::format(": {} (errno {})", std::strerror(sys_errno), sys_errno);
  if (sys_errno == EMFILE) words += ": raise ulimit -n";
  if (sys_errno == ENFILE) words += ": raise fs.file-max";
  return words;
}

std::string Error::text() const {
  std::string text = fmt::format("{}: {}", name(code), words());
  if (peer >= 0) text += fmt::format(" [peer {}]", peer);
  if (channel >= 0) text += fmt::format(" [channel {}, step {}]", channel, step);
  return text;
}

void DeleteError::operator()(Error* error) const {
  delete error;
}

HeldError on_heap(Error&& error) {
  return HeldError(new Error(std::move(error)));
}

}  // namespace tutti
