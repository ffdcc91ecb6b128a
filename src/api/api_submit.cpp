#include "api/api_submit.h"

#include <fmt/format.h>

namespace tutti::api {

Result<void> set_user_op(Request& request, int op, const CommEntry& entry) {
  const auto made = entry.user_ops.find(op);
  if (made == entry.user_ops.end())
    return Error{.code = Code::invalid_argument,
                 .what = fmt::format("op {} is not a tuttiRedOp_t of this communicator", op)};
  if (made->second.type != request.type)
    return Error{
        .code = Code::invalid_argument,
        .what = fmt::format("op {} was made for {}, the call is {}", op, name(made->second.type), name(request.type))};
  request.op = ReduceOp::pre_mul_sum;
  request.scalar = made->second.scalar;
  return {};
}

Result<void> queue(CommEntry& entry, tuttiStream_t stream_handle, const Request& request) {
  auto& communicator = entry.communicator;
  auto stream = use(stream_handle);
  if (!stream) return std::move(stream).error();
  if (Group::open()) return Group::current().add(communicator, *stream, request);
  (*stream)->push(Submission::of(std::make_unique<Batch>(communicator, request)));
  return {};
}

Result<void> or_refuse(Result<void> result) {
  if (!result && Group::open()) Group::current().refuse(result.error());
  return result;
}

}  // namespace tutti::api
