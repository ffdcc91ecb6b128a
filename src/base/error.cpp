#include "base/error.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/enumeration.h"

namespace tutti {

std::string_view name(Code code) {
  static constexpr std::string_view names[] = {"success",        "CUDA error",       "system error",
                                               "internal error", "invalid argument", "invalid usage",
                                               "remote error",   "in progress",      "timeout"};
  static_assert(std::size(names) == static_cast<std::size_t>(Code::last) + 1);
  const auto number = static_cast<std::size_t>(code);
  return number < std::size(names) ? names[number] : "unknown error";
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
