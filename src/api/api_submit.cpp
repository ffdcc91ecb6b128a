#include "api/api_submit.h"

#include <fmt/format.h>

namespace tutti::api {

namespace {

/// An operator made by tuttiRedOpCreatePreMulSum or tuttiRedOpCreate.
Result<void> set_made_op(Request& request, int op, const CommEntry& entry) {
  const auto made = entry.user_ops.find(op);
  if (made == entry.user_ops.end())
    return invalid_argument(fmt::format("op {} is not a tuttiRedOp_t of this communicator", op));
  const UserOp& user = made->second;
  if (user.type != request.type)
    return invalid_argument(
        fmt::format("op {} was made for {}, the call is {}", op, name(user.type), name(request.type)));
  const bool own = user.function.combine != nullptr;
  request.op = own ? ReduceOp::user : ReduceOp::pre_mul_sum;
  request.scalar = user.scalar;
  request.user = user.function;
  return {};
}

}  // namespace

Result<void> set_any_op(Request& request, int op, const CommEntry& entry) {
  const bool predefined = (op >= tuttiSum && op <= tuttiAvg) || (op >= tuttiBitAnd && op <= tuttiLogicalXor);
  if (!predefined) return set_made_op(request, op, entry);
  request.op = static_cast<ReduceOp>(op);
  if (applies(request.op, request.type)) return {};
  const bool bits = request.op >= ReduceOp::bit_and;
  return invalid_argument(fmt::format("op {} is for {}, the call is {}", name(request.op),
                                      bits ? "integers" : "types that have an order", name(request.type)));
}

Result<CallStream> named(tuttiStream_t stream) {
  if (!HandleTable<Stream>::is_handle(stream)) return CallStream{.gpu = stream};
  auto host = TUTTI_TRY(use(stream));
  return CallStream{.host = std::move(host)};
}

void refuse_group(const Error& why) {
  if (Group::open()) Group::current().refuse(why);
}

}  // namespace tutti::api
