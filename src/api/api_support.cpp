#include "api/api_support.h"

#include <fmt/format.h>

namespace tutti::api {

// The tables are never destroyed: threads may still use a handle while the process exits.
HandleTable<CommEntry>& comms() {
  static auto* const table = new HandleTable<CommEntry>;
  return *table;
}

HandleTable<Stream>& streams() {
  static auto* const table = new HandleTable<Stream>;
  return *table;
}

std::string& last_words() {
  thread_local std::string words;
  return words;
}

tuttiResult_t report(const Error& error) {
  try {
    last_words() = error.text();
  } catch (const std::bad_alloc&) {  // return the code without a text
  }
  return static_cast<tuttiResult_t>(error.code);
}

Result<CommUse> use(tuttiComm_t comm) {
  if (auto process = Process::get(); !process) return std::move(process).error();
  CommUse use = comms().use(comm);
  if (use) return use;
  return Error{.code = Code::invalid_argument,
               .what = comm == nullptr ? "comm is NULL" : "comm is not a communicator, or was destroyed or aborted"};
}

Result<std::shared_ptr<Stream>> use(tuttiStream_t stream) {
  if (stream == nullptr) return std::shared_ptr<Stream>();
  if (auto process = Process::get(); !process) return std::move(process).error();
  const auto use = streams().use(stream);
  if (use) return use.shared();
  return Error{.code = Code::invalid_argument, .what = "stream is not a stream, or was destroyed"};
}

Result<void> not_null(const void* pointer, const char* name) {
  if (pointer != nullptr) return {};
  return Error{.code = Code::invalid_argument, .what = fmt::format("{} is NULL", name)};
}

Result<tuttiComm_t> publish(std::shared_ptr<Communicator> communicator) {
  auto entry = std::make_shared<CommEntry>();
  entry->communicator = std::move(communicator);
  void* const handle = comms().open(std::move(entry));
  if (handle == nullptr) return Error{.code = Code::system, .what = "more than 65536 communicators"};
  return static_cast<tuttiComm_t>(handle);
}

}  // namespace tutti::api
