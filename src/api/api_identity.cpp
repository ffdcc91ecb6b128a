// The C functions that need no communicator: version, ids, errors.
#include <cstring>
#include <new>
#include <vector>

#include "api/api_support.h"
#include "init/open_root.h"

using namespace tutti;       // NOLINT: the definitions below are the C functions of tutti.h
using namespace tutti::api;  // NOLINT

tuttiResult_t tuttiGetVersion(int* version) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(version, "version"));
    *version = TUTTI_VERSION;
    return {};
  });
}

tuttiResult_t tuttiGetUniqueId(tuttiUniqueId* id) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(id, "id"));
    auto process = TUTTI_TRY(Process::get());
    auto made = TUTTI_TRY(open_root(*process));
    const auto encoded = made.encode();
    std::memcpy(id->internal, encoded.data(), encoded.size());
    return {};
  });
}

tuttiResult_t tuttiGetUniqueIds(tuttiUniqueId* ids, size_t count) {
  return guarded([&]() -> Result<void> {
    if (count == 0) return {};
    TUTTI_TRY(not_null(ids, "ids"));
    auto process = TUTTI_TRY(Process::get());
    std::vector<UniqueId> made;
    while (made.size() < count) {
      auto id = open_root(*process);
      if (!id) {
        for (const UniqueId& unused : made) (void)close_root(*process, unused);
        return std::move(id).error();
      }
      made.push_back(*std::move(id));
    }
    for (std::size_t i = 0; i < count; ++i) {
      const auto encoded = made[i].encode();
      std::memcpy(ids[i].internal, encoded.data(), encoded.size());
    }
    return {};
  });
}

tuttiResult_t tuttiDropUniqueId(const tuttiUniqueId* id) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(id, "id"));
    auto decoded = TUTTI_TRY(UniqueId::decode(id->internal));
    auto process = TUTTI_TRY(Process::get());
    return close_root(*process, decoded);
  });
}

const char* tuttiGetErrorString(tuttiResult_t result) {
  switch (result) {
    case tuttiSuccess: return "success";
    case tuttiUnhandledCudaError: return "CUDA error";
    case tuttiSystemError: return "system error: see tuttiGetLastError";
    case tuttiInternalError: return "internal error: a mistake in tutti, please report it";
    case tuttiInvalidArgument: return "invalid argument: see tuttiGetLastError";
    case tuttiInvalidUsage: return "invalid usage: see tuttiGetLastError";
    case tuttiRemoteError: return "remote error: a peer failed, left or was killed";
    case tuttiInProgress: return "in progress";
    case tuttiTimeout: return "timeout";
    case tuttiNumResults: break;
  }
  return "unknown result";
}

const char* tuttiGetLastError(tuttiComm_t comm) {
  if (comm == nullptr) return last_words().text.c_str();
  try {
    const auto entry = handles<CommEntry>().use(comm);
    if (entry && entry->communicator->failed()) {
      Error first = entry->communicator->failure().error();
      if (auto* const device = entry->communicator->device()) device->explain_ending(first);
      report(first);
    } else if (const auto loss = entry ? entry->communicator->failure().error_or_loss() : std::nullopt) {
      report(*loss);
    }
  } catch (const std::bad_alloc&) {
    return "out of memory";
  }
  return last_words().text.c_str();
}

tuttiResult_t tuttiGetError(tuttiComm_t comm, tuttiResult_t* error, char* text, size_t capacity, size_t* length) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(error, "error"));
    if (capacity > 0) TUTTI_TRY(not_null(text, "text"));
    LastWords found;
    if (comm == nullptr) {
      found = last_words();
    } else {
      auto entry = TUTTI_TRY(use(comm));
      Communicator& communicator = *entry->communicator;
      communicator.check_device();
      if (communicator.failed()) {
        const Error first = communicator.report_failure();
        found = {.result = static_cast<tuttiResult_t>(first.code), .text = first.text()};
      } else if (const auto loss = communicator.failure().error_or_loss()) {
        found = {.result = static_cast<tuttiResult_t>(loss->code), .text = loss->text()};
      }
    }
    *error = found.result;
    write_text(found.text, text, capacity, length);
    return {};
  });
}
