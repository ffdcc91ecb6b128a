#include "api/api_support.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace tutti::api {

LastWords& last_words() {
  thread_local LastWords words;
  return words;
}

tuttiResult_t report(const Error& error) {
  LastWords& words = last_words();
  words.result = static_cast<tuttiResult_t>(error.code);
  try {
    words.text = error.text();
  } catch (const std::bad_alloc&) {  // the code without a text
    words.text.clear();
  }
  return words.result;
}

Result<CommUse> use(tuttiComm_t comm) {
  TUTTI_TRY(Process::get());
  CommUse use = handles<CommEntry>().use(comm);
  if (use) return use;
  return invalid_argument(comm == nullptr ? "comm is NULL" : "comm is not a communicator, or was destroyed or aborted");
}

Result<std::shared_ptr<Stream>> use(tuttiStream_t stream) {
  if (stream == nullptr) return std::shared_ptr<Stream>();
  TUTTI_TRY(Process::get());
  const auto use = handles<Stream>().use(stream);
  if (use) return use.shared();
  return invalid_argument("stream is not a stream, or was destroyed");
}

Result<void> not_null(const void* pointer, const char* name) {
  if (pointer != nullptr) return {};
  return invalid_argument(fmt::format("{} is NULL", name));
}

void write_text(const std::string& all, char* to, std::size_t capacity, std::size_t* length) {
  if (length != nullptr) *length = all.size();
  if (capacity == 0) return;
  std::size_t taken = std::min(all.size(), capacity - 1);
  while (taken < all.size() && taken > 0 && (static_cast<unsigned char>(all[taken]) & 0xc0U) == 0x80U) --taken;
  std::memcpy(to, all.data(), taken);
  to[taken] = '\0';
}

Result<tuttiComm_t> publish(std::shared_ptr<Communicator> communicator) {
  auto entry = std::make_shared<CommEntry>();
  entry->communicator = std::move(communicator);
  void* const handle = handles<CommEntry>().open(std::move(entry));
  if (handle == nullptr) return Error{.code = Code::system, .what = "more than 65536 communicators"};
  return static_cast<tuttiComm_t>(handle);
}

}  // namespace tutti::api
