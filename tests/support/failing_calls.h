// Makes the n-th call of the system that needs something fail in this process, as where descriptors, memory or rights
// lack.
#pragma once

#include <functional>
#include <vector>

namespace tutti::testing {

/// What can be lacking, by the function that asks for it. accept_on_host: accept4 at a socket of this host (AF_UNIX).
enum class SystemCall { memfd, eventfd, socket, accept, accept_on_host, listen, truncate, thread, random };
std::vector<SystemCall> all_calls();
const char* name(SystemCall call);

/// From now on the n-th call of these kinds fails with `error`; `always`: and all later ones. One plan per process.
void fail_calls(const std::vector<SystemCall>& calls, int nth, int error, bool always = false);
/// The next call of this kind first does this, once, then goes on.
void before_call(SystemCall call, std::function<void()> then);
/// No call fails any more. True: one has failed since the plan was made.
bool stop_failing();

}  // namespace tutti::testing
