// The C functions that report which algorithm and transport calls used or would use.

#include "api/api_support.h"
#include "call/arguments.h"
#include "submit/explain_call.h"

using namespace tutti;       // NOLINT: the definitions below are the C functions of tutti.h
using namespace tutti::api;  // NOLINT

tuttiResult_t tuttiCommExplain(tuttiComm_t comm, const char* collective, size_t count, tuttiDataType_t type, char* text,
                               size_t capacity, size_t* length) {
  return guarded([&]() -> Result<void> {
    if (capacity > 0) TUTTI_TRY(not_null(text, "text"));
    auto entry = TUTTI_TRY(use(comm));
    auto& communicator = *entry->communicator;
    auto named = TUTTI_TRY(collective_named(collective));
    auto known = TUTTI_TRY(data_type(type));
    const std::size_t most = SIZE_MAX / 8 / static_cast<std::size_t>(communicator.ranks());
    if (count > most) return invalid_argument("count is larger than memory");
    const std::string all = explain_call(communicator, named, count * size_of(known));
    write_text(all, text, capacity, length);
    return {};
  });
}

tuttiResult_t tuttiCommLastAlgorithm(tuttiComm_t comm, const char** algorithm, const char** transport) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(algorithm, "algorithm"));
    TUTTI_TRY(not_null(transport, "transport"));
    auto entry = TUTTI_TRY(use(comm));
    const PastCalls& past = entry->communicator->past_calls();
    *algorithm = past.algorithm();
    *transport = past.transport();
    return {};
  });
}
